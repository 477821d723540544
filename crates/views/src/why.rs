//! The reasons why a job is not running, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::Reason;

use crate::{JobView, RunView};

/// A job, and the reasons for its state.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Why")]
pub struct WhyView {
    /// The job.
    #[serde(flatten)]
    pub job: JobView,
    /// The most important reason first.
    pub reasons: Vec<ReasonView>,
}

/// A run, and the jobs that decide about it: those that hold it up, or those that ended it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhyRun")]
pub struct WhyRunView {
    /// The run.
    #[serde(flatten)]
    pub run: RunView,
    /// The jobs with their reasons, twenty at most.
    pub jobs: Vec<WhyView>,
}

/// One reason: a word for programs and a sentence for people.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Reason")]
pub struct ReasonView {
    /// One of the words of [`reason_kind`].
    pub kind: &'static str,
    /// The sentence.
    pub text: String,
}

/// The reason as a word for programs.
pub fn reason_kind(reason: &Reason) -> &'static str {
    match reason {
        Reason::WaitsForParents(_) => "waits_for_parents",
        Reason::WaitsForTime { .. } => "waits_for_time",
        Reason::WaitsForRound { .. } => "waits_for_round",
        Reason::Sleeps { .. } => "sleeps",
        Reason::NoScheduler => "no_scheduler",
        Reason::QueuePaused(_) => "queue_paused",
        Reason::NoWorker { .. } => "no_worker",
        Reason::NoCapability { .. } => "no_capability",
        Reason::WorkersTooOld { .. } => "workers_too_old",
        Reason::QueueFull { .. } => "queue_full",
        Reason::QueueRate { .. } => "queue_rate",
        Reason::NotItsTurn { .. } => "not_its_turn",
        Reason::KeyTaken { .. } => "key_taken",
        Reason::WorkersBusy { .. } => "workers_busy",
        Reason::Behind(_) => "behind",
        Reason::Runs { .. } => "runs",
        Reason::WaitsForRun { .. } => "waits_for_run",
        Reason::WaitsForEndOfRun => "waits_for_end_of_run",
        Reason::WaitsForDecision => "waits_for_decision",
        Reason::WaitsForEvent { .. } => "waits_for_event",
        Reason::WaitsForApproval { .. } => "waits_for_approval",
        Reason::WaitsForItems { .. } => "waits_for_items",
        Reason::RunWaitsForSlot(_) => "run_waits_for_slot",
        Reason::WaitsForTurn { .. } => "waits_for_turn",
        Reason::HasDeadline(_) => "has_deadline",
        Reason::Over { .. } => "over",
    }
}
