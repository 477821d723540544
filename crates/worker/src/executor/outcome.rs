//! What the outcome of a handler means if the attempt was asked to stop. Pure.

use std::sync::Arc;

use crate::handler::{Masker, StopCause, failed};
use windlass_engine::set_variables::SetVariable;
use windlass_engine::transition::{Outcome, Repeat};

/// The outcome of an attempt, given what its handler returned and why it was to stop. `cause_seen` is the cause that the
/// handler could see before it returned.
pub(super) fn decide(outcome: Outcome, cause_seen: Option<StopCause>, cause: Option<StopCause>) -> Outcome {
    match (cause_seen, cause) {
        (None, Some(StopCause::Fenced)) => apply_cause(explain_backstop(outcome), cause),
        (_, _) => apply_cause(outcome, cause),
    }
}

/// The lease ended before the attempt could be asked to stop, so the handler's backstop may have ended it.
fn explain_backstop(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { error, repeat } => {
            Outcome::Failed { error: format!("its worker's lease was over: {error}"), repeat }
        }
        Outcome::Successful { .. }
        | Outcome::Skipped { .. }
        | Outcome::Again { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted
        | Outcome::OutOfResources { .. } => outcome,
    }
}

/// A success stays a success, also that of a round, and a skipped job stays skipped. Only an attempt that was asked to stop may say that it did
/// not start, because a handler could otherwise repeat it for ever.
fn apply_cause(outcome: Outcome, cause: Option<StopCause>) -> Outcome {
    let repeat = repeat_of(&outcome);
    let error = match (&outcome, cause) {
        (Outcome::Successful { .. } | Outcome::Skipped { .. } | Outcome::Again { .. }, _) => return outcome,
        (Outcome::Unstarted, Some(StopCause::Leaving | StopCause::Fenced)) => return outcome,
        (Outcome::Unstarted, Some(_)) => "it was asked to stop before it started".to_owned(),
        (Outcome::Unstarted, None) => "its handler says that it did not start".to_owned(),
        (Outcome::OutOfResources { .. }, None | Some(StopCause::TimedOut)) => return outcome,
        (Outcome::OutOfResources { .. }, Some(StopCause::Leaving | StopCause::Fenced)) => {
            return Outcome::Unstarted;
        }
        (
            Outcome::OutOfResources { reason },
            Some(StopCause::Cancelled | StopCause::Killed | StopCause::PastDeadline),
        ) => reason.clone(),
        (
            Outcome::Failed { error, .. }
            | Outcome::TimedOut { error, .. }
            | Outcome::Cancelled { error }
            | Outcome::Interrupted { error },
            _,
        ) => error.clone(),
    };
    match cause {
        None if outcome == Outcome::Unstarted => failed(error),
        None => outcome,
        Some(StopCause::Cancelled | StopCause::Killed) => Outcome::Cancelled { error },
        Some(StopCause::TimedOut) => Outcome::TimedOut { error, repeat },
        // Another attempt would begin after the deadline.
        Some(StopCause::PastDeadline) => Outcome::TimedOut { error, repeat: Repeat::Pointless },
        Some(StopCause::Leaving | StopCause::Fenced) => Outcome::Interrupted { error },
    }
}

/// Whether a retry may help, as far as the outcome says.
fn repeat_of(outcome: &Outcome) -> Repeat {
    match outcome {
        Outcome::Failed { repeat, .. } | Outcome::TimedOut { repeat, .. } => *repeat,
        Outcome::Successful { .. }
        | Outcome::Skipped { .. }
        | Outcome::Again { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted
        | Outcome::OutOfResources { .. } => Repeat::Allowed,
    }
}

/// The outcome without the secrets of its attempt.
pub(super) fn mask(outcome: Outcome, masker: Option<&Arc<Masker>>) -> Outcome {
    let Some(masker) = masker else { return outcome };
    let text = |text: String| masker.text(&text).into_owned();
    match outcome {
        Outcome::Successful { output } => {
            Outcome::Successful { output: output.map(|output| masker.json(output)) }
        }
        Outcome::Failed { error, repeat } => Outcome::Failed { error: text(error), repeat },
        Outcome::Skipped { reason } => Outcome::Skipped { reason: text(reason) },
        Outcome::Again { rounds, wait_ms, reason } => {
            Outcome::Again { rounds, wait_ms, reason: text(reason) }
        }
        Outcome::TimedOut { error, repeat } => Outcome::TimedOut { error: text(error), repeat },
        Outcome::Cancelled { error } => Outcome::Cancelled { error: text(error) },
        Outcome::Interrupted { error } => Outcome::Interrupted { error: text(error) },
        Outcome::OutOfResources { reason } => Outcome::OutOfResources { reason: text(reason) },
        Outcome::Unstarted => Outcome::Unstarted,
    }
}

/// The variables that a success sets, without the secrets of its attempt. Another end sets none.
pub(super) fn variables_of(
    outcome: &Outcome,
    variables: Vec<SetVariable>,
    masker: Option<&Arc<Masker>>,
) -> Vec<SetVariable> {
    let Outcome::Successful { .. } = outcome else { return Vec::new() };
    let Some(masker) = masker else { return variables };
    let mask = |SetVariable { name, value }| SetVariable { name, value: masker.json(value) };
    variables.into_iter().map(mask).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_stop_decides_what_a_failure_was_and_a_success_stays_one() {
        let success = Outcome::Successful { output: None };
        assert_eq!(apply_cause(success.clone(), Some(StopCause::Cancelled)), success);
        assert_eq!(apply_cause(failed("x"), None), failed("x"));
        let failed_after = |cause| apply_cause(failed("x"), Some(cause));
        let timed_out = Outcome::TimedOut { error: "x".to_owned(), repeat: Repeat::Allowed };
        assert_eq!(failed_after(StopCause::Cancelled), Outcome::Cancelled { error: "x".to_owned() });
        assert_eq!(failed_after(StopCause::TimedOut), timed_out);
        let past_deadline = Outcome::TimedOut { error: "x".to_owned(), repeat: Repeat::Pointless };
        assert_eq!(failed_after(StopCause::PastDeadline), past_deadline);
        assert_eq!(failed_after(StopCause::Leaving), Outcome::Interrupted { error: "x".to_owned() });
    }

    #[test]
    fn an_attempt_that_failed_when_nobody_could_ask_it_to_stop_was_ended_by_the_backstop() {
        let error = "its worker's lease was over: x".to_owned();
        let ended = |cause_seen| decide(failed("x"), cause_seen, Some(StopCause::Fenced));
        assert_eq!(ended(None), Outcome::Interrupted { error });
        assert_eq!(ended(Some(StopCause::Fenced)), Outcome::Interrupted { error: "x".to_owned() });
    }

    #[test]
    fn only_an_attempt_that_was_asked_to_stop_may_say_that_it_did_not_start() {
        assert!(matches!(apply_cause(Outcome::Unstarted, None), Outcome::Failed { .. }));
        assert_eq!(apply_cause(Outcome::Unstarted, Some(StopCause::Leaving)), Outcome::Unstarted);
        assert!(matches!(
            apply_cause(Outcome::Unstarted, Some(StopCause::Cancelled)),
            Outcome::Cancelled { .. }
        ));
    }

    #[test]
    fn a_lack_of_resources_is_no_failure_unless_the_job_was_cancelled() {
        let lacking = || Outcome::OutOfResources { reason: "no more files".to_owned() };
        for (cause, expected) in [
            (None, lacking()),
            (Some(StopCause::TimedOut), lacking()),
            (Some(StopCause::Leaving), Outcome::Unstarted),
            (Some(StopCause::Fenced), Outcome::Unstarted),
            (Some(StopCause::Cancelled), Outcome::Cancelled { error: "no more files".to_owned() }),
        ] {
            assert_eq!(apply_cause(lacking(), cause), expected, "{cause:?}");
        }
    }
}
