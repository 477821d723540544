//! The form that starts a run: a field for each param of the workflow.

use askama::Template;
use serde_json::{Map, Value as Json};
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
    },
}

/// A field of the form.
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
}

/// The form, filled in with these values. `errors` are of a form that was sent: the name of the param, or nothing, and a
/// sentence.
///
/// # Errors
/// As of the template engine, which writes into memory.
pub fn page(
    start: &Start,
    params: &[Param],
    values: &Map<String, Json>,
    errors: &FieldErrors,
    reader: &Reader,
) -> askama::Result<String> {
    let (workflow, run_id) = match start {
        Start::Workflow(name) => (name, None),
        Start::Again { run_id, workflow } => (workflow, Some(*run_id)),
    };
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
        command: command(workflow, run_id, params, values),
        curl: curl(workflow, params, values),
        workflow: workflow.clone(),
    }
    .render()
}

/// The same run from the command line.
fn command(workflow: &str, run_id: Option<i64>, params: &[Param], values: &Map<String, Json>) -> String {
    let mut command = match run_id {
        Some(id) => format!("windlass rerun {id} --detach"),
        None => format!("windlass submit {}", quoted(workflow)),
    };
    for (name, value) in shown(params, values) {
        command.push_str(&format!(" -p {}", quoted(&format!("{name}={}", value_as_text(value)))));
    }
    command
}

/// The same run by REST.
fn curl(workflow: &str, params: &[Param], values: &Map<String, Json>) -> String {
    let params: Map<String, Json> =
        shown(params, values).into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let body = serde_json::json!({ "workflow": workflow, "params": params });
    format!(
        "curl -H \"Authorization: Bearer $WINDLASS_TOKEN\" -H 'Content-Type: application/json' \\\n  -d {} \
         $WINDLASS_URL/api/v1/runs",
        quoted(&body.to_string())
    )
}

/// The values that differ from the defaults.
fn shown<'v>(params: &'v [Param], values: &'v Map<String, Json>) -> Vec<(&'v str, &'v Json)> {
    params
        .iter()
        .filter_map(|param| Some((param, values.get(&param.name)?)))
        .filter(|(param, value)| !value.is_null() && param.default.as_ref() != Some(value))
        .map(|(param, value)| (param.name.as_str(), value))
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
