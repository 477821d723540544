//! Reads how the parents of waiting jobs ended.

use std::collections::HashMap;

use crate::join_rule::{EndColumns, JobEnd, ParentEnds};
use crate::status::JobStatus;
use windlass_db::error::Result;
use windlass_db::{Connection, Value};

/// Counts how the parents of each job ended.
pub(super) fn read_parents(
    connection: &mut dyn Connection,
    job_ids: &[i64],
) -> Result<HashMap<i64, ParentEnds>> {
    let mut ends: HashMap<i64, ParentEnds> = HashMap::new();
    let waiting: Vec<[Value<'_>; 1]> = job_ids.iter().map(|job_id| [(*job_id).into()]).collect();
    connection.query(
        "SELECT edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed, count(*)
         FROM {rows $1: id integer} AS waiting
         JOIN job_dependencies AS edges ON {by edges.child_id = waiting.id}
         JOIN jobs AS parent ON {by parent.id = edges.parent_id}
         GROUP BY edges.child_id, parent.status, parent.allow_failure, parent.upstream_failed",
        &[Value::rows(&waiting)],
        &mut |row| {
            let columns = EndColumns {
                status: row.parsed(1, JobStatus::parse)?,
                allow_failure: row.integer(2)? != 0,
                upstream_failed: row.integer(3)? != 0,
            };
            let counted = ends.entry(row.integer(0)?).or_default();
            match columns.end() {
                Some(JobEnd::Passed) => counted.passed += row.integer(4)?,
                Some(JobEnd::Broken) => counted.broken += row.integer(4)?,
                Some(JobEnd::NotNeeded) => counted.not_needed += row.integer(4)?,
                // Another program has changed the parent. The job waits until the run is reconciled.
                None => {}
            }
            Ok(())
        },
    )?;
    Ok(ends)
}
