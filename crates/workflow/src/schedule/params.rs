//! The parameters that a schedule gives to its runs.

use serde_json::{Map, Value, json};

use super::{Timetable, local_text};
use crate::model::Schedule;
use crate::params::{self, Param, ParamError, Supplied};
use crate::template::{self, TemplateError};

/// Templates are tried with the first occurrence after this instant: 2026-01-01 in UTC.
const TRIED_FROM_MS: i64 = 1_767_225_600_000;

/// Why a parameter of a schedule has no value for an occurrence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}`: {error}")]
pub struct ScheduleParamError {
    /// The parameter's name.
    pub name: String,
    /// What is wrong with the template.
    pub error: TemplateError,
}

/// The values that a schedule gives to its parameters for one occurrence, with templates rendered. A rendered template is a
/// text; [`run_params`] converts it to the parameter's type.
///
/// # Errors
/// The parameter whose template can't be rendered, and why.
pub fn render_params(
    schedule: &Schedule,
    scheduled_for_ms: i64,
) -> Result<Map<String, Value>, ScheduleParamError> {
    let scheduled_for = local_text(scheduled_for_ms, &schedule.timezone);
    let rendered = schedule.params.iter().map(|(name, value)| {
        let value = match template_of(value) {
            Some(text) => Value::from(render(name, text, &scheduled_for)?),
            None => value.clone(),
        };
        Ok((name.clone(), value))
    });
    rendered.collect()
}

/// The parameters of a run for one occurrence: the values that the schedule gives, and defaults for the rest. Templates are
/// rendered, and each value has the type of its parameter.
///
/// # Errors
/// All errors. The workflow's parameters may have changed since the schedule was made.
pub fn run_params(
    params: &[Param],
    schedule: &Schedule,
    scheduled_for_ms: i64,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let scheduled_for = local_text(scheduled_for_ms, &schedule.timezone);
    let given = schedule.params.iter().map(|(name, value)| (name.clone(), Supplied::Json(value.clone())));
    params::bind(params, render_all(given.collect(), &scheduled_for)?)
}

/// Checks the values that a caller gives to a schedule, and returns the values that the schedule stores. A stored value has
/// the parameter's type, or is a template. Templates are tried with an occurrence.
///
/// # Errors
/// All unknown names, values of the wrong type, templates that fail, and required parameters without a value.
pub fn check_params(
    params: &[Param],
    schedule: &Schedule,
    supplied: Vec<(String, Supplied)>,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let names: Vec<String> = supplied.iter().map(|(name, _)| name.clone()).collect();
    let templates: Vec<Option<String>> = supplied.iter().map(|(_, value)| written_template(value)).collect();
    let scheduled_for = local_text(tried_at_ms(schedule), &schedule.timezone);
    let mut bound = params::bind(params, render_all(supplied, &scheduled_for)?)?;
    let stored = names.into_iter().zip(templates).map(|(name, template)| {
        let value = bound.remove(&name).unwrap_or_default();
        (name, template.map_or(value, Value::from))
    });
    Ok(stored.collect())
}

/// The occurrence with which templates are tried.
fn tried_at_ms(schedule: &Schedule) -> i64 {
    let Ok(timetable) = Timetable::of(schedule) else { return TRIED_FROM_MS };
    let next = timetable.after(TRIED_FROM_MS).next();
    next.or_else(|| timetable.until(TRIED_FROM_MS).next())
        .map_or(TRIED_FROM_MS, |occurrence| occurrence.at_ms)
}

/// Renders the templates among the values. The rendered text is parsed like a text that a person gives.
fn render_all(
    supplied: Vec<(String, Supplied)>,
    scheduled_for: &str,
) -> Result<Vec<(String, Supplied)>, Vec<ParamError>> {
    let mut errors = Vec::new();
    let mut rendered = Vec::with_capacity(supplied.len());
    for (name, value) in supplied {
        let value = match written_template(&value).map(|text| render(&name, &text, scheduled_for)) {
            Some(Ok(text)) => Supplied::Text(text),
            Some(Err(ScheduleParamError { name, error })) => {
                errors.push(ParamError::Invalid {
                    name,
                    reason: format!("has a template that fails: {error}"),
                });
                continue;
            }
            None => value,
        };
        rendered.push((name, value));
    }
    if errors.is_empty() { Ok(rendered) } else { Err(errors) }
}

/// The text of the value, if it is a template.
fn written_template(value: &Supplied) -> Option<String> {
    let text = match value {
        Supplied::Text(text) => Some(text.as_str()).filter(|text| template::is_template(text)),
        Supplied::Json(json) => template_of(json),
    };
    text.map(str::to_owned)
}

fn template_of(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| template::is_template(text))
}

fn render(name: &str, text: &str, scheduled_for: &str) -> Result<String, ScheduleParamError> {
    template::render(text, &json!({ "scheduled_for": scheduled_for }))
        .map_err(|error| ScheduleParamError { name: name.to_owned(), error })
}
