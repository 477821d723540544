//! What a workflow is once it has been read and checked.
//!
//! These are plain values: every default is filled in, every name is resolved, every duration is
//! in milliseconds. The engine stores this model as JSON and never sees the file it came from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The queue of a job that names none.
pub const DEFAULT_QUEUE: &str = "default";
/// How many deaths of its worker a job survives when it does not say.
pub const DEFAULT_MAX_INTERRUPTIONS: i64 = 25;

/// A checked workflow. Only the parser and the builder make one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// Its name; unique among the workflows of a database.
    pub name: String,
    /// What it is for, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How long a run may take in all, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// Parameters in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Environment of every job; values may be templates over `params` and `run`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// When it runs by itself, in the order of the file; each has a name of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// Jobs in the order of the file. `needs` and `uses` index into this list.
    pub jobs: Vec<Job>,
}

/// The name of a workflow's only schedule when it has none of its own.
pub const DEFAULT_SCHEDULE: &str = "default";

/// When a workflow runs by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Unique within the workflow.
    pub name: String,
    /// At which times.
    #[serde(flatten)]
    pub rule: Rule,
    /// The IANA name of the zone whose clock a `cron` rule reads.
    pub timezone: String,
    /// What becomes of an occurrence while an earlier run is not over.
    pub overlap: Overlap,
    /// What becomes of the occurrences that nobody was there for.
    pub catchup: Catchup,
    /// How old a missed occurrence may be to be caught up, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup_window_ms: Option<i64>,
    /// How many missed occurrences are caught up at most, the newest of them.
    pub catchup_max: i64,
    /// No occurrence before this instant, in milliseconds since the Unix epoch. `every` counts from it, or
    /// from the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// No occurrence from this instant on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// Each occurrence starts later by chance, by up to this time in milliseconds.
    pub jitter_ms: i64,
    /// Values of the workflow's parameters; texts may be templates over `scheduled_for`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub params: serde_json::Map<String, serde_json::Value>,
}

/// At which times a schedule occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A cron expression of five or six fields, or a word like `@daily`.
    Cron(String),
    /// A fixed interval in milliseconds, whatever clocks on the wall do.
    EveryMs(i64),
}

/// What becomes of an occurrence while an earlier run of its schedule is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It gets no run.
    #[default]
    Skip,
    /// The last such occurrence waits; those before it get no run.
    QueueOne,
    /// All of them wait, in order.
    QueueAll,
    /// It runs beside.
    Allow,
    /// The earlier run is cancelled, jobs get their time to end; then it runs.
    CancelRunning,
    /// The earlier run is cancelled and its processes are killed at once; then it runs.
    TerminateRunning,
}

/// What becomes of the occurrences that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Catchup {
    /// They get no run.
    None,
    /// The last of them runs.
    #[default]
    Last,
    /// All of them run.
    All,
}

/// How many jobs with the same key may run at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    /// May be a template over `params` and `run`.
    pub key: String,
    /// At least 1.
    pub limit: i64,
    /// What becomes of a job that finds no room.
    pub on_full: OnFull,
}

/// What becomes of a job that finds no room under its concurrency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// It waits.
    #[default]
    Wait,
    /// It is skipped.
    Skip,
    /// The oldest that has room is cancelled for it.
    CancelOldest,
}

/// One node of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Unique within the workflow.
    pub name: String,
    /// What it is for, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it executes.
    #[serde(flatten)]
    pub action: Action,
    /// Jobs that must have finished before, as indices into [`Workflow::jobs`], ascending, without
    /// duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<usize>,
    /// Jobs whose outputs its templates read, as indices, ascending. Each is an ancestor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<usize>,
    /// Environment of this job, over that of the workflow; values may be templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory, relative to the folder of the workflow file; may be a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// When and how often a failed attempt is repeated.
    pub retry: Retry,
    /// How long one attempt may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// The queue it waits in.
    pub queue: String,
    /// Higher is claimed first. low = -10, normal = 0, high = 10, critical = 20.
    pub priority: i64,
    /// Its failure neither fails the run nor skips its children.
    pub allow_failure: bool,
    /// What happens when its worker dies.
    pub on_interrupt: OnInterrupt,
    /// How many deaths of its worker it survives.
    pub max_interruptions: i64,
    /// Where its output comes from.
    pub output: OutputSource,
    /// Capabilities that a worker must have to see it, sorted, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The lowest version of a worker that may execute it; 0 is any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: i64,
    /// How many jobs with the same key may run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// What a job executes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// A script for the shell. Never templated.
    Run {
        /// The script's text.
        script: String,
        /// The program that reads it with `-c`, and its arguments before that. Empty means the
        /// engine's default shell.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shell: Vec<String>,
    },
    /// A program and its arguments, without a shell. Each item may be a template.
    Command(Vec<String>),
}

/// When and how often a failed attempt is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// Executions in all that may fail, at least 1. 1 means no retry.
    pub max_attempts: i64,
    /// Wait before the second attempt, in milliseconds.
    pub delay_ms: i64,
    /// What the wait is multiplied by from one retry to the next, at least 1.
    pub factor: f64,
    /// The longest wait, in milliseconds.
    pub max_delay_ms: i64,
    /// Share of the wait that chance may add or take, 0 to 1.
    pub jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { max_attempts: 1, delay_ms: 1_000, factor: 2.0, max_delay_ms: 300_000, jitter: 0.1 }
    }
}

/// What happens to a job whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInterrupt {
    /// It is executed again (at least once).
    #[default]
    Rerun,
    /// It fails with "interrupted, outcome unknown", and a person decides.
    Fail,
}

/// Where a job's output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputSource {
    /// What it wrote to the file named by `WINDLASS_OUTPUT`, if it did: JSON when it parses as JSON,
    /// else text.
    #[default]
    File,
    /// Its standard output as text, without trailing newlines.
    Text,
    /// Its standard output, parsed as JSON; anything else fails the attempt.
    Json,
}

/// A typed parameter of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// Its name: a letter or `_`, then letters, digits and `_`.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: ParamKind,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its value when none is given, already of its type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// A run without a value for it is refused.
    pub required: bool,
    /// The values a `choice` allows; empty for other types.
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
    /// One of a list of texts.
    Choice,
}
