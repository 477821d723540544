//! The form that starts a run: a field for each param of the workflow.

use askama::Template;
use serde_json::{Map, Value as Json, json};
use windlass_workflow::params::Param;

use super::fields::{Field, FieldErrors, FieldSort, fields};
use super::frame::{Frame, Reader, Section};
use super::runs::value_as_text;
use super::url;

/// What the form is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A new run of a registered workflow.
    Workflow(String),
    /// A new run with the definition of this one.
    Again {
        /// The run.
        run_id: i64,
        /// The name of its workflow.
        workflow: String,
        /// The values of its params, which a new run keeps.
        params: Map<String, Json>,
    },
}

/// What the form is filled in with.
#[derive(Debug)]
pub struct Filled<'f> {
    /// The values.
    pub values: &'f Map<String, Json>,
    /// What is wrong with a form that was sent: the name of the param, or nothing, and a sentence.
    pub errors: &'f FieldErrors,
    /// The key with which the form starts a run once.
    pub key: &'f str,
}

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage {
    frame: Frame,
    workflow: String,
    workflow_href: String,
    run_id: Option<i64>,
    action: String,
    fields: Vec<Field>,
    error: Option<String>,
    command: String,
    curl: String,
    key: String,
}

/// The form, filled in.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(start: &Start, params: &[Param], filled: &Filled<'_>, reader: &Reader) -> askama::Result<String> {
    let Filled { values, errors, key } = filled;
    let (workflow, run_id) = match start {
        Start::Workflow(name) => (name, None),
        Start::Again { run_id, workflow, params: _ } => (workflow, Some(*run_id)),
    };
    let given = given(start, params, values);
    let title = format!("Start {workflow}");
    let section = if run_id.is_some() { Section::Runs } else { Section::Workflows };
    let workflow_href = format!("{}/workflows/{}", reader.base, url::encode(workflow));
    StartPage {
        frame: Frame::new(reader, section, &title),
        action: match run_id {
            Some(id) => format!("{}/runs/{id}/again", reader.base),
            None => format!("{workflow_href}/start"),
        },
        workflow_href,
        run_id,
        fields: fields("", params, values, errors),
        error: errors.iter().find(|(name, _)| name.is_none()).map(|(_, error)| error.clone()),
        command: command(start, &given),
        curl: curl(start, &given),
        key: (*key).to_owned(),
        workflow: workflow.clone(),
    }
    .render()
}

/// The same run from the command line.
fn command(start: &Start, given: &Map<String, Json>) -> String {
    let mut command = match start {
        Start::Again { run_id, .. } => format!("windlass rerun {run_id} --detach"),
        Start::Workflow(workflow) => format!("windlass submit {}", quoted(workflow)),
    };
    for (name, value) in given {
        command.push_str(&format!(" -p {}", quoted(&format!("{name}={}", value_as_text(value)))));
    }
    command
}

/// The same run by REST.
fn curl(start: &Start, given: &Map<String, Json>) -> String {
    let (path, body) = match start {
        Start::Again { run_id, .. } => (format!("runs/{run_id}/rerun"), json!({ "params": given })),
        Start::Workflow(workflow) => ("runs".to_owned(), json!({ "workflow": workflow, "params": given })),
    };
    format!(
        "curl -X POST -H \"Authorization: Bearer $WINDLASS_TOKEN\" -H 'Content-Type: application/json' \\\n  -d {} \
         $WINDLASS_URL/api/v1/{path}",
        quoted(&body.to_string())
    )
}

/// The values that a command must name: those that differ from the defaults, or from the run that is repeated.
fn given(start: &Start, params: &[Param], values: &Map<String, Json>) -> Map<String, Json> {
    let is_known = |param: &Param, value: &Json| match start {
        Start::Workflow(_) => param.default.as_ref() == Some(value),
        Start::Again { params: kept, .. } => kept.get(&param.name) == Some(value),
    };
    params
        .iter()
        .filter_map(|param| Some((param, values.get(&param.name)?)))
        .filter(|(param, value)| !value.is_null() && !is_known(param, value))
        .map(|(param, value)| (param.name.clone(), value.clone()))
        .collect()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@+".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_quoted() {
        let words = ["a-b", "day=2026-11-21", "", "a b", "it's", "$(rm)"].map(quoted);
        assert_eq!(words, ["a-b", "day=2026-11-21", "''", "'a b'", r"'it'\''s'", "'$(rm)'"]);
    }
}
