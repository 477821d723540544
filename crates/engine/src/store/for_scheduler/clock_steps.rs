//! What happens to durations when somebody sets the wall clock.
//!
//! A retry's backoff, a delay and a run's timeout are durations. The tables store their ends as instants, because all
//! processes can compare those. When somebody sets the clock, the first scheduler that notices moves these instants
//! by the same amount, once. Instants that a person named are not moved. See
//! `docs/decisions/0041-durations-and-the-wall-clock.md`.

use crate::store::ForScheduler;
use crate::store::evidence::Evidence;
use crate::store::health::latest;
use crate::store::queues::rules::move_starts;
use crate::transition::DELAY_MAX_MS;
use windlass_db::error::Result;
use windlass_db::{Connection, one};
use windlass_system::wake_ups::WakeUps;

/// How many clock steps are kept for people to read.
const KEPT_MAX: i64 = 100;
/// Rows that are less than this ahead of the clock do not mean that it was set back, because another process may have
/// written them.
const AHEAD_MIN_MS: i64 = 1_000;

/// A reading of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// How many clock steps the tables had seen at the reading.
    pub steps: i64,
    /// [`Clock::wall_offset_ms`](crate::Clock::wall_offset_ms).
    pub offset_ms: i64,
    /// [`Clock::steady_ms`](crate::Clock::steady_ms) at the reading.
    pub steady_ms: i64,
}

impl ClockReading {
    /// The wall time of the reading.
    #[must_use]
    pub fn now_ms(self) -> i64 {
        self.offset_ms.saturating_add(self.steady_ms)
    }
}

/// A change of the wall clock by somebody who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// Its number: one more than [`ClockReading::steps`].
    pub number: i64,
    /// By how much it was set forward, in milliseconds; negative when it was set back.
    pub by_ms: i64,
    /// The wall time after it.
    pub now_ms: i64,
    /// The step happened at most this long before it was noticed. A duration that started in this time, by the clock
    /// as it is now, started after the step.
    pub unseen_ms: i64,
}

/// How many durations were moved with the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedDurations {
    /// Jobs that wait for a delay or a retry.
    pub jobs: i64,
    /// Runs with a timeout.
    pub runs: i64,
}

impl ForScheduler<'_> {
    /// Moves the ends of durations by a step of the clock. Returns `None` if another process has done that already.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn move_with_clock(&self, step: ClockStep) -> Result<Option<MovedDurations>> {
        self.store.write("move durations with the clock", Evidence::Repeat, move |connection| {
            let noted = connection.execute(
                "INSERT INTO clock_steps (number, at, by_ms) VALUES ($1, $2, $3) ON CONFLICT (number) DO NOTHING",
                &[step.number.into(), step.now_ms.into(), step.by_ms.into()],
            )?;
            if noted == 0 {
                return Ok(None);
            }
            connection.execute(
                "DELETE FROM clock_steps WHERE number <= $1",
                &[step.number.saturating_sub(KEPT_MAX).into()],
            )?;
            let moved = move_ends(connection, step)?;
            move_starts(connection, step.by_ms, step.now_ms, step.unseen_ms)?;
            connection.wake(WakeUps::DUE);
            Ok(Some(moved))
        })
    }

    /// Restarts waits that seem to start in the future, because the clock was set back while no scheduler was
    /// running. They start now, so that no wait is longer than its duration. Returns how many rows were changed.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn begin_future_waits(&self, now_ms: i64) -> Result<MovedDurations> {
        let nothing = MovedDurations { jobs: 0, runs: 0 };
        if self.store.read(latest)?.is_none_or(|latest_ms| latest_ms <= now_ms.saturating_add(AHEAD_MIN_MS)) {
            return Ok(nothing);
        }
        self.store.write("restart waits after a clock step", Evidence::Repeat, move |connection| {
            // Runs before jobs, the order of locks everywhere: see `lock_runs_of`.
            let runs = connection.execute(
                "UPDATE runs SET deadline_at = $1 + timeout_ms
                 WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING')
                   AND deadline_at > $1 AND deadline_at - timeout_ms > $1",
                &[now_ms.into()],
            )?;
            let jobs = connection.execute(
                "UPDATE jobs SET execute_after = $1 + delay_ms
                 WHERE status = 'SCHEDULED' AND execute_after > $1
                   AND CASE WHEN delay_ms >= 0 AND delay_ms <= $2 THEN execute_after - delay_ms > $1 ELSE 1 = 0 END",
                &[now_ms.into(), DELAY_MAX_MS.into()],
            )?;
            let waits = connection.execute(
                "UPDATE jobs SET wait_ends_at = $1 + (wait_ends_at - started_at), started_at = $1
                 WHERE wait_ends_at IS NOT NULL AND waits_for IS NOT NULL AND started_at > $1",
                &[now_ms.into()],
            )?;
            connection.execute(
                "UPDATE jobs SET deadline_at = deadline_at - decided_at + $1, decided_at = $1
                 WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL
                   AND decided_at > $1",
                &[now_ms.into()],
            )?;
            Ok(moved(jobs + waits, runs))
        })
    }
}

fn moved(jobs: u64, runs: u64) -> MovedDurations {
    MovedDurations {
        jobs: i64::try_from(jobs).unwrap_or(i64::MAX),
        runs: i64::try_from(runs).unwrap_or(i64::MAX),
    }
}

/// All rows are moved in one transaction. After a partial move nobody could tell which rows were moved.
fn move_ends(connection: &mut dyn Connection, step: ClockStep) -> Result<MovedDurations> {
    let ClockStep { by_ms, now_ms, unseen_ms, .. } = step;
    let parameters = [by_ms.into(), now_ms.saturating_sub(unseen_ms).into(), now_ms.into()];
    let runs = connection.execute(
        "UPDATE runs SET deadline_at = deadline_at + $1
         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING')
           AND NOT (deadline_at - timeout_ms > $2 AND deadline_at - timeout_ms <= $3)",
        &parameters,
    )?;
    // Other programs may write any number here. A number that would overflow is not moved.
    let jobs = connection.execute(
        "UPDATE jobs SET execute_after = execute_after + $1
         WHERE status = 'SCHEDULED'
           AND CASE WHEN delay_ms >= 0 AND delay_ms <= $4
                     AND execute_after > -4000000000000000000 AND execute_after < 4000000000000000000
                    THEN NOT (execute_after - delay_ms > $2 AND execute_after - delay_ms <= $3)
                    ELSE 1 = 0 END",
        &[parameters[0], parameters[1], parameters[2], DELAY_MAX_MS.into()],
    )?;
    let waits = connection.execute(
        "UPDATE jobs SET wait_ends_at = wait_ends_at + $1
         WHERE wait_ends_at IS NOT NULL AND waits_for IS NOT NULL
           AND NOT (started_at > $2 AND started_at <= $3)",
        &parameters,
    )?;
    // A job that was asked to stop at its deadline keeps it, because the end of the job depends on that.
    connection.execute(
        "UPDATE jobs SET deadline_at = deadline_at + $1
         WHERE deadline_at IS NOT NULL AND finished_at IS NULL AND cancel_requested_at IS NULL
           AND decided_at IS NOT NULL AND NOT (decided_at > $2 AND decided_at <= $3)",
        &parameters,
    )?;
    Ok(moved(jobs + waits, runs))
}

/// Returns the number of clock steps that the tables have seen.
pub(in crate::store) fn steps(connection: &mut dyn Connection) -> Result<i64> {
    one(connection, "SELECT coalesce(max(number), 0) FROM clock_steps", &[], |row| row.integer(0))
}
