//! Schedules and their occurrences as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{BackfillResult, Occurrence, Schedule};
use windlass_workflow::model::{Catchup, Overlap, Rule};
use windlass_workflow::schedule::{Occurrence as Time, local_text};

use crate::RunView;
use crate::time::{Instant, instant};

/// A schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub struct ScheduleView {
    /// Its number.
    schedule_id: i64,
    /// The workflow that it runs.
    workflow: String,
    /// Its name.
    schedule: String,
    /// Its cron expression.
    cron: Option<String>,
    /// Its interval.
    every_ms: Option<i64>,
    /// Its only instant.
    at: Option<Instant>,
    /// The time zone of its times.
    timezone: String,
    /// What happens to an occurrence while an earlier run is unfinished.
    #[schemars(extend("enum" = ["skip", "queue_one", "queue_all", "allow", "cancel_running", "terminate_running"]))]
    overlap: &'static str,
    /// What happens to missed occurrences.
    #[schemars(extend("enum" = ["none", "last", "all"]))]
    catchup: &'static str,
    /// Older occurrences are not caught up.
    catchup_window_ms: Option<i64>,
    /// At most so many occurrences are caught up.
    catchup_max: i64,
    /// No run starts before.
    start: Option<Instant>,
    /// No run starts then or later.
    end: Option<Instant>,
    /// Each run is delayed by a random time up to this.
    jitter_ms: i64,
    /// The parameters of its runs.
    params: Value,
    /// Whether it is in the file of its workflow, or was added on the command line.
    #[schemars(extend("enum" = ["file", "command"]))]
    origin: &'static str,
    /// It fires: its workflow is registered, and neither is paused.
    active: bool,
    /// Since when it is paused.
    paused_at: Option<Instant>,
    /// Since when its workflow is paused.
    workflow_paused_at: Option<Instant>,
    /// Its next occurrence.
    next_at: Option<Instant>,
    /// Every occurrence up to this instant is decided.
    decided_until: Option<Instant>,
    /// When it was added.
    created_at: Option<Instant>,
}

impl ScheduleView {
    /// From the row of the schedule.
    pub fn new(schedule: &Schedule) -> ScheduleView {
        let definition = &schedule.definition;
        let (cron, every_ms, at_ms) = match &definition.rule {
            Rule::Cron(cron) => (Some(cron.clone()), None, None),
            Rule::EveryMs(every_ms) => (None, Some(*every_ms), None),
            Rule::AtMs(at_ms) => (None, None, Some(*at_ms)),
        };
        ScheduleView {
            schedule_id: schedule.id,
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            cron,
            every_ms,
            at: instant(at_ms),
            timezone: definition.timezone.clone(),
            overlap: overlap_name(definition.overlap),
            catchup: catchup_name(definition.catchup),
            catchup_window_ms: definition.catchup_window_ms,
            catchup_max: definition.catchup_max,
            start: instant(definition.start_ms),
            end: instant(definition.end_ms),
            jitter_ms: definition.jitter_ms,
            params: Value::Object(definition.params.clone()),
            origin: schedule.origin.as_str(),
            active: schedule.is_active(),
            paused_at: instant(schedule.paused_at),
            workflow_paused_at: instant(schedule.workflow_paused_at),
            next_at: instant(schedule.next_at),
            decided_until: instant(Some(schedule.decided_until)),
            created_at: instant(Some(schedule.created_at)),
        }
    }
}

/// The word for an overlap policy in a workflow file.
pub fn overlap_name(overlap: Overlap) -> &'static str {
    match overlap {
        Overlap::Skip => "skip",
        Overlap::QueueOne => "queue_one",
        Overlap::QueueAll => "queue_all",
        Overlap::Allow => "allow",
        Overlap::CancelRunning => "cancel_running",
        Overlap::TerminateRunning => "terminate_running",
    }
}

/// The word for a catch-up policy in a workflow file.
pub fn catchup_name(catchup: Catchup) -> &'static str {
    match catchup {
        Catchup::None => "none",
        Catchup::Last => "last",
        Catchup::All => "all",
    }
}

/// A schedule with its latest and its next occurrences.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedSchedule {
    /// The schedule itself.
    #[serde(flatten)]
    pub schedule: ScheduleView,
    /// The newest runs.
    pub runs: Vec<RunView>,
    /// The number of occurrences that wait, shown or not.
    pub waiting_count: i64,
    /// The earliest occurrences that wait.
    pub waiting: Vec<UnstartedView>,
    /// The latest occurrences that were skipped.
    pub skipped: Vec<UnstartedView>,
    /// The next times.
    pub next: Vec<OccurrenceView>,
}

/// An occurrence without a run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Unstarted")]
pub struct UnstartedView {
    /// The occurrence.
    scheduled_for: Option<Instant>,
    /// Whether it waits or was skipped.
    #[schemars(extend("enum" = ["WAITING", "SKIPPED"]))]
    status: &'static str,
    /// Where it comes from.
    #[schemars(extend("enum" = ["schedule", "catchup", "backfill", "manual", "event"]))]
    source: &'static str,
    /// It does not start before.
    start_after: Option<Instant>,
    /// Why it was skipped.
    reason: Option<String>,
    /// When it was decided.
    updated_at: Option<Instant>,
}

impl UnstartedView {
    /// From the row of the occurrence.
    pub fn new(occurrence: &Occurrence) -> UnstartedView {
        UnstartedView {
            scheduled_for: instant(Some(occurrence.scheduled_for)),
            status: occurrence.status.as_str(),
            source: occurrence.source.as_str(),
            start_after: instant(Some(occurrence.start_after)),
            reason: occurrence.reason.clone(),
            updated_at: instant(Some(occurrence.updated_at)),
        }
    }
}

/// A future time of a schedule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Occurrence")]
pub struct OccurrenceView {
    /// The workflow.
    workflow: String,
    /// The name of the schedule.
    schedule: String,
    /// The occurrence.
    scheduled_for: Option<Instant>,
    /// The same in the time zone of the schedule.
    local: String,
    /// How a change to or from daylight saving time moves it.
    moved: Option<String>,
}

impl OccurrenceView {
    /// `schedule` gives the names and the time zone.
    pub fn new(occurrence: &Time, schedule: &Schedule) -> OccurrenceView {
        OccurrenceView {
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            scheduled_for: instant(Some(occurrence.at_ms)),
            local: local_text(occurrence.at_ms, &schedule.definition.timezone),
            moved: occurrence.moved.map(|moved| moved.to_string()),
        }
    }
}

/// The result of a backfill.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Backfill")]
pub struct BackfillView {
    /// The workflow.
    workflow: String,
    /// The name of the schedule.
    schedule: String,
    /// The occurrences of the range.
    occurrences: Vec<Instant>,
    /// How many of them get a run.
    added: i64,
    /// How many had a run before.
    with_run: i64,
    /// How many were waiting before.
    waiting: i64,
}

impl BackfillView {
    /// `result` is what the store answered.
    pub fn new(schedule: &Schedule, result: &BackfillResult) -> BackfillView {
        BackfillView {
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            occurrences: result.occurrences.iter().map(|at_ms| Instant::at(*at_ms)).collect(),
            added: result.added,
            with_run: result.with_run,
            waiting: result.waiting,
        }
    }
}
