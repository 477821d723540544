//! Firing: deciding the due occurrences of a schedule, and starting their runs. Both happen in one transaction that
//! locks the schedule's row, so that an occurrence gets only one run, with any number of schedulers.

use crate::store::ForScheduler;
use std::sync::Arc;

use windlass_workflow::model::Overlap;

use super::occurrences::{self, NewOccurrence};
use super::overlap::{OverlapDecision, decide};
use super::planned_firing::{PlannedFiring, overlap_input, plan_firing};
use super::prepared_runs::PreparedRuns;
use super::{Schedule, find};
use crate::status::{RunSource, StopReason};
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::{Evidence, run_was_inserted};
use crate::store::runs::submit::submit;
use windlass_db::error::{Error, Result};
use windlass_db::{CommitOutcome, Connection, all, first, one};

/// What firing a schedule did. Nominal times are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fired {
    /// The schedule, as `WORKFLOW/NAME`; empty if there was nothing to do.
    pub schedule: String,
    /// Ids and nominal times of the runs that were started.
    pub started: Vec<(i64, i64)>,
    /// Nominal times of occurrences that get no run, and the reasons.
    pub skipped: Vec<(i64, String)>,
    /// Nominal times of occurrences that wait from now on.
    pub waiting: Vec<i64>,
    /// How many missed occurrences get no run; at [`super::MISSED_COUNT_MAX`] counting stopped.
    pub missed: usize,
    /// Ids of runs that were asked to stop.
    pub stopped: Vec<i64>,
    /// How long after its nominal time the first of the due occurrences was decided, in milliseconds.
    pub late_ms: Option<i64>,
    /// Whether the schedule must be fired again at once.
    pub again: bool,
}

impl ForScheduler<'_> {
    /// Lists schedules to fire: at most `limit` of those whose next occurrence is due, and all that have waiting
    /// occurrences. Those in `except` are left out.
    ///
    /// # Errors
    /// Returns the database's error.
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
            // This query steps from one schedule to the next, because one schedule may have many waiting occurrences.
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

    /// Returns the next instant at which a schedule must be fired, leaving out those in `except`. Occurrences that
    /// only wait for a run to end have no such instant.
    ///
    /// # Errors
    /// Returns the database's error.
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

    /// Fires a schedule. If another scheduler fires it at the same moment, each occurrence is still decided once.
    ///
    /// # Errors
    /// Returns the database's error; [`Error::Invalid`] and [`Error::Internal`] if its rule or its workflow can't be read.
    pub fn fire(&self, schedule_id: i64) -> Result<Fired> {
        let now_ms = self.store.clock.now_ms();
        let Some((planned, to_prepare)) =
            self.store.read(|connection| plan_firing(connection, schedule_id, now_ms))?
        else {
            return Ok(Fired::default());
        };
        let prepared_runs =
            Arc::new(PreparedRuns::prepare(&planned.schedule, to_prepare, &self.store.random)?);
        let made = Arc::clone(&prepared_runs);
        // If no run was started, there is no row as evidence. Firing again is harmless: it finds only what is still
        // undecided.
        let evidence = Evidence::rows(move |connection, fired: &Fired| {
            let first = fired.started.first().and_then(|(run_id, at_ms)| Some((*run_id, made.run(*at_ms)?)));
            match first {
                Some((run_id, Ok((_run, prepared)))) => run_was_inserted(connection, run_id, prepared.token),
                Some((_, Err(_))) | None => Ok(CommitOutcome::NotKept),
            }
        });
        let fired = self.store.write("fire a schedule", evidence, move |connection| {
            write(connection, &planned, &prepared_runs, now_ms)
        })?;
        if let Some(late_ms) = fired.late_ms {
            self.store.measurements.late_schedules.observe_ms(late_ms);
        }
        Ok(fired)
    }
}

/// Decides again under the schedule's lock, and writes the decision. Nothing is written if the schedule has changed
/// since it was read, or if another transaction has locked it.
fn write(
    connection: &mut dyn Connection,
    planned: &PlannedFiring,
    prepared_runs: &PreparedRuns,
    now_ms: i64,
) -> Result<Fired> {
    let schedule = &planned.schedule;
    let try_again = Fired { again: true, ..Fired::default() };
    let sql = "SELECT id FROM schedules WHERE id = $1 {lock}";
    if first(connection, sql, &[schedule.id.into()], |row| row.integer(0))?.is_none() {
        return Ok(Fired::default());
    }
    if find(connection, schedule.id)?.as_ref() != Some(schedule) {
        return Ok(try_again);
    }
    let decision = decide(&overlap_input(connection, planned, prepared_runs.starts_max, now_ms)?);
    if !prepared_runs.has_all(&decision) || (planned.moves_cursor() && !move_cursor(connection, planned)?) {
        // A run has ended in between, or another scheduler was faster.
        return Ok(try_again);
    }
    let mut fired = Fired { schedule: schedule.key(), missed: planned.plan.missed_count, ..Fired::default() };
    let has_ended = stop(connection, schedule, &decision, now_ms, &mut fired)?;
    start(connection, schedule, prepared_runs, &decision, now_ms, &mut fired)?;
    let has_unstartable = !fired.skipped.is_empty();
    write_occurrences(connection, planned, &decision, now_ms)?;
    fired.waiting = decision.wait.iter().map(|candidate| candidate.at_ms).collect();
    fired.skipped.extend(decision.skip.into_iter().map(|(candidate, why)| (candidate.at_ms, why)));
    if planned.moves_cursor() {
        fired.late_ms = schedule.next_at.filter(|next_at| *next_at <= now_ms).map(|next_at| now_ms - next_at);
    }
    fired.again = has_ended
        || decision.has_more
        || has_unstartable
        || planned.plan.next_at.is_some_and(|next_at| next_at <= now_ms);
    Ok(fired)
}

/// Moves the cursor as planned. Returns `false` if it is not where it was when the schedule was read.
fn move_cursor(connection: &mut dyn Connection, planned: &PlannedFiring) -> Result<bool> {
    let moved = connection.execute(
        "UPDATE schedules SET decided_until = $2, next_at = $3
         WHERE id = $1 AND coalesce(decided_until, created_at) = $4",
        &[
            planned.schedule.id.into(),
            planned.plan.decided_until.into(),
            planned.plan.next_at.into(),
            planned.schedule.decided_until.into(),
        ],
    )?;
    Ok(moved == 1)
}

/// Asks runs to stop. A run that has ended or was asked already is no error. Returns whether any run ended at once.
fn stop(
    connection: &mut dyn Connection,
    schedule: &Schedule,
    decision: &OverlapDecision,
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
    decision: &OverlapDecision,
    now_ms: i64,
    fired: &mut Fired,
) -> Result<()> {
    let mut started = Vec::with_capacity(decision.start.len());
    for (at_ms, source) in &decision.start {
        let (at_ms, source) = (*at_ms, *source);
        match prepared_runs.run(at_ms) {
            Some(Ok((run, prepared))) => {
                let submitted = submit(connection, run, prepared, now_ms)?;
                // An occurrence that has a run from a backfill counts as started too.
                started.push(at_ms);
                if submitted.created {
                    fired.started.push((submitted.run_id, at_ms));
                }
            }
            Some(Err(reason)) => {
                occurrences::mark_skipped(connection, schedule.id, at_ms, source, reason, now_ms)?;
                fired.skipped.push((at_ms, reason.clone()));
            }
            None => return Err(Error::internal("fire a schedule", "a run was not prepared")),
        }
    }
    occurrences::delete_started(connection, schedule.id, &started)
}

/// Writes the occurrences that wait, those that get no run, and those that were missed.
fn write_occurrences(
    connection: &mut dyn Connection,
    planned: &PlannedFiring,
    decision: &OverlapDecision,
    now_ms: i64,
) -> Result<()> {
    let waiting = decision
        .wait
        .iter()
        .map(|candidate| NewOccurrence::waiting(candidate.at_ms, candidate.start_after, candidate.source));
    let skipped = decision.skip.iter().map(|(candidate, reason)| {
        NewOccurrence::skipped(candidate.at_ms, candidate.start_after, candidate.source, reason)
    });
    let missed = planned
        .plan
        .missed
        .iter()
        .map(|(at_ms, reason)| NewOccurrence::skipped(*at_ms, *at_ms, RunSource::Schedule, reason));
    let news: Vec<NewOccurrence<'_>> = waiting.chain(skipped).chain(missed).collect();
    occurrences::write(connection, planned.schedule.id, &news, now_ms)
}
