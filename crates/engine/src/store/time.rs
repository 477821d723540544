//! What time does to the tables: jobs whose time has come, runs whose time is over.

use super::admission::admit;
use super::cancel::{Urgency, stop_run};
use super::evidence::Evidence;
use super::{Store, json_ids};
use crate::db::{Connection, all, one};
use crate::error::Result;
use crate::signal::Hints;
use crate::status::StopReason;

/// Jobs promoted in one transaction at most.
const PROMOTE_MAX: i64 = 1_000;
/// Runs stopped in one transaction at most.
const EXPIRE_MAX: i64 = 100;

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

impl Store {
    /// The earliest instant at which a job or a deadline is due, if there is one.
    ///
    /// # Errors
    /// The database's.
    pub fn next_due(&self) -> Result<Option<i64>> {
        self.read(|connection| {
            let earliest = one(
                connection,
                "SELECT (SELECT min(execute_after) FROM jobs WHERE status = 'SCHEDULED'),
                        (SELECT min(deadline_at) FROM runs
                         WHERE deadline_at IS NOT NULL AND stop_reason IS NULL
                           AND status IN ('PENDING', 'RUNNING')),
                        (SELECT min(expires_at) FROM queue_starts)",
                &[],
                |row| Ok([row.optional_integer(0)?, row.optional_integer(1)?, row.optional_integer(2)?]),
            )?;
            Ok(earliest.into_iter().flatten().min())
        })
    }

    /// Makes claimable what is due and stops the runs whose time is over, a batch at most; call again
    /// while [`Due::next_at`] is not in the future.
    ///
    /// # Errors
    /// The database's.
    pub fn promote_due(&self) -> Result<Due> {
        let now_ms = self.clock.now_ms();
        let (promoted, expired) = self.write("promote due jobs", Evidence::Repeat, move |connection| {
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
            let expired_starts = expire_starts(connection, now_ms)?;
            if promoted > 0 || expired_starts > 0 {
                connection.hint(Hints::PENDING | Hints::PROGRESS);
            }
            Ok((i64::try_from(promoted).unwrap_or(i64::MAX), late.len() as i64))
        })?;
        Ok(Due { promoted, expired, next_at: self.next_due()? })
    }
}

/// Takes away starts that no longer count against the rates of their queues, which makes room.
fn expire_starts(connection: &mut dyn Connection, now_ms: i64) -> Result<u64> {
    connection.execute("DELETE FROM queue_starts WHERE expires_at <= $1", &[now_ms.into()])
}

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
    connection.query(
        "UPDATE jobs
         SET status = CASE WHEN concurrency_key IS NULL THEN 'PENDING' ELSE 'WAITING' END,
             priority = {priority},
             updated_at = $2
         {where} id {in $1} AND {guard status = 'SCHEDULED'}
         {returning} concurrency_key",
        &[(&json_ids(&due)).into(), now_ms.into()],
        &mut |row| {
            promoted += 1;
            wanted_keys.extend(row.lossy_text(0)?);
            Ok(())
        },
    )?;
    admit(connection, &wanted_keys, now_ms)?;
    Ok(promoted)
}
