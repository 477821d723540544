//! What a run would do, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// What a run of a workflow would do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct PlanView {
    /// The workflow.
    pub workflow: String,
    /// The values of its params.
    pub params: Map<String, Value>,
    /// The limit that it shares with other active runs.
    pub concurrency: Option<PlannedLimitView>,
    /// The jobs in an order in which they can be executed. The handlers come last.
    pub jobs: Vec<PlannedJobView>,
    /// The secrets of the workflow.
    pub secrets: Vec<PlannedSecretView>,
    /// The last runs that have ended, the newest first.
    pub runs: Vec<PastRunView>,
    /// The jobs that take longest one after the other, by the times of the last runs.
    pub critical_path: Option<CriticalPathView>,
}

/// How many runs with the same key may be active at a time.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlannedLimit")]
pub struct PlannedLimitView {
    /// The key; null if it can't be made with these params.
    pub key: Option<String>,
    /// How many runs.
    pub limit: i64,
    /// What happens to one more.
    #[schemars(extend("enum" = ["wait", "skip", "cancel_oldest"]))]
    pub on_full: &'static str,
}

/// A job of a run that has not started.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlannedJob")]
pub struct PlannedJobView {
    /// Its name.
    pub job: String,
    /// Its kind.
    pub kind: &'static str,
    /// The jobs that it needs.
    pub needs: Vec<String>,
    /// The table for the end of a run that it belongs to.
    #[schemars(schema_with = "crate::schema::run_handler")]
    pub handler: Option<&'static str>,
    /// How the jobs that it needs must have ended.
    #[schemars(extend("enum" = ["all_successful", "none_failed", "any_successful", "any_failed", "all_finished"]))]
    pub when: &'static str,
    /// Whether a failure of the job is no failure of the run.
    pub allow_failure: bool,
    /// `runs`, `undecided`, `skipped` or `fails`.
    #[schemars(extend("enum" = ["runs", "undecided", "skipped", "fails"]))]
    pub forecast: &'static str,
    /// Why it is skipped, fails, or is undecided.
    pub reason: Option<String>,
    /// How many items it has; null if it has no items, or if a job of the run gives them.
    pub items: Option<usize>,
    /// The workflow that it calls.
    pub calls: Option<String>,
    /// The median of its times in the last runs.
    pub duration_ms: Option<i64>,
}

/// A secret of the workflow.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlannedSecret")]
pub struct PlannedSecretView {
    /// Its name.
    pub secret: String,
    /// Whether a worker in this process would find it; null if a program gives it.
    pub found: Option<bool>,
    /// Why it would not be found.
    pub reason: Option<String>,
}

/// A run that has ended.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PastRun")]
pub struct PastRunView {
    /// Its id.
    pub run_id: i64,
    /// Its state.
    #[schemars(schema_with = "crate::schema::run_status")]
    pub status: &'static str,
    /// How long it took.
    pub duration_ms: Option<i64>,
}

/// The jobs that take longest one after the other.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CriticalPath")]
pub struct CriticalPathView {
    /// Their names.
    pub jobs: Vec<String>,
    /// Their times together.
    pub duration_ms: i64,
}
