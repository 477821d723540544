//! The filters and tests of templates. The result of each is bounded.

use std::sync::OnceLock;

use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use super::date as dates;
use super::text::to_text;
use crate::limits;

/// The filters, as in `x | upper`.
pub(super) const FILTERS: [&str; 11] =
    ["date", "default", "first", "join", "last", "length", "lower", "replace", "tojson", "trim", "upper"];
/// The tests, as in `x is defined`.
pub(super) const TESTS: [&str; 3] = ["defined", "none", "undefined"];

/// The environment in which expressions are evaluated. It has the above filters and tests and nothing else.
pub(crate) fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::empty();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(limits::TEMPLATE_FUEL));
        environment.add_filter("date", date);
        environment.add_filter("default", default);
        environment.add_filter("first", minijinja::filters::first);
        environment.add_filter("join", join);
        environment.add_filter("last", minijinja::filters::last);
        environment.add_filter("length", minijinja::filters::length);
        environment.add_filter("lower", lower);
        environment.add_filter("replace", replace);
        environment.add_filter("tojson", to_json);
        environment.add_filter("trim", trim);
        environment.add_filter("upper", upper);
        environment.add_test("defined", minijinja::tests::is_defined);
        environment.add_test("none", minijinja::tests::is_none);
        environment.add_test("undefined", minijinja::tests::is_undefined);
        environment
    })
}

/// Formats a date or a time, after adding `days`. Without a format it is the day.
fn date(value: Value, format: Option<String>, options: Kwargs) -> Result<String, Error> {
    let days: Option<i64> = options.get("days")?;
    options.assert_all_used()?;
    dates::format(&text_of(&value)?, format.as_deref(), days.unwrap_or(0)).map_err(invalid)
}

/// Replaces a missing value or null.
fn default(value: Value, instead: Value) -> Value {
    if value.is_undefined() || value.is_none() { instead } else { value }
}

fn lower(value: Value) -> Result<String, Error> {
    text_of(&value).map(|text| text.to_lowercase())
}

fn trim(value: Value) -> Result<String, Error> {
    text_of(&value).map(|text| text.trim().to_owned())
}

fn upper(value: Value) -> Result<String, Error> {
    text_of(&value).map(|text| text.to_uppercase())
}

fn replace(value: Value, from: String, to: String) -> Result<String, Error> {
    let text = text_of(&value)?;
    let grown = text.matches(from.as_str()).count().saturating_mul(to.len());
    within_limit(text.len().saturating_add(grown))?;
    Ok(text.replace(from.as_str(), &to))
}

/// The value as a template would render it. A missing value or null is an error.
fn text_of(value: &Value) -> Result<String, Error> {
    to_text(value).map_err(|reason| Error::new(ErrorKind::UndefinedError, reason))
}

fn join(list: Value, separator: Option<String>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut joined = String::new();
    for (at, item) in list.try_iter()?.enumerate() {
        if at > 0 {
            joined.push_str(&separator);
        }
        joined.push_str(&text_of(&item)?);
        within_limit(joined.len())?;
    }
    Ok(joined)
}

fn to_json(value: Value) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let text = serde_json::to_string(&value).map_err(|_| invalid("the value cannot be written as JSON"))?;
    within_limit(text.len())?;
    Ok(text)
}

fn within_limit(bytes: usize) -> Result<(), Error> {
    match bytes <= limits::TEMPLATE_OUTPUT_BYTES {
        true => Ok(()),
        false => Err(invalid(format!("the text grows beyond {} KiB", limits::TEMPLATE_OUTPUT_BYTES / 1024))),
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
