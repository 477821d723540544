//! The newest runs of several workflows, for lists of workflows.

use std::collections::BTreeMap;

use super::list::{RunSummary, read_summary};
use crate::store::{Runs, json_list};
use windlass_db::all;
use windlass_db::error::Result;

/// So many of the newest unfinished runs are looked at, because their index has no workflow.
const UNFINISHED_SEEN_MAX: i64 = 10_000;

impl Runs<'_> {
    /// The newest runs of each workflow, the newest first, without those that jobs have started. Unfinished runs are found among
    /// the newest 10,000 of all workflows. A workflow without runs is left out.
    ///
    /// All workflows are read by two statements.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn newest_of_each(
        &self,
        workflows: &[&str],
        limit: i64,
    ) -> Result<BTreeMap<String, Vec<RunSummary>>> {
        // The finished runs are compared as pairs for the reason that is said where usual durations are read.
        let names = json_list("list runs of workflows", workflows)?;
        let mut found = self.store.read(|connection| {
            let mut found = all(
                connection,
                "SELECT {run_summary}
                 FROM (SELECT value AS name FROM {texts $1} AS wanted) AS names CROSS JOIN runs
                 WHERE runs.id {in SELECT id FROM
                     (SELECT id FROM (SELECT id FROM runs AS successful
                                      WHERE finished_at IS NOT NULL AND parent_job_id IS NULL
                                        AND (workflow, status) >= (names.name, 'SUCCESSFUL')
                                        AND (workflow, status) <= (names.name, 'SUCCESSFUL')
                                      ORDER BY workflow DESC, status DESC, id DESC LIMIT $2) AS successful
                      UNION ALL
                      SELECT id FROM (SELECT id FROM runs AS failed
                                      WHERE finished_at IS NOT NULL AND parent_job_id IS NULL
                                        AND (workflow, status) >= (names.name, 'FAILED')
                                        AND (workflow, status) <= (names.name, 'FAILED')
                                      ORDER BY workflow DESC, status DESC, id DESC LIMIT $2) AS failed
                      UNION ALL
                      SELECT id FROM (SELECT id FROM runs AS cancelled
                                      WHERE finished_at IS NOT NULL AND parent_job_id IS NULL
                                        AND (workflow, status) >= (names.name, 'CANCELLED')
                                        AND (workflow, status) <= (names.name, 'CANCELLED')
                                      ORDER BY workflow DESC, status DESC, id DESC LIMIT $2) AS cancelled) AS finished
                     ORDER BY id DESC LIMIT $2}",
                &[(&names).into(), limit.into()],
                read_summary,
            )?;
            found.extend(all(
                connection,
                "SELECT {run_summary}
                 FROM (SELECT newest.id AS found_id
                       FROM (SELECT seen.id, row_number() OVER (PARTITION BY seen.workflow ORDER BY seen.id DESC) AS place
                             FROM (SELECT id, workflow FROM runs
                                   WHERE status IN ('PENDING', 'RUNNING') AND parent_job_id IS NULL
                                   ORDER BY id DESC LIMIT $3) AS seen
                             WHERE seen.workflow IN (SELECT value FROM {texts $1} AS wanted)) AS newest
                       WHERE newest.place <= $2) AS found
                 CROSS JOIN runs WHERE {by runs.id = found.found_id}",
                &[(&names).into(), limit.into(), UNFINISHED_SEEN_MAX.into()],
                read_summary,
            )?);
            Ok(found)
        })?;
        found.sort_unstable_by_key(|run| std::cmp::Reverse(run.id));
        let limit = usize::try_from(limit).unwrap_or(0);
        let mut newest: BTreeMap<String, Vec<RunSummary>> = BTreeMap::new();
        for run in found {
            let of_workflow = newest.entry(run.workflow.clone()).or_default();
            if of_workflow.len() < limit {
                of_workflow.push(run);
            }
        }
        Ok(newest)
    }
}
