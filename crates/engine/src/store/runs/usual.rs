//! How long the runs of a workflow usually take, and its last success.

use std::collections::BTreeMap;

use crate::store::{Runs, json_list};
use windlass_db::error::Result;
use windlass_db::first;

/// The newest successful runs whose durations are compared.
const RUNS_COMPARED: i64 = 20;

impl Runs<'_> {
    /// How long the runs of each workflow usually take, in milliseconds: the median of the last 20 that succeeded. A workflow
    /// without such a run is left out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn usual_durations(&self, workflows: &[&str]) -> Result<BTreeMap<String, i64>> {
        // Compared as pairs, the rows come in the order of the index of workflows. With `workflow = names.name` PostgreSQL knows
        // only how many rows a workflow has on average. Then it reads back through all runs for one that has few.
        let names = json_list("compare durations", workflows)?;
        let mut durations: BTreeMap<String, Vec<i64>> = BTreeMap::new();
        self.store.read(|connection| {
            connection.query(
                "SELECT names.name,
                        (SELECT string_agg(CAST(duration AS TEXT), ' ')
                         FROM (SELECT newest.finished_at - newest.started_at + newest.ran_before_ms AS duration
                               FROM runs AS newest
                               WHERE newest.finished_at IS NOT NULL AND newest.parent_job_id IS NULL
                                 AND (newest.workflow, newest.status) >= (names.name, 'SUCCESSFUL')
                                 AND (newest.workflow, newest.status) <= (names.name, 'SUCCESSFUL')
                                 AND newest.started_at IS NOT NULL
                               ORDER BY newest.workflow DESC, newest.status DESC, newest.id DESC LIMIT $2) AS last)
                 FROM (SELECT value AS name FROM {texts $1} AS wanted) AS names",
                &[(&names).into(), RUNS_COMPARED.into()],
                &mut |row| {
                    let numbers = row.optional_text(1)?.unwrap_or_default();
                    let numbers = numbers.split(' ').filter_map(|number| number.parse().ok());
                    durations.insert(row.text(0)?, numbers.collect());
                    Ok(())
                },
            )
        })?;
        Ok(durations.into_iter().filter_map(|(name, durations)| Some((name, median(durations)?))).collect())
    }

    /// The last run of a workflow that succeeded before another run: its id, and when it was accepted.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn last_successful_before(&self, workflow: &str, run_id: i64) -> Result<Option<(i64, i64)>> {
        self.store.read(|connection| {
            first(
                connection,
                "SELECT id, created_at FROM runs
                 WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND workflow = $1 AND status = 'SUCCESSFUL'
                   AND id < $2
                 ORDER BY id DESC LIMIT 1",
                &[workflow.into(), run_id.into()],
                |row| Ok((row.integer(0)?, row.integer(1)?)),
            )
        })
    }
}

/// The value in the middle. Of two values in the middle it is the greater one.
fn median(mut values: Vec<i64>) -> Option<i64> {
    values.sort_unstable();
    values.get(values.len() / 2).map(|middle| (*middle).max(0))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!([median(vec![]), median(vec![3]), median(vec![9, 1, 3])], [None, Some(3), Some(3)]);
        assert_eq!(median(vec![4, 1]), Some(4));
    }
}
