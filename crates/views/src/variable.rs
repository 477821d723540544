//! A variable as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::Variable;

use crate::time::Instant;

/// A value that is kept between runs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Variable")]
pub struct VariableView {
    /// Its name.
    variable: String,
    /// Its value.
    value: Value,
    /// When it was set last.
    changed_at: Instant,
    /// The run whose job has set it, even if the run is deleted. Null if somebody else has set it.
    run_id: Option<i64>,
}

impl VariableView {
    /// From the row of the variable.
    pub fn new(variable: &Variable) -> VariableView {
        VariableView {
            variable: variable.name.clone(),
            value: serde_json::from_str(&variable.value).unwrap_or(Value::Null),
            changed_at: Instant::at(variable.changed_at),
            run_id: variable.run_id,
        }
    }
}

/// A variable that was deleted.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeletedVariable")]
pub struct DeletedVariable {
    /// Its name.
    pub variable: String,
}
