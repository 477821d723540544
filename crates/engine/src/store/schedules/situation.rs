//! What there is to decide about a schedule, as the tables have it.

use windlass_workflow::model::Overlap;

use super::definitions::timetable;
use super::occurrences;
use super::overlap::{Candidate, Situation, Standing, Unfinished, decide};
use super::plan::{Plan, plan};
use super::prepared_runs::{STARTS_MAX, Wanted};
use super::{Schedule, find};
use crate::store::registrations::registered_workflow;
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};

/// Unfinished runs that one decision looks at.
const UNFINISHED_MAX: i64 = 100;

/// What a decision is made about.
pub(super) struct Seen {
    pub(super) schedule: Schedule,
    pub(super) plan: Plan,
}

/// Looks whether anything is to be written, and what that takes.
pub(super) fn look(
    connection: &mut dyn Connection,
    schedule_id: i64,
    now_ms: i64,
) -> Result<Option<(Seen, Option<Wanted>)>> {
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
    let seen = Seen { schedule, plan };
    let decision = decide(&situation(connection, &seen, STARTS_MAX, now_ms)?);
    if decision.is_nothing() && !seen.moves() {
        return Ok(None);
    }
    let wanted = match decision.start.is_empty() {
        true => None,
        false => registered_workflow(connection, &seen.schedule.workflow)?
            .map(|(registration, workflow)| Wanted { registration, workflow, start: decision.start }),
    };
    Ok(Some((seen, wanted)))
}

impl Seen {
    /// The cursor or the next instant moves.
    pub(super) fn moves(&self) -> bool {
        let Schedule { decided_until, next_at, .. } = self.schedule;
        (decided_until, next_at) != (self.plan.decided_until, self.plan.next_at)
    }
}

pub(super) fn situation(
    connection: &mut dyn Connection,
    seen: &Seen,
    starts_max: usize,
    now_ms: i64,
) -> Result<Situation> {
    let schedule_id = seen.schedule.id;
    let overlap = seen.schedule.definition.overlap;
    let mut candidates = occurrences::waiting(connection, schedule_id, now_ms)?;
    candidates.extend(seen.plan.due.iter().map(|planned| Candidate {
        at_ms: planned.at_ms,
        start_after: planned.start_after,
        source: planned.source,
        standing: Standing::New,
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
    let waiting_count = match seen.plan.due.is_empty() {
        true => 0,
        false => occurrences::count_waiting(connection, schedule_id)?,
    };
    Ok(Situation {
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

/// Runs of the schedule that are not over, the oldest first. Those of backfills keep to a limit of their own.
fn unfinished(connection: &mut dyn Connection, schedule_id: i64) -> Result<Vec<Unfinished>> {
    all(
        connection,
        "SELECT id, stop_reason FROM runs
         WHERE schedule_id = $1 AND status IN ('PENDING', 'RUNNING')
           AND (source IS NULL OR source <> 'backfill')
         ORDER BY id LIMIT $2",
        &[schedule_id.into(), UNFINISHED_MAX.into()],
        |row| Ok(Unfinished { run_id: row.integer(0)?, is_stopping: row.optional_text(1)?.is_some() }),
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
