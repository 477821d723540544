//! The fields of a form, one for each typed value that is asked for.

use serde_json::{Map, Value as Json};
use windlass_workflow::params::{Param, ParamKind};

use super::runs::value_as_text;

/// The longest value of a field, in bytes.
pub const VALUE_BYTES_MAX: usize = 100_000;

/// How the key of a run begins that a form has made, so that the same form starts it once.
pub const FORM_KEY: &str = "form:";

/// A field of a form.
pub(super) struct Field {
    /// Its id, which no other field of the page has.
    pub(super) id: String,
    /// Its name in the form.
    pub(super) name: String,
    pub(super) label: String,
    pub(super) about: String,
    pub(super) sort: FieldSort,
    pub(super) value: String,
    pub(super) choices: Vec<(String, bool)>,
    pub(super) is_required: bool,
    pub(super) error: Option<String>,
}

impl Field {
    /// The ids of the texts that describe it, for readers that do not see where they stand.
    pub(super) fn described_by(&self) -> String {
        let about = (!self.about.is_empty()).then(|| format!("{}-about", self.id));
        let error = self.error.as_ref().map(|_error| format!("{}-error", self.id));
        about.into_iter().chain(error).collect::<Vec<_>>().join(" ")
    }
}

/// How a value is filled in.
pub(super) enum FieldSort {
    Line,
    Number,
    Date,
    Text,
    Choice,
}

/// What is wrong with a form that was sent: the name of the param, or nothing, and a sentence.
pub type FieldErrors = [(Option<String>, String)];

/// The fields for some params, filled in with values. `form` is a part of their ids.
pub(super) fn fields(
    form: &str,
    params: &[Param],
    values: &Map<String, Json>,
    errors: &FieldErrors,
) -> Vec<Field> {
    params.iter().map(|param| field(form, param, values, errors)).collect()
}

/// The values that a form sent, by param. An empty field is no value.
#[must_use]
pub fn supplied(pairs: &[(String, String)]) -> Vec<(String, String)> {
    let fields = pairs.iter().filter_map(|(name, value)| Some((name.strip_prefix("param.")?, value)));
    fields
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.replace("\r\n", "\n")))
        .collect()
}

fn field(form: &str, param: &Param, values: &Map<String, Json>, errors: &FieldErrors) -> Field {
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
    let name = format!("param.{}", param.name);
    Field {
        id: format!("{form}{name}"),
        name,
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

#[cfg(test)]
mod tests {
    use super::*;

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
