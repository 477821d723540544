//! The filters and tests of templates. The result of each is bounded.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use minijinja::machinery::ast::CallArg;
use minijinja::value::{Kwargs, Serde, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use super::date as dates;
use super::text::to_text;
use crate::limits;

/// A filter, as in `x | upper`, and what may stand in its brackets.
pub(super) struct Filter {
    pub(super) name: &'static str,
    /// How many values it needs, and how many it may have.
    pub(super) values: RangeInclusive<usize>,
    /// The values that it may have by name, as `days` in `date(days=1)`.
    pub(super) named: &'static [&'static str],
}

/// The filters by name.
pub(super) const FILTERS: [Filter; 14] = [
    Filter { name: "date", values: 0..=1, named: &["days"] },
    Filter { name: "default", values: 1..=1, named: &[] },
    Filter { name: "first", values: 0..=0, named: &[] },
    Filter { name: "fromjson", values: 0..=0, named: &[] },
    Filter { name: "join", values: 0..=1, named: &[] },
    Filter { name: "last", values: 0..=0, named: &[] },
    Filter { name: "length", values: 0..=0, named: &[] },
    Filter { name: "lower", values: 0..=0, named: &[] },
    Filter { name: "range", values: 0..=0, named: &[] },
    Filter { name: "replace", values: 2..=2, named: &[] },
    Filter { name: "split", values: 0..=1, named: &[] },
    Filter { name: "tojson", values: 0..=0, named: &[] },
    Filter { name: "trim", values: 0..=0, named: &[] },
    Filter { name: "upper", values: 0..=0, named: &[] },
];
impl Filter {
    /// What is wrong with the values in its brackets.
    pub(super) fn complaint(&self, written: &[CallArg<'_>]) -> Option<String> {
        let mut values = 0;
        for value in written {
            match value {
                CallArg::Pos(_) => values += 1,
                CallArg::Kwarg(name, _) if !self.named.contains(name) => {
                    let named =
                        self.named.first().map_or(String::new(), |named| format!("; it takes `{named}`"));
                    return Some(format!("`{}` takes no `{name}`{named}", self.name));
                }
                // `allowed` refuses to unpack.
                CallArg::Kwarg(..) | CallArg::PosSplat(_) | CallArg::KwargSplat(_) => (),
            }
        }
        let takes = match (*self.values.start(), *self.values.end()) {
            (_, 0) => "no value".to_owned(),
            (1, 1) => "one value".to_owned(),
            (least, most) if least == most => format!("{most} values"),
            (_, most) => format!("at most {most} value"),
        };
        let is_allowed = self.values.contains(&values);
        (!is_allowed).then(|| format!("`{}` takes {takes} in brackets, and here are {values}", self.name))
    }
}

/// The most parts of a text: each may be an item.
const SPLIT_PARTS: usize = limits::ITEMS as usize;
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
        environment.add_filter("fromjson", from_json);
        environment.add_filter("join", join);
        environment.add_filter("last", minijinja::filters::last);
        environment.add_filter("length", minijinja::filters::length);
        environment.add_filter("lower", lower);
        environment.add_filter("range", range);
        environment.add_filter("replace", replace);
        environment.add_filter("split", split);
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

/// The value that a text has as JSON.
fn from_json(value: Value) -> Result<Value, Error> {
    let text = text_of(&value)?;
    let parsed: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| invalid(format!("the text is not JSON: {error}")))?;
    Ok(Value::from(Serde(parsed)))
}

/// The whole numbers from 0 up to the value, without it.
fn range(value: Value) -> Result<Value, Error> {
    let count = value.as_i64().ok_or_else(|| invalid("`range` needs a whole number"))?;
    if count > limits::ITEMS {
        return Err(invalid(format!("`range` gives at most {} numbers", limits::ITEMS)));
    }
    Ok((0..count).map(Value::from).collect())
}

/// The parts of a text between the separators; without a separator, its words. The separator may not be empty.
fn split(value: Value, separator: Option<String>) -> Result<Value, Error> {
    let text = text_of(&value)?;
    let part = |part: &str| Value::from(part);
    let parts: Vec<Value> = match separator.as_deref() {
        Some("") => return Err(invalid("`split` needs a separator that is not empty")),
        Some(separator) => text.split(separator).map(part).take(SPLIT_PARTS + 1).collect(),
        None => text.split_whitespace().map(part).take(SPLIT_PARTS + 1).collect(),
    };
    match parts.len() > SPLIT_PARTS {
        true => Err(invalid(format!("`split` gives at most {SPLIT_PARTS} parts"))),
        false => Ok(parts.into()),
    }
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
