//! Firing: what is due of a schedule is decided and written in one transaction, which holds the schedule's row.
//! So with any number of schedulers an occurrence has one run.

use crate::store::ForScheduler;
use std::sync::Arc;

use windlass_workflow::model::Overlap;

use super::occurrences::{self, NewOccurrence};
use super::overlap::{Decision, decide};
use super::prepared_runs::PreparedRuns;
use super::situation::{Seen, look, situation};
use super::{Schedule, find};
use crate::status::{RunSource, StopReason};
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::{Evidence, run_made};
use crate::store::runs::submit::submit;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fate, all, first, one};

/// What firing a schedule came to. Nominal times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fired {
    /// The schedule, as `WORKFLOW/NAME`; empty when there was nothing to do.
    pub schedule: String,
    /// Runs that were made, with their nominal times.
    pub started: Vec<(i64, i64)>,
    /// Nominal times of occurrences that get no run, and why.
    pub skipped: Vec<(i64, String)>,
    /// Nominal times of occurrences that began to wait.
    pub waiting: Vec<i64>,
    /// How many missed occurrences get no run; [`super::COUNTED_MAX`] says that there are at least so many.
    pub missed: usize,
    /// Runs that were asked to stop.
    pub stopped: Vec<i64>,
    /// There is more to do at once.
    pub again: bool,
}

impl ForScheduler<'_> {
    /// The schedules whose next occurrence is due, a number at most, and all that have something waiting, but for
    /// some of them.
    ///
    /// # Errors
    /// The database's.
    pub fn schedules_to_fire(&self, limit: usize, except: &[i64]) -> Result<Vec<i64>> {
        let now_ms = self.store.clock.now_ms();
        let limit = (limit + except.len()) as i64;
        self.store.read(|connection| {
            let mut ids = all(
                connection,
                "SELECT schedules.id FROM schedules
                 JOIN registrations ON registrations.name = schedules.workflow
                 WHERE schedules.next_at IS NOT NULL AND schedules.next_at <= $1
                   AND schedules.paused_at IS NULL AND schedules.removed_at IS NULL
                   AND registrations.paused_at IS NULL
                 ORDER BY schedules.next_at LIMIT $2",
                &[now_ms.into(), limit.into()],
                |row| row.integer(0),
            )?;
            // From one schedule to the next: many occurrences of one may wait.
            let waiting = all(
                connection,
                "WITH RECURSIVE waiting (schedule_id) AS (
                     SELECT min(schedule_id) FROM occurrences WHERE status = 'WAITING'
                     UNION ALL
                     SELECT (SELECT min(occurrences.schedule_id) FROM occurrences
                             WHERE occurrences.status = 'WAITING'
                               AND occurrences.schedule_id > waiting.schedule_id)
                     FROM waiting WHERE waiting.schedule_id IS NOT NULL
                 )
                 SELECT waiting.schedule_id FROM waiting
                 JOIN schedules ON schedules.id = waiting.schedule_id
                 WHERE {guard schedules.paused_at IS NULL} AND {guard schedules.removed_at IS NULL}",
                &[],
                |row| row.integer(0),
            )?;
            ids.extend(waiting);
            ids.retain(|id| !except.contains(id));
            ids.sort_unstable();
            ids.dedup();
            Ok(ids)
        })
    }

    /// The next instant at which a schedule but for some of them has something to do, if there is one: not those
    /// that wait for the end of a run.
    ///
    /// # Errors
    /// The database's.
    pub fn next_firing(&self, except: &[i64]) -> Result<Option<i64>> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| {
            let occurs = all(
                connection,
                "SELECT schedules.id, schedules.next_at FROM schedules
                 JOIN registrations ON registrations.name = schedules.workflow
                 WHERE schedules.next_at IS NOT NULL
                   AND schedules.paused_at IS NULL AND schedules.removed_at IS NULL
                   AND registrations.paused_at IS NULL
                 ORDER BY schedules.next_at LIMIT $1",
                &[(except.len() as i64 + 1).into()],
                |row| Ok((row.integer(0)?, row.integer(1)?)),
            )?;
            let waits = one(
                connection,
                "SELECT min(start_after) FROM occurrences WHERE status = 'WAITING' AND start_after > $1",
                &[now_ms.into()],
                |row| row.optional_integer(0),
            )?;
            let occurs = occurs.into_iter().find(|(id, _next_at)| !except.contains(id));
            Ok(occurs.map(|(_id, next_at)| next_at).into_iter().chain(waits).min())
        })
    }

    /// Does what is due of a schedule. What another scheduler did at the same moment is not done again.
    ///
    /// # Errors
    /// The database's; [`Error::Invalid`] and [`Error::Internal`] when its rule or its workflow can't be read.
    pub fn fire(&self, schedule_id: i64) -> Result<Fired> {
        let now_ms = self.store.clock.now_ms();
        let Some((seen, wanted)) = self.store.read(|connection| look(connection, schedule_id, now_ms))?
        else {
            return Ok(Fired::default());
        };
        let prepared_runs = Arc::new(PreparedRuns::make(&seen.schedule, wanted, &self.store.random)?);
        let made = Arc::clone(&prepared_runs);
        // Where no run was started a second look finds what the first one left to do.
        let evidence = Evidence::rows(move |connection, fired: &Fired| {
            let first = fired.started.first().and_then(|(run_id, at_ms)| Some((*run_id, made.run(*at_ms)?)));
            match first {
                Some((run_id, Ok((_run, prepared)))) => run_made(connection, run_id, prepared.token),
                Some((_, Err(_))) | None => Ok(Fate::NotKept),
            }
        });
        self.store.write("fire a schedule", evidence, move |connection| {
            write(connection, &seen, &prepared_runs, now_ms)
        })
    }
}

/// Decides anew under the schedule's lock and writes it. When the schedule is not as it was seen, or somebody
/// holds it, nothing is written.
fn write(
    connection: &mut dyn Connection,
    seen: &Seen,
    prepared_runs: &PreparedRuns,
    now_ms: i64,
) -> Result<Fired> {
    let schedule = &seen.schedule;
    let outdated = Fired { again: true, ..Fired::default() };
    let sql = "SELECT id FROM schedules WHERE id = $1 {lock}";
    if first(connection, sql, &[schedule.id.into()], |row| row.integer(0))?.is_none() {
        return Ok(Fired::default());
    }
    if find(connection, schedule.id)?.as_ref() != Some(schedule) {
        return Ok(outdated);
    }
    let decision = decide(&situation(connection, seen, prepared_runs.starts_max, now_ms)?);
    if !prepared_runs.has_all(&decision) || (seen.moves() && !move_cursor(connection, seen)?) {
        // A run has ended meanwhile, or another scheduler was faster.
        return Ok(outdated);
    }
    let mut fired = Fired { schedule: schedule.key(), missed: seen.plan.missed_count, ..Fired::default() };
    let has_room = stop(connection, schedule, &decision, now_ms, &mut fired)?;
    start(connection, schedule, prepared_runs, &decision, now_ms, &mut fired)?;
    let has_refused = !fired.skipped.is_empty();
    note(connection, seen, &decision, now_ms)?;
    fired.waiting = decision.wait.iter().map(|candidate| candidate.at_ms).collect();
    fired.skipped.extend(decision.skip.into_iter().map(|(candidate, why)| (candidate.at_ms, why)));
    fired.again = has_room
        || decision.has_more
        || has_refused
        || seen.plan.next_at.is_some_and(|next_at| next_at <= now_ms);
    Ok(fired)
}

/// Returns whether the cursor was where it was seen.
fn move_cursor(connection: &mut dyn Connection, seen: &Seen) -> Result<bool> {
    let moved = connection.execute(
        "UPDATE schedules SET decided_until = $2, next_at = $3
         WHERE id = $1 AND coalesce(decided_until, created_at) = $4",
        &[
            seen.schedule.id.into(),
            seen.plan.decided_until.into(),
            seen.plan.next_at.into(),
            seen.schedule.decided_until.into(),
        ],
    )?;
    Ok(moved == 1)
}

/// Asks runs to stop. One that ended or was asked meanwhile is no failure. Returns whether any ended with it.
fn stop(
    connection: &mut dyn Connection,
    schedule: &Schedule,
    decision: &Decision,
    now_ms: i64,
    fired: &mut Fired,
) -> Result<bool> {
    let urgency = match schedule.definition.overlap {
        Overlap::TerminateRunning => Urgency::AtOnce,
        Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll | Overlap::Allow | Overlap::CancelRunning => {
            Urgency::WithGrace
        }
    };
    let mut has_ended = false;
    for run_id in &decision.stop {
        match stop_run(connection, *run_id, StopReason::Cancelled, urgency, now_ms) {
            Ok(cancellation) => {
                fired.stopped.push(*run_id);
                has_ended |= cancellation.stopping == 0;
            }
            Err(Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(has_ended)
}

fn start(
    connection: &mut dyn Connection,
    schedule: &Schedule,
    prepared_runs: &PreparedRuns,
    decision: &Decision,
    now_ms: i64,
    fired: &mut Fired,
) -> Result<()> {
    let mut settled = Vec::with_capacity(decision.start.len());
    for (at_ms, source) in &decision.start {
        let (at_ms, source) = (*at_ms, *source);
        match prepared_runs.run(at_ms) {
            Some(Ok((run, prepared))) => {
                let submitted = submit(connection, run, prepared, now_ms)?;
                // One that has its run already, by a backfill, is settled too.
                settled.push(at_ms);
                if submitted.created {
                    fired.started.push((submitted.run_id, at_ms));
                }
            }
            Some(Err(reason)) => {
                occurrences::refuse(connection, schedule.id, at_ms, source, reason, now_ms)?;
                fired.skipped.push((at_ms, reason.clone()));
            }
            None => return Err(Error::internal("fire a schedule", "a run was not prepared")),
        }
    }
    occurrences::settled(connection, schedule.id, &settled)
}

/// Writes down what waits, what gets no run, and what was missed.
fn note(connection: &mut dyn Connection, seen: &Seen, decision: &Decision, now_ms: i64) -> Result<()> {
    let waiting = decision
        .wait
        .iter()
        .map(|candidate| NewOccurrence::waiting(candidate.at_ms, candidate.start_after, candidate.source));
    let skipped = decision.skip.iter().map(|(candidate, reason)| {
        NewOccurrence::skipped(candidate.at_ms, candidate.start_after, candidate.source, reason)
    });
    let missed = seen
        .plan
        .missed
        .iter()
        .map(|(at_ms, reason)| NewOccurrence::skipped(*at_ms, *at_ms, RunSource::Schedule, reason));
    let news: Vec<NewOccurrence<'_>> = waiting.chain(skipped).chain(missed).collect();
    occurrences::write(connection, seen.schedule.id, &news, now_ms)
}
