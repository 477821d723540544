//! What happens to durations when somebody sets the wall clock.
//!
//! A retry's pause, a delay and a run's timeout are durations. The tables hold their ends as instants, because every
//! process can compare those. When the clock is set, these instants are moved by the same amount: once, by the first
//! scheduler that notices. Instants that somebody named stay. See
//! `docs/decisions/0041-durations-and-the-wall-clock.md`.

use crate::store::ForScheduler;
use crate::store::evidence::Evidence;
use crate::store::health::latest;
use crate::store::queues::rules::move_starts;
use crate::transition::DELAY_MAX_MS;
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_db::one;
use windlass_system::wake_ups::WakeUps;

/// Steps of the clock that are kept for people to read.
const KEPT_MAX: i64 = 100;
/// Rows that are later than the clock by less are no sign that it was set back: other processes wrote them.
const AHEAD_MIN_MS: i64 = 1_000;

/// The wall clock as one look has found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockReading {
    /// How often the tables were moved with the clock.
    pub steps: i64,
    /// [`Clock::wall_offset_ms`](crate::Clock::wall_offset_ms).
    pub offset_ms: i64,
    /// [`Clock::steady_ms`](crate::Clock::steady_ms) at the time of the look.
    pub steady_ms: i64,
}

impl ClockReading {
    /// The wall time of the look.
    #[must_use]
    pub fn now_ms(self) -> i64 {
        self.offset_ms.saturating_add(self.steady_ms)
    }
}

/// Somebody set the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockStep {
    /// Its number: one more than [`ClockReading::steps`].
    pub number: i64,
    /// By how much it was set forward, in milliseconds; negative when it was set back.
    pub by_ms: i64,
    /// The wall time after it.
    pub now_ms: i64,
    /// It happened at most so long ago. What began within this time, by the clock as it is now, began after it.
    pub unseen_ms: i64,
}

/// What was moved with the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Jobs that wait for a duration.
    pub jobs: i64,
    /// Runs with a timeout.
    pub runs: i64,
}

impl ForScheduler<'_> {
    /// Moves the ends of durations by a step of the clock. `None` when another process has done so.
    ///
    /// # Errors
    /// The database's.
    pub fn move_with_clock(&self, step: ClockStep) -> Result<Option<Moved>> {
        self.store.write("move what waits with the clock", Evidence::Repeat, move |connection| {
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

    /// For who begins to look: when the tables are later than the clock, it was set back while nobody looked. What
    /// seems to begin in the future begins now: no wait gets longer than its duration. Returns what was changed.
    ///
    /// # Errors
    /// The database's.
    pub fn begin_future_waits(&self, now_ms: i64) -> Result<Moved> {
        let nothing = Moved { jobs: 0, runs: 0 };
        if self.store.read(latest)?.is_none_or(|latest_ms| latest_ms <= now_ms.saturating_add(AHEAD_MIN_MS)) {
            return Ok(nothing);
        }
        self.store.write("begin waits anew", Evidence::Repeat, move |connection| {
            // Runs before jobs, as everywhere: see `lock_runs_of`.
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
            Ok(moved(jobs, runs))
        })
    }
}

fn moved(jobs: u64, runs: u64) -> Moved {
    Moved { jobs: i64::try_from(jobs).unwrap_or(i64::MAX), runs: i64::try_from(runs).unwrap_or(i64::MAX) }
}

/// All of them in one transaction: of some that were moved and some that were not, nobody could tell which.
fn move_ends(connection: &mut dyn Connection, step: ClockStep) -> Result<Moved> {
    let ClockStep { by_ms, now_ms, unseen_ms, .. } = step;
    let parameters = [by_ms.into(), now_ms.saturating_sub(unseen_ms).into(), now_ms.into()];
    let runs = connection.execute(
        "UPDATE runs SET deadline_at = deadline_at + $1
         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL AND status IN ('PENDING', 'RUNNING')
           AND NOT (deadline_at - timeout_ms > $2 AND deadline_at - timeout_ms <= $3)",
        &parameters,
    )?;
    // Other programs may write any number: what does not fit into a sum is left alone.
    let jobs = connection.execute(
        "UPDATE jobs SET execute_after = execute_after + $1
         WHERE status = 'SCHEDULED'
           AND CASE WHEN delay_ms >= 0 AND delay_ms <= $4
                     AND execute_after > -4000000000000000000 AND execute_after < 4000000000000000000
                    THEN NOT (execute_after - delay_ms > $2 AND execute_after - delay_ms <= $3)
                    ELSE 1 = 0 END",
        &[parameters[0], parameters[1], parameters[2], DELAY_MAX_MS.into()],
    )?;
    Ok(moved(jobs, runs))
}

/// How often the tables were moved with the clock.
pub(in crate::store) fn steps(connection: &mut dyn Connection) -> Result<i64> {
    one(connection, "SELECT coalesce(max(number), 0) FROM clock_steps", &[], |row| row.integer(0))
}
