//! The parameters of a run, from `-p key=value` and a file.

use std::path::Path;

use serde_json::{Map, Value};
use windlass_workflow::params::{self, ParamError, Supplied};
use windlass_workflow::{Format, Param, ParamKind, Report, STANDARD_INPUT, Source, Workflow, read_values};

use super::standard_input::{self, STANDARD_INPUT_FORMAT_HELP};
use crate::error::Failure;
use crate::read_file::{self, PathOrigin};

/// The largest file of parameters, in bytes.
const MAX_FILE_BYTES: usize = 16 * 1024 * 1024;
const HELP: &str = "a file of parameters has one object, as JSON {\"day\": \"2026-11-20\"}, as YAML day: 2026-11-20, or as TOML day = \"2026-11-20\"";

/// Reads `key=value`; for clap.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.to_owned())),
        Some(_) => {
            Err("the name before `=` is missing; write NAME=VALUE, for example day=2026-11-20".to_owned())
        }
        None => Err(format!("`=` and a value are missing; write {text}=VALUE")),
    }
}

/// The checked values for the parameters of a workflow. A value on the command line overrides the file.
pub(super) fn bind(
    workflow: &Workflow,
    pairs: &[(String, String)],
    from_file: Map<String, Value>,
) -> Result<Map<String, Value>, Failure> {
    let given = |name: &String| pairs.iter().any(|(key, _)| key == name);
    let from_file = from_file.into_iter().filter(|(name, _)| !given(name));
    let mut supplied: Vec<(String, Supplied)> =
        from_file.map(|(name, value)| (name, Supplied::Json(value))).collect();
    supplied.extend(pairs.iter().map(|(name, value)| (name.clone(), Supplied::Text(value.clone()))));
    params::bind(&workflow.params, supplied).map_err(|errors| invalid(workflow, &errors))
}

/// The failure for values that do not fit the parameters of the workflow.
pub(crate) fn invalid(workflow: &Workflow, errors: &[ParamError]) -> Failure {
    let message = match errors {
        [only] => only.to_string(),
        several => {
            let lines: Vec<String> = several.iter().map(|error| format!("\n  - {error}")).collect();
            format!("the parameters do not fit workflow `{}`:{}", workflow.name, lines.concat())
        }
    };
    Failure::InvalidParameters { message, help: help(workflow) }
}

/// The parameters of the workflow, ready to be typed.
fn help(workflow: &Workflow) -> String {
    if workflow.params.is_empty() {
        return format!("workflow `{}` takes no parameters; leave them out", workflow.name);
    }
    let lines: Vec<String> = workflow.params.iter().map(|param| format!("\n  {}", describe(param))).collect();
    format!("workflow `{}` takes:{}", workflow.name, lines.concat())
}

/// A parameter as it is typed, with its type and default.
pub(crate) fn describe(param: &Param) -> String {
    let kind = match param.kind {
        ParamKind::String => "TEXT".to_owned(),
        ParamKind::Integer => "INTEGER".to_owned(),
        ParamKind::Number => "NUMBER".to_owned(),
        ParamKind::Boolean => "true|false".to_owned(),
        ParamKind::Date => "YYYY-MM-DD".to_owned(),
        ParamKind::Datetime => "YYYY-MM-DDTHH:MM:SSZ".to_owned(),
        ParamKind::Duration => "DURATION".to_owned(),
        ParamKind::Choice => param.choices.join("|"),
        ParamKind::List => "A,B,…".to_owned(),
    };
    let presence = match (&param.default, param.required) {
        (Some(Value::String(text)), _) => format!("default {text}"),
        (Some(default), _) => format!("default {default}"),
        (None, true) => "required".to_owned(),
        (None, false) => "optional".to_owned(),
    };
    let about = param.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
    format!("-p {}={kind}  ({presence}){about}", param.name)
}

/// The values in a file.
pub(super) fn read_file(path: &Path) -> Result<Map<String, Value>, Failure> {
    let bytes = read_file::read(path, MAX_FILE_BYTES, PathOrigin::Named)?;
    let name = path.display().to_string();
    check_size(&bytes, &name)?;
    values(Source::new(name, bytes), HELP)
}

/// The values on standard input.
pub(super) fn read_standard_input(format: Option<Format>) -> Result<Map<String, Value>, Failure> {
    let bytes =
        standard_input::read(MAX_FILE_BYTES, "type or paste the parameters, and end them with Ctrl-D")?;
    check_size(&bytes, STANDARD_INPUT)?;
    values(Source::of_standard_input(bytes, format), &format!("{HELP}; {STANDARD_INPUT_FORMAT_HELP}"))
}

fn check_size(bytes: &[u8], name: &str) -> Result<(), Failure> {
    if bytes.len() <= MAX_FILE_BYTES {
        return Ok(());
    }
    let limit = MAX_FILE_BYTES / (1024 * 1024);
    let message = format!("{name} is larger than {limit} MiB");
    Err(Failure::InvalidParameters { message, help: HELP.to_owned() })
}

fn values(source: Result<Source, Report>, help: &str) -> Result<Map<String, Value>, Failure> {
    source
        .and_then(|source| read_values(&source))
        .map_err(|report| Failure::InvalidWorkflow { report: Box::new(report), help: help.to_owned() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn param(name: &str, kind: ParamKind, default: Option<Value>) -> Param {
        let required = default.is_none();
        Param { name: name.to_owned(), kind, description: None, default, required, choices: Vec::new() }
    }

    fn workflow() -> Workflow {
        Workflow {
            params: vec![
                param("day", ParamKind::Date, None),
                param("count", ParamKind::Integer, Some(json!(3))),
            ],
            ..Workflow::new("nightly", Vec::new())
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn pairs_have_a_name_and_a_value() {
        assert_eq!(parse_pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(parse_pair("a="), Ok(("a".to_owned(), String::new())));
        assert!(parse_pair("a").unwrap_err().contains("a=VALUE"));
        assert!(parse_pair("=b").unwrap_err().contains("missing"));
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("p.json", r#"{"day": "2026-01-01", "count": 7}"#),
            ("p.toml", "day = 2026-01-01\ncount = 7"),
            ("p.yaml", "day: 2026-01-01\ncount: 7\n"),
            ("p", r#" {"day": "2026-01-01", "count": 7}"#),
        ];
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let bound = bind(&workflow(), &[], read_file(&path).unwrap()).unwrap();
            assert_eq!(Value::Object(bound), json!({"day": "2026-01-01", "count": 7}), "{name}");
            let bound =
                bind(&workflow(), &pairs(&[("day", "2026-02-02")]), read_file(&path).unwrap()).unwrap();
            assert_eq!(Value::Object(bound), json!({"day": "2026-02-02", "count": 7}), "{name}");
        }
    }

    #[test]
    fn all_errors_are_shown_with_the_parameters_of_the_workflow() {
        let failure = bind(&workflow(), &pairs(&[("dya", "x"), ("count", "many")]), Map::new()).unwrap_err();
        let (message, help) = failure.parts().unwrap();
        for expected in ["`dya`", "did you mean `day`", "`count` must be an integer", "`day` is required"] {
            assert!(message.contains(expected), "{expected}: {message}");
        }
        assert!(help.contains("-p day=YYYY-MM-DD  (required)"), "{help}");
        assert!(help.contains("-p count=INTEGER  (default 3)"), "{help}");
        assert_eq!(failure.exit_code(), 2);
    }

    #[test]
    fn invalid_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, expected) in [
            ("p.json", "[1]", "p.json:1:1"),
            ("p.json", "{\"day\": }", "p.json:1:9"),
            ("p.json", "{\"day\": \"x\", \"day\": \"y\"}", "`day` is defined twice"),
            ("p.toml", "day = ", "p.toml:1:"),
            ("p.toml", "day = 'x'\nday = 'y'", "p.toml:2:1"),
            ("p.yml", "count: 1\nday: [", "p.yml:2:"),
            ("p.yml", "day: x\nday: y", "p.yml:2:1"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let failure = read_file(&path).unwrap_err();
            let said = failure.plain();
            assert!(said.contains(expected), "{text}: {said}");
            assert_eq!(failure.exit_code(), 2);
        }
    }
}
