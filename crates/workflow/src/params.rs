//! The parameters of a workflow, and the values that a run gets for them.

use chrono::{DateTime, NaiveDate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{duration, limits, suggest};

/// A typed parameter of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The name: a letter or `_`, followed by letters, digits and `_`.
    pub name: String,
    /// The type of the values.
    #[serde(rename = "type")]
    pub kind: ParamKind,
    /// What the parameter is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The value if none is given. It has the parameter's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Whether a run without a value is refused.
    pub required: bool,
    /// The values that a `choice` allows. Empty for other types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
}

/// The type of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    /// Any text.
    String,
    /// A whole number of 64 bits.
    Integer,
    /// A finite number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// A time with its offset, as in RFC 3339.
    Datetime,
    /// A duration with units, like `1h 30m`.
    Duration,
    /// One of a list of texts.
    Choice,
    /// A list of any JSON values.
    List,
}

/// A value that a caller gives to a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Supplied {
    /// Text, as from `-p key=value`. It is parsed as the parameter's type.
    Text(String),
    /// JSON, as from a file of parameters. It must have the parameter's type.
    Json(Value),
}

/// Why the given values can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// The workflow has no parameter of this name.
    #[error("there is no parameter `{name}`{}", hint(.suggestion, .known))]
    Unknown {
        /// The name that was given.
        name: String,
        /// The nearest name that exists.
        suggestion: Option<String>,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A required parameter has no value.
    #[error("parameter `{name}` is required{details}")]
    Missing {
        /// The parameter's name.
        name: String,
        /// What the parameter is for and what its values are, for people.
        details: String,
    },
    /// A value is not of the parameter's type. The message does not repeat the value, because it may be secret.
    #[error("parameter `{name}` {reason}")]
    Invalid {
        /// The parameter's name.
        name: String,
        /// What the value must be.
        reason: String,
    },
    /// One parameter was given twice.
    #[error("parameter `{name}` is given twice")]
    Repeated {
        /// The parameter's name.
        name: String,
    },
}

fn hint(suggestion: &Option<String>, known: &[String]) -> String {
    match suggestion {
        Some(name) => format!("; did you mean `{name}`?"),
        None if known.is_empty() => "; this workflow has no parameters".to_owned(),
        None => format!("; the parameters are {}", known.join(", ")),
    }
}

fn missing(param: &Param) -> ParamError {
    let about = param.description.as_ref().map_or(String::new(), |text| format!(" ({text})"));
    let takes = match param.choices.as_slice() {
        [] => expectation(param.kind).to_owned(),
        choices => format!("one of {}", choices.join(", ")),
    };
    ParamError::Missing { name: param.name.clone(), details: format!("{about}: it takes {takes}") }
}

/// Checks the given values against the declared parameters and fills in defaults.
///
/// The result has every declared parameter, in the order of the declaration. An optional parameter without a value is
/// null, and [`env_value`] gives no variable for it.
///
/// # Errors
/// All errors at once. Those of given values come first.
pub fn bind(
    params: &[Param],
    supplied: Vec<(String, Supplied)>,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let mut errors = Vec::new();
    let mut given: Map<String, Value> = Map::new();
    for (name, value) in supplied {
        let Some(param) = params.iter().find(|param| param.name == name) else {
            errors.push(unknown(name, params));
            continue;
        };
        if given.contains_key(&name) {
            errors.push(ParamError::Repeated { name });
            continue;
        }
        let value = convert(param, value).unwrap_or_else(|reason| {
            errors.push(ParamError::Invalid { name: name.clone(), reason });
            Value::Null
        });
        given.insert(name, value);
    }
    let mut bound = Map::new();
    for param in params {
        let value = match given.remove(&param.name).or_else(|| param.default.clone()) {
            Some(value) => value,
            None => {
                if param.required {
                    errors.push(missing(param));
                }
                Value::Null
            }
        };
        bound.insert(param.name.clone(), value);
    }
    if errors.is_empty() { Ok(bound) } else { Err(errors) }
}

pub(crate) fn unknown(name: String, params: &[Param]) -> ParamError {
    let known: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
    let mut budget = limits::PARAMS;
    let suggestion =
        suggest::nearest(&name, known.iter().map(String::as_str), &mut budget).map(str::to_owned);
    ParamError::Unknown { name, suggestion, known }
}

/// Converts the value to the parameter's type. The error says what the value must be ("must be …").
pub(crate) fn convert(param: &Param, supplied: Supplied) -> Result<Value, String> {
    let must = || format!("must be {}", expectation(param.kind));
    let json = match supplied {
        Supplied::Text(text) => return convert_text(param, text),
        Supplied::Json(json) => json,
    };
    match (param.kind, &json) {
        (ParamKind::Integer, Value::Number(number)) => number.as_i64().map(Value::from).ok_or_else(must),
        (ParamKind::Number, Value::Number(number)) => {
            number.as_f64().filter(|number| number.is_finite()).ok_or_else(must).map(|_| json)
        }
        (ParamKind::Boolean, Value::Bool(_)) => Ok(json),
        (ParamKind::List, Value::Array(_)) => check_list(json),
        (
            ParamKind::String
            | ParamKind::Date
            | ParamKind::Datetime
            | ParamKind::Duration
            | ParamKind::Choice
            | ParamKind::List,
            Value::String(text),
        ) => convert_text(param, text.clone()),
        (
            ParamKind::String
            | ParamKind::Integer
            | ParamKind::Number
            | ParamKind::Boolean
            | ParamKind::Date
            | ParamKind::Datetime
            | ParamKind::Duration
            | ParamKind::Choice
            | ParamKind::List,
            other,
        ) => Err(format!("{}, not {}", must(), json_kind(other))),
    }
}

fn convert_text(param: &Param, text: String) -> Result<Value, String> {
    let must = || format!("must be {}", expectation(param.kind));
    match param.kind {
        ParamKind::String if text.contains('\0') => Err("must not contain a NUL character".to_owned()),
        ParamKind::String if text.len() > limits::TEXT_BYTES => {
            Err(format!("must have at most {} KiB", limits::TEXT_BYTES / 1024))
        }
        ParamKind::String => Ok(Value::from(text)),
        ParamKind::Integer => text.trim().parse::<i64>().map(Value::from).map_err(|_| must()),
        ParamKind::Number => read_number(text.trim()).ok_or_else(must),
        ParamKind::Boolean => match text.trim() {
            "true" => Ok(Value::from(true)),
            "false" => Ok(Value::from(false)),
            _ => Err(must()),
        },
        ParamKind::Date => read_date(&text),
        ParamKind::List => read_list(&text).and_then(check_list),
        ParamKind::Datetime => read_datetime(text.trim()),
        ParamKind::Duration => read_duration(text.trim()),
        ParamKind::Choice if param.choices.contains(&text) => Ok(Value::from(text)),
        ParamKind::Choice => {
            let mut budget = limits::CHOICES;
            let choices = param.choices.iter().map(String::as_str);
            let near = suggest::nearest(&text, choices, &mut budget)
                .map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
            Err(format!("must be one of {}{near}", param.choices.join(", ")))
        }
    }
}

/// Reads a number. A whole number stays an integer, so that `3` is not shown as `3.0`.
fn read_number(text: &str) -> Option<Value> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::from(integer));
    }
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from)
}

/// Reads a list: JSON when the text begins with `[`, else texts with commas between them.
fn read_list(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.starts_with('[') {
        let list = serde_json::from_str(text);
        return list.map_err(|error| format!("begins with `[`, so it must be a JSON list: {error}"));
    }
    let items = text.split(',').map(str::trim);
    Ok(if text.is_empty() { Value::Array(Vec::new()) } else { items.map(Value::from).collect() })
}

/// A process gets the list as one variable, so it has the limit of a text.
fn check_list(list: Value) -> Result<Value, String> {
    match list.to_string().len() > limits::TEXT_BYTES {
        true => Err(format!("must have at most {} KiB as JSON", limits::TEXT_BYTES / 1024)),
        false => Ok(list),
    }
}

fn read_date(text: &str) -> Result<Value, String> {
    let has_shape = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !has_shape {
        return Err(format!("must be {}", expectation(ParamKind::Date)));
    }
    match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        Ok(_) => Ok(Value::from(text)),
        Err(_) => Err("must be a day that exists in the calendar".to_owned()),
    }
}

/// Reads an instant. It keeps its offset, because `date` shows it as local time.
fn read_datetime(text: &str) -> Result<Value, String> {
    let joined = match text.as_bytes().get(10) {
        Some(b' ' | b't') if text.is_char_boundary(10) => format!("{}T{}", &text[..10], &text[11..]),
        _ => text.to_owned(),
    };
    match DateTime::parse_from_rfc3339(&joined) {
        Ok(_) => Ok(Value::from(joined)),
        Err(_) => Err(format!("must be {}", expectation(ParamKind::Datetime))),
    }
}

fn read_duration(text: &str) -> Result<Value, String> {
    match duration::parse_ms(text) {
        Ok(_) => Ok(Value::from(text)),
        Err(reason) => Err(format!("must be {}: {reason}", expectation(ParamKind::Duration))),
    }
}

/// What a value of this type looks like, for people.
pub(crate) fn expectation(kind: ParamKind) -> &'static str {
    match kind {
        ParamKind::String => "a string",
        ParamKind::Integer => "an integer",
        ParamKind::Number => "a number",
        ParamKind::Boolean => "true or false",
        ParamKind::Date => "a date like 2026-01-31",
        ParamKind::Datetime => {
            "a time with its offset like 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00"
        }
        ParamKind::Duration => "a duration like 90s or 1h 30m",
        ParamKind::Choice => "one of its choices",
        ParamKind::List => "a list like a,b or [\"a\", 1]",
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The environment variable of a parameter: `WINDLASS_PARAM_`, followed by its name in upper case.
pub fn env_name(param: &str) -> String {
    format!("WINDLASS_PARAM_{}", param.to_ascii_uppercase())
}

/// The value of a parameter's environment variable. A parameter without a value has no variable.
pub fn env_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Some(value.to_string()),
    }
}
