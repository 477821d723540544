//! How many runs are in each state, for the tabs of a list.

use crate::status::RunStatus;
use crate::store::Runs;
use crate::store::accepted::{ListedTable, TimeRange, ids_accepted_in};
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::stats::Count;
use windlass_db::error::Result;

/// Where the counts stop.
const COUNTED_MAX: i64 = 999;

impl Runs<'_> {
    /// Counts runs in each state, every state once, up to 999: the unfinished ones of all times, the finished ones that were
    /// accepted in a range of time. Runs that jobs have started are not counted.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn counts(&self, workflow: Option<&str>, finished: TimeRange) -> Result<Vec<(RunStatus, Count)>> {
        let counted = self.store.read(|connection| {
            let ids = ids_accepted_in(connection, ListedTable::Runs, finished)?;
            let asked: Vec<PlainQuery<'_>> = RunStatus::ALL
                .iter()
                .map(|status| {
                    let text = status.as_str().into();
                    let limit = (COUNTED_MAX + 1).into();
                    match (status.is_terminal(), workflow) {
                        (true, Some(name)) => (
                            FINISHED_OF_WORKFLOW,
                            vec![text, limit, ids.from.into(), ids.below.into(), name.into()],
                        ),
                        (true, None) => (FINISHED, vec![text, limit, ids.from.into(), ids.below.into()]),
                        (false, name) => (UNFINISHED, vec![text, limit, name.into()]),
                    }
                })
                .collect();
            rows_of_each(connection, &asked, |row| row.integer(0))
        })?;
        let counted = counted.into_iter().flatten().map(|counted| Count::up_to(COUNTED_MAX, counted));
        Ok(RunStatus::ALL.into_iter().zip(counted).collect())
    }
}

const FINISHED: &str = "SELECT count(*) FROM (SELECT id FROM runs
    WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = $1 AND id >= $3 AND id < $4
    ORDER BY id DESC LIMIT $2) AS counted";
const FINISHED_OF_WORKFLOW: &str = "SELECT count(*) FROM (SELECT id FROM runs
    WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND workflow = $5 AND status = $1
      AND id >= $3 AND id < $4
    ORDER BY id DESC LIMIT $2) AS counted";
const UNFINISHED: &str = "SELECT count(*) FROM (SELECT id FROM runs
    WHERE status IN ('PENDING', 'RUNNING') AND parent_job_id IS NULL AND status = $1
      AND (CAST($3 AS TEXT) IS NULL OR workflow = $3)
    ORDER BY id DESC LIMIT $2) AS counted";
