//! What time does to the tables: jobs whose time has come, runs whose time is over.

use crate::status::StopReason;
use crate::store::ForScheduler;
use crate::store::cancel::{Urgency, stop_run};
use crate::store::evidence::Evidence;
use crate::store::finish::slots::admit;
use crate::store::for_scheduler::clock_steps::{ClockReading, steps};
use crate::store::json_ids;
use windlass_db::Connection;
use windlass_db::UpdateReturning;
use windlass_db::all;
use windlass_db::error::Result;
use windlass_db::one;
use windlass_system::wake_ups::WakeUps;

/// Jobs promoted in one transaction at most.
const PROMOTE_MAX: i64 = 1_000;
/// Runs stopped in one transaction at most.
const EXPIRE_MAX: i64 = 100;

/// An answer that took longer says too little about when the server read its clock.
const ANSWER_MAX_MS: i64 = 250;

/// What time has to do next, and the clock that it goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    /// The earliest instant at which a job or a deadline is due, if there is one.
    pub due_at: Option<i64>,
    /// The earliest instant after the one asked about at which a start no longer counts for a rate.
    pub room_at: Option<i64>,
    /// The clock; `None` when the answer took too long to tell.
    pub clock: Option<ClockReading>,
}

/// What time did, and when it has something to do again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Due {
    /// Jobs that became claimable.
    pub promoted: i64,
    /// Runs that were stopped.
    pub expired: i64,
    /// The next instant at which something is due, if anything is.
    pub next_at: Option<i64>,
}

impl ForScheduler<'_> {
    /// The earliest instant at which time has something to do, if there is one.
    ///
    /// # Errors
    /// The database's.
    pub fn next_due(&self) -> Result<Option<i64>> {
        let Ahead { due_at, room_at, .. } = self.ahead(self.store.clock.now_ms())?;
        Ok([due_at, room_at].into_iter().flatten().min())
    }

    /// What time has to do next; of the starts that count for rates only those that count after `room_after_ms`.
    ///
    /// # Errors
    /// The database's.
    pub fn ahead(&self, room_after_ms: i64) -> Result<Ahead> {
        self.store.read(|connection| {
            let asked_ms = self.store.clock.monotonic_ms();
            let (due, room_at, steps, database_now_ms) = one(
                connection,
                "SELECT (SELECT min(execute_after) FROM jobs WHERE status = 'SCHEDULED'),
                        (SELECT min(deadline_at) FROM runs
                         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL
                           AND status IN ('PENDING', 'RUNNING')),
                        (SELECT min(expires_at) FROM queue_starts WHERE expires_at > $1),
                        (SELECT coalesce(max(number), 0) FROM clock_steps),
                        {now_ms}",
                &[room_after_ms.into()],
                |row| {
                    let due = [row.optional_integer(0)?, row.optional_integer(1)?];
                    Ok((due, row.optional_integer(2)?, row.integer(3)?, row.integer(4)?))
                },
            )?;
            let took_ms = self.store.clock.monotonic_ms() - asked_ms;
            let clock = (took_ms <= ANSWER_MAX_MS).then(|| {
                self.store.clock.lead(database_now_ms, asked_ms + took_ms / 2);
                let (offset_ms, steady_ms) =
                    (self.store.clock.wall_offset_ms(), self.store.clock.steady_ms());
                ClockReading { steps, offset_ms, steady_ms }
            });
            Ok(Ahead { due_at: due.into_iter().flatten().min(), room_at, clock })
        })
    }

    /// Makes claimable what is due and stops the runs whose time is over, a batch at most; call again
    /// while [`Due::next_at`] is not in the future.
    ///
    /// # Errors
    /// The database's.
    pub fn promote_due(&self) -> Result<Due> {
        self.promote_due_at(self.store.clock.now_ms(), None)
    }

    /// The same at an instant that the caller knows. With `clock_steps`: nothing, when the tables were moved with the
    /// clock since the caller has looked at it.
    ///
    /// # Errors
    /// The database's.
    pub fn promote_due_at(&self, now_ms: i64, clock_steps: Option<i64>) -> Result<Due> {
        let (promoted, expired) =
            self.store.write("promote due jobs", Evidence::Repeat, move |connection| {
                if let Some(known) = clock_steps
                    && steps(connection)? != known
                {
                    return Ok((0, 0));
                }
                // Runs before jobs, as everywhere: see `lock_runs_of`.
                let late = all(
                    connection,
                    "SELECT id FROM runs
                 WHERE deadline_at IS NOT NULL AND stop_reason IS NULL
                   AND status IN ('PENDING', 'RUNNING') AND deadline_at <= $1
                 ORDER BY deadline_at LIMIT $2 {lock}",
                    &[now_ms.into(), EXPIRE_MAX.into()],
                    |row| row.integer(0),
                )?;
                for run_id in &late {
                    stop_run(connection, *run_id, StopReason::TimedOut, Urgency::WithGrace, now_ms)?;
                }
                let promoted = promote(connection, now_ms)?;
                if promoted > 0 {
                    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
                }
                Ok((i64::try_from(promoted).unwrap_or(i64::MAX), late.len() as i64))
            })?;
        Ok(Due { promoted, expired, next_at: self.next_due()? })
    }
}

/// Makes jobs claimable that are due.
static PROMOTE: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "CASE WHEN concurrency_key IS NULL THEN 'PENDING' ELSE 'WAITING' END"),
        ("delay_ms", "NULL"),
        ("priority", "{priority}"),
        ("updated_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'SCHEDULED'}",
    returning: &["concurrency_key"],
};

/// Makes the jobs claimable that are due, a batch at most.
fn promote(connection: &mut dyn Connection, now_ms: i64) -> Result<u64> {
    // Two statements: within one, the choice of rows might be made anew for each of them.
    let due = all(
        connection,
        "SELECT id FROM jobs WHERE status = 'SCHEDULED' AND execute_after <= $1
         ORDER BY execute_after, id LIMIT $2 {lock}",
        &[now_ms.into(), PROMOTE_MAX.into()],
        |row| row.integer(0),
    )?;
    if due.is_empty() {
        return Ok(0);
    }
    let (mut promoted, mut wanted_keys) = (0, Vec::new());
    connection.update_returning(&PROMOTE, &[(&json_ids(&due)).into(), now_ms.into()], &mut |row| {
        promoted += 1;
        wanted_keys.extend(row.lossy_text(0)?);
        Ok(())
    })?;
    admit(connection, &wanted_keys, now_ms)?;
    Ok(promoted)
}
