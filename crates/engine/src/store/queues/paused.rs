//! The queues that are paused, with what waits in them.

use crate::store::Queues;
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::stats::Count;
use windlass_db::all;
use windlass_db::error::Result;

/// Where the count of the jobs of a queue stops.
const JOBS_MAX: i64 = 1_000;

/// A queue that is paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedQueue {
    /// Its name.
    pub name: String,
    /// When it was paused.
    pub paused_at: i64,
    /// How many of its jobs could be claimed if it were not, up to a thousand.
    pub pending: Count,
}

/// In the order of the claim index, so that no more jobs are read than are counted.
const PENDING: &str = "SELECT count(*) FROM (SELECT id FROM jobs
    WHERE status = 'PENDING' AND kind > '' AND queue = $1 ORDER BY queue, kind LIMIT $2) AS counted";

impl Queues<'_> {
    /// The paused queues with the jobs that wait in them, by name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn paused_with_jobs(&self, limit: i64) -> Result<Vec<PausedQueue>> {
        self.store.read(|connection| {
            let queues = all(
                connection,
                "SELECT name, paused_at FROM queues WHERE paused_at IS NOT NULL ORDER BY name LIMIT $1",
                &[limit.into()],
                |row| Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?)),
            )?;
            let asked: Vec<PlainQuery<'_>> = queues
                .iter()
                .map(|(name, _at)| (PENDING, vec![name.into(), (JOBS_MAX + 1).into()]))
                .collect();
            let counted = rows_of_each(connection, &asked, |row| row.integer(0))?;
            let queues = queues.into_iter().zip(counted.into_iter().flatten());
            Ok(queues
                .map(|((name, paused_at), counted)| PausedQueue {
                    name,
                    paused_at,
                    pending: Count::up_to(JOBS_MAX, counted),
                })
                .collect())
        })
    }
}
