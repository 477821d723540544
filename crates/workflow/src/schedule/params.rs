//! The parameters that a schedule gives to its runs.

use serde_json::{Map, Value, json};

use super::local_text;
use crate::model::Schedule;
use crate::template::{self, TemplateError};

/// The values of a schedule's parameters for one occurrence, templates filled in.
///
/// # Errors
/// The parameter, and why its template has no value.
pub fn render_params(
    schedule: &Schedule,
    scheduled_for_ms: i64,
) -> Result<Map<String, Value>, ScheduleParamError> {
    let context = json!({ "scheduled_for": local_text(scheduled_for_ms, &schedule.timezone) });
    let render = |(name, value): (&String, &Value)| {
        let rendered = match value {
            Value::String(text) => Value::from(
                template::render(text, &context)
                    .map_err(|error| ScheduleParamError { name: name.clone(), error })?,
            ),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.clone()
            }
        };
        Ok((name.clone(), rendered))
    };
    schedule.params.iter().map(render).collect()
}

/// A parameter of a schedule that has no value for an occurrence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameter `{name}`: {error}")]
pub struct ScheduleParamError {
    /// Its name.
    pub name: String,
    /// What is wrong with its template.
    pub error: TemplateError,
}
