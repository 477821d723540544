//! What `doctor` found, as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// All checks of the machine and the database.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Doctor")]
pub struct DoctorView {
    /// There is no problem. A warning is none.
    pub ok: bool,
    /// One for each check.
    pub findings: Vec<FindingView>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct FindingView {
    /// What was checked.
    pub about: &'static str,
    /// How it is.
    pub state: FindingState,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub next_step: Option<String>,
}

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum FindingState {
    /// Nothing is wrong.
    Ok,
    /// It works, and may not for long.
    Warning,
    /// It does not work.
    Problem,
}
