//! Schedules and their occurrences as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass::store::{Backfilling, Occurrence, Schedule};
use windlass::workflow::model::Rule;
use windlass::workflow::schedule::{Occurrence as Time, local_text};

use super::{RunView, instant};
use crate::commands::schedule::words;

/// A schedule.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleView {
    /// What runs name as `schedule_id`.
    id: i64,
    workflow: String,
    name: String,
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
    pub(crate) fn new(schedule: &Schedule) -> ScheduleView {
        let definition = &schedule.definition;
        let (cron, every_ms) = match &definition.rule {
            Rule::Cron(cron) => (Some(cron.clone()), None),
            Rule::EveryMs(every_ms) => (None, Some(*every_ms)),
        };
        ScheduleView {
            id: schedule.id,
            workflow: schedule.workflow.clone(),
            name: schedule.name.clone(),
            cron,
            every_ms,
            timezone: definition.timezone.clone(),
            overlap: words::overlap(definition.overlap),
            catchup: words::catchup(definition.catchup),
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

/// A schedule with what has become of its occurrences.
#[derive(Debug, Serialize)]
pub(crate) struct InspectedSchedule {
    #[serde(flatten)]
    pub(crate) schedule: ScheduleView,
    /// The newest.
    pub(crate) runs: Vec<RunView>,
    pub(crate) waiting_count: i64,
    /// The earliest.
    pub(crate) waiting: Vec<UnstartedView>,
    /// The latest.
    pub(crate) skipped: Vec<UnstartedView>,
    pub(crate) next: Vec<OccurrenceView>,
}

/// An occurrence without a run.
#[derive(Debug, Serialize)]
pub(crate) struct UnstartedView {
    scheduled_for: Option<String>,
    status: &'static str,
    source: &'static str,
    start_after: Option<String>,
    reason: Option<String>,
    updated_at: Option<String>,
}

impl UnstartedView {
    pub(crate) fn new(occurrence: &Occurrence) -> UnstartedView {
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

/// A coming time of a schedule.
#[derive(Debug, Serialize)]
pub(crate) struct OccurrenceView {
    scheduled_for: Option<String>,
    local: String,
    /// What a change of the clock does to it.
    moved: Option<String>,
}

impl OccurrenceView {
    pub(crate) fn new(occurrence: &Time, schedule: &Schedule) -> OccurrenceView {
        OccurrenceView {
            scheduled_for: instant(Some(occurrence.at_ms)),
            local: local_text(occurrence.at_ms, &schedule.definition.timezone),
            moved: occurrence.moved.map(|moved| moved.to_string()),
        }
    }
}

/// What a backfill comes to.
#[derive(Debug, Serialize)]
pub(crate) struct BackfillView {
    workflow: String,
    schedule: String,
    occurrences: Vec<String>,
    added: i64,
    with_run: i64,
    waiting: i64,
}

impl BackfillView {
    pub(crate) fn new(schedule: &Schedule, result: &Backfilling) -> BackfillView {
        BackfillView {
            workflow: schedule.workflow.clone(),
            schedule: schedule.name.clone(),
            occurrences: result.occurrences.iter().map(|at_ms| crate::time::rfc3339(*at_ms)).collect(),
            added: result.added,
            with_run: result.with_run,
            waiting: result.waiting,
        }
    }
}
