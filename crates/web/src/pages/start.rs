//! The form that starts a run: a field for each param of the workflow.

use askama::Template;
use serde_json::{Map, Value as Json};
use windlass_workflow::params::{Param, ParamKind};

use super::frame::{Frame, Reader, Section};
use super::runs::value_as_text;
use super::url;

/// The longest value of a field, in bytes.
pub const VALUE_BYTES_MAX: usize = 100_000;

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
struct Field {
    name: String,
    label: String,
    about: String,
    sort: FieldSort,
    value: String,
    choices: Vec<(String, bool)>,
    is_required: bool,
    error: Option<String>,
}

enum FieldSort {
    Line,
    Number,
    Date,
    Text,
    Choice,
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
    errors: &[(Option<String>, String)],
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
        fields: params.iter().map(|param| field(param, values, errors)).collect(),
        error: errors.iter().find(|(name, _)| name.is_none()).map(|(_, error)| error.clone()),
        command: command(workflow, run_id, params, values),
        curl: curl(workflow, params, values),
        workflow: workflow.clone(),
    }
    .render()
}

/// The values that a form sent, by param. An empty field is no value, but for texts that have a default.
#[must_use]
pub fn supplied(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let fields = pairs.iter().filter_map(|(name, value)| Some((name.strip_prefix("param.")?, value)));
    fields
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n")))
        .collect()
}

fn field(param: &Param, values: &Map<String, Json>, errors: &[(Option<String>, String)]) -> Field {
    let given = values.get(&param.name).filter(|value| !value.is_null());
    let value = given.or(param.default.as_ref()).map_or_else(String::new, value_as_text);
    let choices: Vec<String> = match param.kind {
        ParamKind::Boolean => vec!["true".to_owned(), "false".to_owned()],
        ParamKind::Choice => param.choices.clone(),
        ParamKind::String
        | ParamKind::Integer
        | ParamKind::Number
        | ParamKind::Date
        | ParamKind::Datetime
        | ParamKind::Duration
        | ParamKind::List => Vec::new(),
    };
    let (sort, example) = match param.kind {
        ParamKind::Boolean | ParamKind::Choice => (FieldSort::Choice, ""),
        ParamKind::Integer => (FieldSort::Number, "a whole number"),
        ParamKind::Number => (FieldSort::Line, "a number"),
        ParamKind::Date => (FieldSort::Date, ""),
        ParamKind::Datetime => (FieldSort::Line, "as 2026-11-21T06:00:00+01:00"),
        ParamKind::Duration => (FieldSort::Line, "as 1h 30m"),
        ParamKind::List => (FieldSort::Text, "a list in JSON"),
        ParamKind::String if value.contains('\n') => (FieldSort::Text, ""),
        ParamKind::String => (FieldSort::Line, ""),
    };
    let about = [param.description.clone().unwrap_or_default(), example.to_owned()];
    Field {
        name: format!("param.{}", param.name),
        label: param.name.clone(),
        about: about.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; "),
        sort,
        choices: choices.into_iter().map(|choice| (choice.clone(), choice == value)).collect(),
        value,
        is_required: param.required,
        error: errors
            .iter()
            .find(|(name, _)| name.as_ref() == Some(&param.name))
            .map(|(_, error)| error.clone()),
    }
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

    #[test]
    fn only_fields_of_params_are_values() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let pairs = [
            pair("form_token", "x"),
            pair("param.day", "monday"),
            pair("param.none", ""),
            pair("param.text", "a\r\nb"),
        ];
        assert_eq!(supplied(&pairs), [pair("day", "monday"), pair("text", "a\nb")]);
    }
}
