//! The model of a workflow that was read and checked.
//!
//! It consists of plain values. Defaults are filled in, names of jobs are resolved to indices, and durations are in
//! milliseconds. The engine stores the model as JSON and never sees the file that it came from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::expression::Expression;
use crate::for_each::ForEach;
use crate::kinds::Action;
use crate::params::Param;
use crate::trigger::Trigger;

/// The queue of a job without `queue`.
pub const DEFAULT_QUEUE: &str = "default";
/// How often a job may be interrupted by the death of its worker, if it does not say.
pub const DEFAULT_MAX_INTERRUPTIONS: i64 = 25;
/// The timeout of a handler without `timeout`, in milliseconds.
pub const DEFAULT_HANDLER_TIMEOUT_MS: i64 = 600_000;

/// A checked workflow. Only the parser and the builder make one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Workflow {
    /// The name. It is unique among the workflows of a database.
    pub name: String,
    /// What it is for, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How long a whole run may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// Parameters in the order of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Environment of every job that is a process. Values may be templates that read `params` and `run`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// When the workflow runs by itself, in the order of the file. Each schedule has a different name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// What else starts a run, in the order of the file. Each trigger has a different name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// Words by which lists of runs are filtered, sorted, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The secrets that jobs can use, in the order of the file. Each has a different name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// What a run gives to the job that called the workflow, by name. Each expression may read every job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Expression>,
    /// The workflows that jobs of this one call, directly or through others. They have none of their own:
    /// [`Call::called`](crate::kinds::call::Call::called) indexes into this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workflows: Vec<Workflow>,
    /// Whether each run has a folder of its own, and when the folder is kept after the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<KeepWorkspace>,
    /// How many runs with the same key may be active at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
    /// The jobs, and after them the handlers: the jobs of `on_success`, `on_failure`, `on_cancel` and `finally`. `needs` and
    /// `uses` index into this list.
    pub jobs: Vec<Job>,
}

/// Which runs keep their folder when they are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepWorkspace {
    /// None: the folder is removed.
    Never,
    /// Those that did not succeed.
    OnFailure,
    /// All, until the run is deleted.
    Always,
}

impl KeepWorkspace {
    /// The word in files and in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            KeepWorkspace::Never => "never",
            KeepWorkspace::OnFailure => "on_failure",
            KeepWorkspace::Always => "always",
        }
    }
}

impl Workflow {
    /// The first key whose runs need a folder for files, if there is one.
    #[must_use]
    pub fn key_with_files(&self) -> Option<&'static str> {
        let own = self.workspace.map(|_| "workspace");
        let own = own.or_else(|| {
            let uses = |job: &Job| match (job.action.artifacts(), job.action.inputs()) {
                ([], []) => None,
                ([], _) => Some("inputs"),
                (_, _) => Some("artifacts"),
            };
            self.jobs.iter().find_map(uses)
        });
        own.or_else(|| self.workflows.iter().find_map(Workflow::key_with_files))
    }
}

/// Where the value of a secret comes from. The value itself is in no file and in no table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secret {
    /// Unique within the workflow. It is also the name of the variable in jobs.
    pub name: String,
    /// Where a worker finds the value.
    pub source: SecretSource,
}

/// Where a worker finds the value of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretSource {
    /// The worker's variable with the name of the secret, or the file with that name in `$CREDENTIALS_DIRECTORY`.
    #[default]
    Worker,
    /// Another variable of the worker.
    Env(String),
    /// A file, relative to the folder of the workflow file.
    File(String),
    /// The standard output of a program: its name and arguments.
    Command(Vec<String>),
}

/// The name of a schedule without `name`.
pub const DEFAULT_SCHEDULE: &str = "default";

/// When a workflow runs by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Unique within the workflow.
    pub name: String,
    /// At which times the schedule occurs.
    #[serde(flatten)]
    pub rule: Rule,
    /// The IANA name of the zone whose clock a `cron` rule reads.
    pub timezone: String,
    /// What happens at an occurrence while an earlier run is not over.
    pub overlap: Overlap,
    /// What happens to missed occurrences.
    pub catchup: Catchup,
    /// Older missed occurrences are not caught up. In milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catchup_window_ms: Option<i64>,
    /// The largest number of missed occurrences that are caught up. The newest are chosen.
    pub catchup_max: i64,
    /// The first instant at which the schedule may occur, in milliseconds since the Unix epoch. `every` counts from this
    /// instant, or from the epoch if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// The schedule no longer occurs at this instant or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ms: Option<i64>,
    /// The largest delay of a run after its occurrence, in milliseconds. The delay is chosen for each occurrence.
    pub jitter_ms: i64,
    /// Values of the workflow's parameters. Texts may be templates that read `scheduled_for`.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub params: serde_json::Map<String, serde_json::Value>,
}

/// At which times a schedule occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// At the times of a cron expression of five or six fields, or of a word like `@daily`.
    Cron(String),
    /// At a fixed interval in milliseconds. Changes of the clock have no effect.
    EveryMs(i64),
    /// Once, at this instant, in milliseconds since the Unix epoch.
    AtMs(i64),
}

/// What happens at an occurrence while an earlier run of the schedule is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The occurrence gets no run.
    #[default]
    Skip,
    /// The newest such occurrence waits. Earlier ones that waited get no run.
    QueueOne,
    /// All such occurrences wait, in order.
    QueueAll,
    /// The new run starts beside the earlier one.
    Allow,
    /// The earlier run is cancelled, and its jobs get time to end. Then the new run starts.
    CancelRunning,
    /// The earlier run is cancelled, and its processes are killed at once. Then the new run starts.
    TerminateRunning,
}

/// What happens to occurrences that were missed while no scheduler was running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Catchup {
    /// Missed occurrences get no run.
    None,
    /// The newest missed occurrence gets a run.
    #[default]
    Last,
    /// All missed occurrences get runs.
    All,
}

/// A limit on how many jobs with the same key run at a time, or on how many runs with the same key are active. The keys of
/// jobs and those of runs are apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    /// Jobs, or runs, with this key share the limit. May be a template that reads `params` and `run.workflow`.
    pub key: String,
    /// How many of them there may be at a time, at least 1.
    pub limit: i64,
    /// What happens to one more when all slots of the key are taken.
    pub on_full: OnFull,
}

/// What happens to a job or a run when all slots of its concurrency key are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFull {
    /// It waits.
    #[default]
    Wait,
    /// It is skipped.
    Skip,
    /// The oldest one that has a slot is cancelled, and the new one gets the slot.
    CancelOldest,
}

impl OnFull {
    /// The word in files, tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            OnFull::Wait => "wait",
            OnFull::Skip => "skip",
            OnFull::CancelOldest => "cancel_oldest",
        }
    }
}

/// A table of jobs for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunHandler {
    /// The jobs succeeded.
    OnSuccess,
    /// A job failed, or the run took too long.
    OnFailure,
    /// The run was cancelled.
    OnCancel,
    /// Every run, after the other handlers.
    Finally,
}

impl RunHandler {
    /// All tables, in the order of the phases.
    pub const ALL: [RunHandler; 4] =
        [RunHandler::OnSuccess, RunHandler::OnFailure, RunHandler::OnCancel, RunHandler::Finally];

    /// The table's key in a file.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            RunHandler::OnSuccess => "on_success",
            RunHandler::OnFailure => "on_failure",
            RunHandler::OnCancel => "on_cancel",
            RunHandler::Finally => "finally",
        }
    }

    /// The phase of the run in which these jobs are executed, as in the column `jobs.phase`.
    #[must_use]
    pub fn phase(self) -> i64 {
        match self {
            RunHandler::OnSuccess | RunHandler::OnFailure | RunHandler::OnCancel => 1,
            RunHandler::Finally => 2,
        }
    }
}

/// How the jobs that a job needs must have ended, so that it is executed.
///
/// A job that succeeded, or failed with `allow_failure`, has passed. A job that was skipped by choice is not needed. Any other
/// end is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// All have passed.
    #[default]
    AllSuccessful,
    /// None is broken, and at least one has passed.
    NoneFailed,
    /// At least one has passed.
    AnySuccessful,
    /// At least one is broken.
    AnyFailed,
    /// They have ended in any way.
    AllFinished,
}

impl When {
    /// All rules, in the order in which messages list them.
    pub const ALL: [When; 5] =
        [When::AllSuccessful, When::NoneFailed, When::AnySuccessful, When::AnyFailed, When::AllFinished];

    /// The rule as a file has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            When::AllSuccessful => "all_successful",
            When::NoneFailed => "none_failed",
            When::AnySuccessful => "any_successful",
            When::AnyFailed => "any_failed",
            When::AllFinished => "all_finished",
        }
    }

    fn is_default(&self) -> bool {
        *self == When::default()
    }
}

/// A job: one node of the graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Unique within the workflow.
    pub name: String,
    /// What it is for, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What the job executes.
    #[serde(flatten)]
    pub action: Action,
    /// Jobs that must have finished before this one starts, as indices into [`Workflow::jobs`], ascending, without
    /// duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<usize>,
    /// How the needed jobs must have ended.
    #[serde(default, skip_serializing_if = "When::is_default")]
    pub when: When,
    /// The job is executed only if this holds (`if`). It is asked after `when`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expression>,
    /// The job is executed once for each of these items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Box<ForEach>>,
    /// The table for the end of a run to which the job belongs. Nothing for the jobs of `jobs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handler: Option<RunHandler>,
    /// Jobs that the templates of this job read, as indices, ascending. Each is over before this job starts. What the
    /// expressions of the job read is not listed: [`Expression::reads`] says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<usize>,
    /// When and how often a failed attempt is repeated.
    pub retry: Retry,
    /// How long one attempt may take, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    /// How long the job may take from being ready to its end, over all attempts, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// What counts as a success of an attempt. Nothing means exit code 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_if: Option<Expression>,
    /// When this holds at the end of an attempt, the job is SKIPPED. It is asked before `success_if`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_if: Option<Expression>,
    /// A job that succeeds is executed again until this holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Box<Repetition>>,
    /// Variables that get the values of these expressions when the job succeeds, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_variables: Option<Box<BTreeMap<String, Expression>>>,
    /// The names of the secrets that the job gets as variables, sorted, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The queue in which the job waits.
    pub queue: String,
    /// Jobs with a higher priority are claimed first. low = -10, normal = 0, high = 10, critical = 20.
    pub priority: i64,
    /// A failure of this job neither fails the run nor skips the jobs that need it.
    pub allow_failure: bool,
    /// What happens when the worker of the job dies.
    pub on_interrupt: OnInterrupt,
    /// How often the job may be interrupted by the death of its worker.
    pub max_interruptions: i64,
    /// Capabilities that a worker must have to claim the job, sorted, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<String>,
    /// The lowest version of the code on a worker that may execute the job. 0 allows every worker.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub code_version: i64,
    /// A limit on how many jobs with the same key run at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<Concurrency>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// When and how often a failed attempt is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// How many attempts may fail before the job fails, at least 1. With 1 nothing is retried.
    pub max_attempts: i64,
    /// The delay before the second attempt, in milliseconds.
    pub delay_ms: i64,
    /// The factor from one delay to the next, at least 1.
    pub factor: f64,
    /// The longest delay, in milliseconds.
    pub max_delay_ms: i64,
    /// The random part of the delay, as a share from 0 to 1. It is added or subtracted.
    pub jitter: f64,
    /// A failed attempt is repeated only if this holds (`retry.if`).
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expression>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: 1,
            delay_ms: 1_000,
            factor: 2.0,
            max_delay_ms: 300_000,
            jitter: 0.1,
            condition: None,
        }
    }
}

/// How a job that succeeds is executed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repetition {
    /// The job is SUCCESSFUL when this holds at the end of a round (`repeat.until`).
    pub until: Expression,
    /// The pause after a round, in milliseconds.
    pub every_ms: i64,
    /// How many rounds there may be, at least 1. After the last one the job fails.
    pub max: i64,
}

/// What happens to a job whose worker died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnInterrupt {
    /// The job is executed again, so it may be executed more than once.
    #[default]
    Rerun,
    /// The job fails with "interrupted, outcome unknown", and a person decides.
    Fail,
}
