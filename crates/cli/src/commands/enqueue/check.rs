//! Checks a job before it is accepted, as far as its kind is known here.

use windlass_workflow::kinds;

use crate::error::Failure;
use crate::find::nearest_name;

/// An example of a payload of kind `shell`.
const EXAMPLE: &str =
    r#"write for example --payload '{"run": "./sync.sh"}', or '{"command": ["du", "-sh", "."]}'"#;

/// Refuses a payload with which a built-in kind fails. Other kinds are known to their workers only.
pub(super) fn check_payload(kind: &str, payload: &str) -> Result<(), Failure> {
    kinds::check_payload(kind, payload).map_err(|reason| refusal(kind, &reason))
}

fn refusal(kind: &str, reason: &str) -> Failure {
    if let Some((unknown, known)) = unknown_key(reason) {
        let near = nearest_name(unknown, known.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", known.join(", ")),
        };
        return Failure::usage(format!("the payload of kind `{kind}` has the unknown key `{unknown}`"), help);
    }
    let help = match kind {
        "shell" => EXAMPLE.to_owned(),
        kind => format!("correct the payload; `windlass schema` describes the keys of kind `{kind}`"),
    };
    Failure::usage(reason, help)
}

/// The unknown key and the known ones, if this is what the reason says.
fn unknown_key(reason: &str) -> Option<(&str, Vec<&str>)> {
    let (_before, rest) = reason.split_once("unknown field ")?;
    let mut names = rest.split('`').skip(1).step_by(2);
    Some((names.next()?, names.collect()))
}

/// How many letters of a built-in kind may be wrong in a mistyped one. People have kinds of their own, so this is less than
/// for other names.
const WRONG_LETTERS_MAX: usize = 2;

/// A word about a kind that looks like a built-in one, mistyped.
pub(super) fn similar_kind(kind: &str) -> Option<String> {
    if kinds::is_built_in(kind) {
        return None;
    }
    let near = nearest_name(kind, kinds::names())
        .filter(|near| strsim::osa_distance(kind, near) <= WRONG_LETTERS_MAX)?;
    Some(format!("`{kind}` is no built-in kind; did you mean `{near}`?"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_payload_that_fails_is_refused_with_the_next_step() {
        let said = |payload: &str| {
            let failure = check_payload("shell", payload).unwrap_err();
            let (message, help) = failure.parts().unwrap();
            format!("{message}: {help}")
        };
        assert!(said(r#"{"rum": "x"}"#).ends_with("unknown key `rum`: did you mean `run`?"));
        assert!(said(r#"{"zzz": "x"}"#).contains("the keys are run, command"));
        assert!(said("{}").contains("needs either `run`") && said("{}").contains("--payload '{\"run\""));
        assert_eq!(check_payload("shell", r#"{"run": "x"}"#), Ok(()));
        assert_eq!(check_payload("mail", r#"{"rum": "x"}"#), Ok(()));
    }

    #[test]
    fn only_a_similar_kind_is_named() {
        assert!(similar_kind("shel").unwrap().contains("did you mean `shell`?"));
        assert_eq!(similar_kind("send-mail"), None);
        assert_eq!(similar_kind("shell"), None);
    }
}
