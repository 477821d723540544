//! The parameters that a schedule gives to its runs.

use serde_json::{Map, Value, json};

use super::{Timetable, local_text};
use crate::model::{Param, Schedule};
use crate::params::{self, ParamError, Supplied};
use crate::template::{self, TemplateError};

/// Where an occurrence is looked for on which templates are tried: 2026-01-01 in UTC.
const TRIED_FROM_MS: i64 = 1_767_225_600_000;

/// A parameter of a schedule that has no value for an occurrence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}`: {error}")]
pub struct ScheduleParamError {
    /// Its name.
    pub name: String,
    /// What is wrong with its template.
    pub error: TemplateError,
}

/// The values of a schedule's parameters for one occurrence, templates filled in. What a template gives is
/// text; [`run_params`] makes it what the parameter is.
///
/// # Errors
/// The parameter, and why its template has no value.
pub fn render_params(
    schedule: &Schedule,
    scheduled_for_ms: i64,
) -> Result<Map<String, Value>, ScheduleParamError> {
    let scheduled_for = local_text(scheduled_for_ms, &schedule.timezone);
    let rendered = schedule.params.iter().map(|(name, value)| {
        let value = match template_of(value) {
            Some(text) => Value::from(fill(name, text, &scheduled_for)?),
            None => value.clone(),
        };
        Ok((name.clone(), value))
    });
    rendered.collect()
}

/// The parameters of a run for one occurrence: what the schedule gives, templates filled in, each of its type,
/// and defaults for the rest.
///
/// # Errors
/// All that is wrong, also when the workflow's parameters have changed since the schedule was made.
pub fn run_params(
    params: &[Param],
    schedule: &Schedule,
    scheduled_for_ms: i64,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let scheduled_for = local_text(scheduled_for_ms, &schedule.timezone);
    let given = schedule.params.iter().map(|(name, value)| (name.clone(), Supplied::Json(value.clone())));
    params::bind(params, filled(given.collect(), &scheduled_for)?)
}

/// Checks the values that somebody gives to a schedule, and returns them as the schedule keeps them: of the
/// parameter's type, or a template, which is tried on an occurrence.
///
/// # Errors
/// All that is wrong: names that the workflow has not, values of the wrong type, templates that fail, required
/// parameters without a value.
pub fn check_params(
    params: &[Param],
    schedule: &Schedule,
    supplied: Vec<(String, Supplied)>,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let names: Vec<String> = supplied.iter().map(|(name, _)| name.clone()).collect();
    let templates: Vec<Option<String>> = supplied.iter().map(|(_, value)| written_template(value)).collect();
    let scheduled_for = local_text(tried_at_ms(schedule), &schedule.timezone);
    let mut bound = params::bind(params, filled(supplied, &scheduled_for)?)?;
    let kept = names.into_iter().zip(templates).map(|(name, template)| {
        let value = bound.remove(&name).unwrap_or_default();
        (name, template.map_or(value, Value::from))
    });
    Ok(kept.collect())
}

fn tried_at_ms(schedule: &Schedule) -> i64 {
    let Ok(timetable) = Timetable::of(schedule) else { return TRIED_FROM_MS };
    let next = timetable.after(TRIED_FROM_MS).next();
    next.or_else(|| timetable.until(TRIED_FROM_MS).next())
        .map_or(TRIED_FROM_MS, |occurrence| occurrence.at_ms)
}

/// The same values with templates filled in, whose text then counts as written by hand.
fn filled(
    supplied: Vec<(String, Supplied)>,
    scheduled_for: &str,
) -> Result<Vec<(String, Supplied)>, Vec<ParamError>> {
    let mut errors = Vec::new();
    let mut filled = Vec::with_capacity(supplied.len());
    for (name, value) in supplied {
        let value = match written_template(&value).map(|text| fill(&name, &text, scheduled_for)) {
            Some(Ok(text)) => Supplied::Text(text),
            Some(Err(ScheduleParamError { name, error })) => {
                errors.push(ParamError::Invalid {
                    name,
                    reason: format!("has a template without a value: {error}"),
                });
                continue;
            }
            None => value,
        };
        filled.push((name, value));
    }
    if errors.is_empty() { Ok(filled) } else { Err(errors) }
}

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

fn fill(name: &str, text: &str, scheduled_for: &str) -> Result<String, ScheduleParamError> {
    template::render(text, &json!({ "scheduled_for": scheduled_for }))
        .map_err(|error| ScheduleParamError { name: name.to_owned(), error })
}
