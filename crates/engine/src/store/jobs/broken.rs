//! The jobs because of which another one was skipped.

use crate::status::JobStatus;
use crate::store::Jobs;
use windlass_db::all;
use windlass_db::error::Result;

/// How many of them are named.
const NAMED_MAX: usize = 8;

/// The jobs because of which a job was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BrokenBefore {
    /// The name and the state of each: FAILED or CANCELLED. The oldest first.
    pub named: Vec<(String, JobStatus)>,
    /// Whether there are more than are named.
    pub has_more: bool,
}

impl Jobs<'_> {
    /// The jobs before a skipped job that failed or were cancelled, directly or through other skipped jobs.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn broken_before(&self, job_id: i64) -> Result<BrokenBefore> {
        let mut named = self.store.read(|connection| {
            all(
                connection,
                "WITH RECURSIVE earlier (id) AS (
                     SELECT parent_id FROM job_dependencies WHERE child_id = $1
                     UNION
                     SELECT edges.parent_id FROM earlier
                     CROSS JOIN jobs AS skipped CROSS JOIN job_dependencies AS edges
                     WHERE {by skipped.id = earlier.id} AND {by edges.child_id = skipped.id}
                       AND skipped.status = 'SKIPPED' AND skipped.upstream_failed = 1
                 )
                 SELECT broken.name, broken.status FROM earlier CROSS JOIN jobs AS broken
                 WHERE {by broken.id = earlier.id}
                   AND (broken.status = 'CANCELLED' OR (broken.status = 'FAILED' AND broken.allow_failure = 0))
                 ORDER BY broken.id LIMIT $2",
                &[job_id.into(), (NAMED_MAX as i64 + 1).into()],
                |row| Ok((row.lossy_text(0)?.unwrap_or_default(), row.parsed(1, JobStatus::parse)?)),
            )
        })?;
        let has_more = named.len() > NAMED_MAX;
        named.truncate(NAMED_MAX);
        Ok(BrokenBefore { named, has_more })
    }
}
