//! A range of the past that a person asks for: its occurrences wait, and any scheduler starts them, the earliest
//! first. Asked for again, or killed half-way and asked for again, each gets its run once.

use super::definitions::timetable;
use super::occurrences::count_waiting;
use super::overlap::WAITING_MAX;
use super::{Schedule, hold};
use crate::store::Schedules;
use crate::store::evidence::Evidence;
use crate::store::json_ids;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Value, one};
use windlass_system::wake_ups::WakeUps;

/// Occurrences of one backfill at most.
pub const BACKFILL_MAX: usize = 100_000;
/// The most runs of backfills that may be unfinished at once.
pub const AT_ONCE_MAX: i64 = 1_000;
/// Occurrences written in one transaction.
const CHUNK: usize = 1_000;

/// A range of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backfill {
    /// The schedule.
    pub schedule_id: i64,
    /// From this nominal time on, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    /// Up to this one, itself included.
    pub to_ms: i64,
    /// So many of its runs may be unfinished at once: 1 to [`AT_ONCE_MAX`].
    pub at_once: i64,
}

/// What a backfill comes to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Backfilling {
    /// The nominal times within the range.
    pub occurrences: Vec<i64>,
    /// How many of them wait for their run with this.
    pub added: i64,
    /// How many have a run.
    pub with_run: i64,
    /// How many waited before.
    pub waiting: i64,
}

impl Schedules<'_> {
    /// What [`Store::backfill`] would do; nothing changes.
    ///
    /// # Errors
    /// As of [`Store::backfill`].
    pub fn preview_backfill(&self, backfill: Backfill) -> Result<Backfilling> {
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

    /// Lets the occurrences of a range of the past wait for their runs, but for those that have one.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] when the range lies in the future, or has more than
    /// [`BACKFILL_MAX`] occurrences; [`Error::Conflict`] when more than [`WAITING_MAX`] would wait; and the
    /// database's. What was written before an error stays, and is left out the next time.
    pub fn backfill(&self, backfill: Backfill) -> Result<Backfilling> {
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

    /// The nominal times that a backfill asks for.
    fn occurrences_of(&self, schedule: &Schedule, backfill: Backfill) -> Result<Backfilling> {
        let invalid = |reason: String| Error::invalid(format!("backfill {}", schedule.key()), reason);
        let Backfill { from_ms, to_ms, at_once, .. } = backfill;
        if schedule.removed_at.is_some() {
            return Err(Error::not_found(format!("schedule {}", schedule.key())));
        }
        if from_ms > to_ms {
            return Err(invalid("the range ends before it begins".to_owned()));
        }
        if to_ms > self.store.clock.now_ms() {
            return Err(invalid(
                "the range ends in the future, which the schedule does by itself".to_owned(),
            ));
        }
        if !(1..=AT_ONCE_MAX).contains(&at_once) {
            return Err(invalid(format!("from 1 to {AT_ONCE_MAX} runs may be unfinished at once")));
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
        Ok(Backfilling { occurrences, ..Backfilling::default() })
    }
}

/// How many of these have a run, and how many wait for one.
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

/// Returns how many were added, have a run, and waited before.
fn write(
    connection: &mut dyn Connection,
    backfill: &Backfill,
    at_ms: &[i64],
    now_ms: i64,
) -> Result<(i64, i64, i64)> {
    let schedule = hold(connection, backfill.schedule_id)?;
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
        let reason =
            format!("more than {WAITING_MAX} occurrences of it would wait; let some of them run first");
        return Err(Error::conflict(format!("backfill {}", schedule.key()), reason));
    }
    connection.wake(WakeUps::DUE);
    Ok((i64::try_from(added).unwrap_or(i64::MAX), with_run, waiting))
}
