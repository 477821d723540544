//! Backfills: starting runs for a past range that a person names. A backfill only inserts waiting occurrences; any
//! scheduler starts their runs, the earliest first. A backfill that was interrupted can be requested again: an
//! occurrence never gets a second run.

use super::definitions::timetable;
use super::occurrences::count_waiting;
use super::overlap::WAITING_MAX;
use super::{Schedule, lock_schedule};
use crate::store::evidence::Evidence;
use crate::store::{Schedules, json_ids};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Value, one};
use windlass_system::wake_ups::WakeUps;

/// The maximum number of occurrences in one backfill.
pub const BACKFILL_MAX: usize = 100_000;
/// The largest limit that a backfill can set for its unfinished runs.
pub const AT_ONCE_MAX: i64 = 1_000;
/// Occurrences that one transaction writes.
const CHUNK: usize = 1_000;

/// A request to backfill a past range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    /// The schedule.
    pub schedule_id: i64,
    /// The first nominal time of the range, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    /// The end of the range, inclusive.
    pub to_ms: i64,
    /// How many of its runs may be unfinished at a time: 1 to [`AT_ONCE_MAX`].
    pub at_once: i64,
}

/// What a backfill did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BackfillResult {
    /// The nominal times in the range.
    pub occurrences: Vec<i64>,
    /// Occurrences that this backfill added.
    pub added: i64,
    /// Occurrences that have a run already.
    pub with_run: i64,
    /// Occurrences that were waiting already.
    pub waiting: i64,
}

impl Schedules<'_> {
    /// Returns what [`Schedules::backfill`] would do, and changes nothing.
    ///
    /// # Errors
    /// As of [`Schedules::backfill`].
    pub fn preview_backfill(&self, backfill: Backfill) -> Result<BackfillResult> {
        let schedule = self.get(backfill.schedule_id)?;
        let mut result = self.occurrences_of(&schedule, backfill)?;
        for chunk in result.occurrences.clone().chunks(CHUNK) {
            let (with_run, waiting) = self.store.read(|connection| known(connection, schedule.id, chunk))?;
            result.with_run += with_run;
            result.waiting += waiting;
        }
        result.added = result.occurrences.len() as i64 - result.with_run - result.waiting;
        Ok(result)
    }

    /// Adds a waiting occurrence for each nominal time in a past range that has no run.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] if the range ends in the future or has more than [`BACKFILL_MAX`]
    /// occurrences; [`Error::Conflict`] if more than [`WAITING_MAX`] occurrences would wait; and the database's.
    /// Occurrences that were written before an error remain, and the next call counts them as waiting.
    pub fn backfill(&self, backfill: Backfill) -> Result<BackfillResult> {
        let schedule = self.get(backfill.schedule_id)?;
        let mut result = self.occurrences_of(&schedule, backfill)?;
        let now_ms = self.store.clock.now_ms();
        for chunk in result.occurrences.clone().chunks(CHUNK) {
            let chunk = chunk.to_vec();
            let (added, with_run, waiting) =
                self.store.write("backfill a schedule", Evidence::Token, move |connection| {
                    write(connection, &backfill, &chunk, now_ms)
                })?;
            result.added += added;
            result.with_run += with_run;
            result.waiting += waiting;
        }
        Ok(result)
    }

    /// Lists the nominal times in the range of a backfill, after checking the request.
    fn occurrences_of(&self, schedule: &Schedule, backfill: Backfill) -> Result<BackfillResult> {
        let invalid = |reason: String| Error::invalid(format!("backfill {}", schedule.key()), reason);
        let Backfill { from_ms, to_ms, at_once, .. } = backfill;
        if schedule.removed_at.is_some() {
            return Err(Error::not_found(format!("schedule {}", schedule.key())));
        }
        if from_ms > to_ms {
            return Err(invalid("the range ends before it starts".to_owned()));
        }
        if to_ms > self.store.clock.now_ms() {
            return Err(invalid(
                "the range ends in the future; the schedule starts those runs itself".to_owned(),
            ));
        }
        if !(1..=AT_ONCE_MAX).contains(&at_once) {
            return Err(invalid(format!("the number of unfinished runs must be from 1 to {AT_ONCE_MAX}")));
        }
        let timetable = timetable(&schedule.definition)?;
        let occurrences: Vec<i64> = timetable
            .after(from_ms.saturating_sub(1))
            .map(|occurrence| occurrence.at_ms)
            .take_while(|at_ms| *at_ms <= to_ms)
            .take(BACKFILL_MAX + 1)
            .collect();
        if occurrences.len() > BACKFILL_MAX {
            let reason = format!("the range has more than {BACKFILL_MAX} occurrences; take a shorter one");
            return Err(invalid(reason));
        }
        Ok(BackfillResult { occurrences, ..BackfillResult::default() })
    }
}

/// Returns how many of these nominal times have a run, and how many have a waiting occurrence.
fn known(connection: &mut dyn Connection, schedule_id: i64, at_ms: &[i64]) -> Result<(i64, i64)> {
    one(
        connection,
        "SELECT (SELECT count(*) FROM runs WHERE schedule_id = $1 AND scheduled_for {in $2}),
                (SELECT count(*) FROM occurrences
                 WHERE schedule_id = $1 AND scheduled_for {in $2} AND {guard status = 'WAITING'})",
        &[schedule_id.into(), (&json_ids(at_ms)).into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )
}

/// Writes one chunk. Returns how many occurrences were added, how many had a run, and how many were waiting already.
fn write(
    connection: &mut dyn Connection,
    backfill: &Backfill,
    at_ms: &[i64],
    now_ms: i64,
) -> Result<(i64, i64, i64)> {
    let schedule = lock_schedule(connection, backfill.schedule_id)?;
    let (with_run, waiting) = known(connection, schedule.id, at_ms)?;
    let news: Vec<[Value<'_>; 1]> = at_ms.iter().map(|at_ms| [(*at_ms).into()]).collect();
    let added = connection.execute(
        "INSERT INTO occurrences (schedule_id, scheduled_for, status, source, at_once, start_after,
                                  created_at, updated_at)
         SELECT $2, news.scheduled_for, 'WAITING', 'backfill', $3, news.scheduled_for, $4, $4
         FROM {rows $1: scheduled_for integer} AS news
         WHERE NOT EXISTS (SELECT 1 FROM runs
                           WHERE runs.schedule_id = $2 AND runs.scheduled_for = news.scheduled_for)
         ON CONFLICT (schedule_id, scheduled_for) DO UPDATE
         SET status = excluded.status, source = excluded.source, at_once = excluded.at_once,
             start_after = excluded.start_after, reason = NULL, updated_at = excluded.updated_at
         WHERE occurrences.status = 'SKIPPED'",
        &[Value::rows(&news), schedule.id.into(), backfill.at_once.into(), now_ms.into()],
    )?;
    if count_waiting(connection, schedule.id)? > WAITING_MAX {
        let reason = format!("more than {WAITING_MAX} occurrences would wait; let some of them run first");
        return Err(Error::conflict(format!("backfill {}", schedule.key()), reason));
    }
    connection.wake(WakeUps::DUE);
    Ok((i64::try_from(added).unwrap_or(i64::MAX), with_run, waiting))
}
