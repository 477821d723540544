//! Schedules and their occurrences as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{BackfillResult, Occurrence, Schedule};
use windlass_workflow::model::{Catchup, Overlap, Rule};
use windlass_workflow::schedule::{Occurrence as Time, local_text};

use crate::RunView;
use crate::time::{instant, rfc3339};

/// A schedule.
#[derive(Debug, Serialize)]
pub struct ScheduleView {
    schedule_id: i64,
    workflow: String,
    schedule: String,
    cron: Option<String>,
    every_ms: Option<i64>,
    timezone: String,
    overlap: &'static str,
    catchup: &'static str,
    catchup_window_ms: Option<i64>,
    catchup_max: i64,
    start: Option<String>,
    end: Option<String>,
    jitter_ms: i64,
    params: Value,
    origin: &'static str,
    active: bool,
    paused_at: Option<String>,
    workflow_paused_at: Option<String>,
    next_at: Option<String>,
    decided_until: Option<String>,
    created_at: Option<String>,
}

impl ScheduleView {
    /// From the row of the schedule.
    pub fn new(schedule: &Schedule) -> ScheduleView {
        let definition = &schedule.definition;
        let (cron, every_ms) = match &definition.rule {
            Rule::Cron(cron) => (Some(cron.clone()), None),
            Rule::EveryMs(every_ms) => (None, Some(*every_ms)),
        };
        ScheduleView {
            schedule_id: schedule.id,
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            cron,
            every_ms,
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
#[derive(Debug, Serialize)]
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
#[derive(Debug, Serialize)]
pub struct UnstartedView {
    scheduled_for: Option<String>,
    status: &'static str,
    source: &'static str,
    start_after: Option<String>,
    reason: Option<String>,
    updated_at: Option<String>,
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
#[derive(Debug, Serialize)]
pub struct OccurrenceView {
    scheduled_for: Option<String>,
    local: String,
    /// How a change to or from daylight saving time moves it.
    moved: Option<String>,
}

impl OccurrenceView {
    /// `schedule` gives the time zone.
    pub fn new(occurrence: &Time, schedule: &Schedule) -> OccurrenceView {
        OccurrenceView {
            scheduled_for: instant(Some(occurrence.at_ms)),
            local: local_text(occurrence.at_ms, &schedule.definition.timezone),
            moved: occurrence.moved.map(|moved| moved.to_string()),
        }
    }
}

/// The result of a backfill.
#[derive(Debug, Serialize)]
pub struct BackfillView {
    workflow: String,
    schedule: String,
    occurrences: Vec<String>,
    added: i64,
    with_run: i64,
    waiting: i64,
}

impl BackfillView {
    /// `result` is what the store answered.
    pub fn new(schedule: &Schedule, result: &BackfillResult) -> BackfillView {
        BackfillView {
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            occurrences: result.occurrences.iter().map(|at_ms| rfc3339(*at_ms)).collect(),
            added: result.added,
            with_run: result.with_run,
            waiting: result.waiting,
        }
    }
}
