//! Reads what the decision about a schedule depends on, before its lock is taken and again under the lock.

use windlass_workflow::model::Overlap;

use super::definitions::timetable;
use super::overlap::{CandidateOrigin, OccurrenceCandidate, OverlapInput, UnfinishedRun, decide};
use super::plan::{Plan, plan};
use super::prepared_runs::{RunsToPrepare, STARTS_MAX};
use super::{Schedule, find, occurrences};
use crate::status::RunSource;
use crate::store::registrations::registered_workflow;
use crate::store::runs::calls::resolve_calls;
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};

/// The maximum number of unfinished runs that one decision reads.
const UNFINISHED_MAX: i64 = 100;

/// A schedule with the plan that was made for it before its lock was taken.
pub(super) struct PlannedFiring {
    pub(super) schedule: Schedule,
    pub(super) plan: Plan,
}

/// Plans a schedule. Returns `None` if there is nothing to write, and otherwise the plan and the runs to prepare.
pub(super) fn plan_firing(
    connection: &mut dyn Connection,
    schedule_id: i64,
    now_ms: i64,
) -> Result<Option<(PlannedFiring, Option<RunsToPrepare>)>> {
    let Some(schedule) = find(connection, schedule_id)?.filter(Schedule::is_active) else {
        return Ok(None);
    };
    let is_due = schedule.next_at.is_some_and(|next_at| next_at <= now_ms);
    let plan = if is_due {
        let timetable = timetable(&schedule.definition)?;
        plan(&schedule.key(), &schedule.definition, &timetable, schedule.decided_until, now_ms)
    } else {
        let Schedule { decided_until, next_at, .. } = schedule;
        Plan { decided_until, next_at, ..Plan::default() }
    };
    let planned = PlannedFiring { schedule, plan };
    let decision = decide(&overlap_input(connection, &planned, STARTS_MAX, now_ms)?);
    if decision.is_nothing() && !planned.moves_cursor() {
        return Ok(None);
    }
    let to_prepare = match decision.start.is_empty() {
        true => None,
        false => runs_to_prepare(connection, &planned.schedule.workflow, decision.start)?,
    };
    Ok(Some((planned, to_prepare)))
}

fn runs_to_prepare(
    connection: &mut dyn Connection,
    workflow: &str,
    start: Vec<(i64, RunSource)>,
) -> Result<Option<RunsToPrepare>> {
    let Some((registration, mut workflow)) = registered_workflow(connection, workflow)? else {
        return Ok(None);
    };
    resolve_calls(connection, &mut workflow)?;
    Ok(Some(RunsToPrepare { registration, workflow, start }))
}

impl PlannedFiring {
    /// Whether the plan moves the cursor or the next instant.
    pub(super) fn moves_cursor(&self) -> bool {
        let Schedule { decided_until, next_at, .. } = self.schedule;
        (decided_until, next_at) != (self.plan.decided_until, self.plan.next_at)
    }
}

pub(super) fn overlap_input(
    connection: &mut dyn Connection,
    planned: &PlannedFiring,
    starts_max: usize,
    now_ms: i64,
) -> Result<OverlapInput> {
    let schedule_id = planned.schedule.id;
    let overlap = planned.schedule.definition.overlap;
    let mut candidates = occurrences::waiting(connection, schedule_id, now_ms)?;
    candidates.extend(planned.plan.due.iter().map(|due| OccurrenceCandidate {
        at_ms: due.at_ms,
        start_after: due.start_after,
        source: due.source,
        origin: CandidateOrigin::Plan,
    }));
    let unfinished = match overlap {
        Overlap::Allow => Vec::new(),
        Overlap::Skip
        | Overlap::QueueOne
        | Overlap::QueueAll
        | Overlap::CancelRunning
        | Overlap::TerminateRunning => unfinished(connection, schedule_id)?,
    };
    let backfills = occurrences::waiting_backfills(connection, schedule_id, now_ms)?;
    let unfinished_backfills = match backfills.is_empty() {
        true => 0,
        false => unfinished_backfills(connection, schedule_id)?,
    };
    let waiting_count = match planned.plan.due.is_empty() {
        true => 0,
        false => occurrences::count_waiting(connection, schedule_id)?,
    };
    Ok(OverlapInput {
        overlap,
        now_ms,
        starts_max,
        candidates,
        unfinished,
        waiting_count,
        backfills,
        unfinished_backfills,
    })
}

/// Reads the unfinished runs of a schedule, the oldest first. Runs of backfills are left out, because they have a
/// limit of their own.
fn unfinished(connection: &mut dyn Connection, schedule_id: i64) -> Result<Vec<UnfinishedRun>> {
    all(
        connection,
        "SELECT id, stop_reason FROM runs
         WHERE schedule_id = $1 AND status IN ('PENDING', 'RUNNING')
           AND (source IS NULL OR source <> 'backfill')
         ORDER BY id LIMIT $2",
        &[schedule_id.into(), UNFINISHED_MAX.into()],
        |row| Ok(UnfinishedRun { run_id: row.integer(0)?, is_stopping: row.optional_text(1)?.is_some() }),
    )
}

fn unfinished_backfills(connection: &mut dyn Connection, schedule_id: i64) -> Result<i64> {
    one(
        connection,
        "SELECT count(*) FROM runs
         WHERE schedule_id = $1 AND status IN ('PENDING', 'RUNNING') AND source = 'backfill'",
        &[schedule_id.into()],
        |row| row.integer(0),
    )
}
