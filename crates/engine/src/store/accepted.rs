//! The ids of the runs and jobs that were accepted in a range of time, and of the changes that were recorded in it.

use std::collections::BTreeMap;

use crate::store::json_ids;
use crate::store::page::IdRange;
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// How much the clocks of two processes may differ, in milliseconds. Ids are only roughly in the order of time, so a search
/// by time begins this much earlier and ends this much later.
const CLOCKS_DIFFER_MAX_MS: i64 = 60_000;

/// A range of instants, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant.
    pub from_ms: Option<i64>,
    /// The first instant after the range.
    pub until_ms: Option<i64>,
}

/// A table that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum ListedTable {
    Runs,
    Jobs,
    Audit,
}

/// A range of ids with all rows that were accepted in this time, and a few more.
pub(in crate::store) fn ids_accepted_in(
    connection: &mut dyn Connection,
    table: ListedTable,
    created: TimeRange,
) -> Result<IdRange> {
    let from = match created.from_ms {
        Some(from_ms) => first_id_at(connection, table, from_ms.saturating_sub(CLOCKS_DIFFER_MAX_MS))?,
        None => i64::MIN,
    };
    let below = match created.until_ms {
        Some(until_ms) => first_id_at(connection, table, until_ms.saturating_add(CLOCKS_DIFFER_MAX_MS))?,
        None => i64::MAX,
    };
    Ok(IdRange { from, below })
}

/// The id of the first row that was accepted at an instant or later.
fn first_id_at(connection: &mut dyn Connection, table: ListedTable, at_ms: i64) -> Result<i64> {
    Ok(first_ids_at(connection, table, &[at_ms])?.pop().unwrap_or(0))
}

/// The same for several instants, in their order, by one statement: a server plans each statement again.
///
/// They are found by binary search. The first step is as long as the table, each further one half as long, rounded up, and a step
/// is made if the row behind it was accepted earlier. An index by time would slow each submission down, and would not give the
/// rows in the order of ids.
pub(in crate::store) fn first_ids_at(
    connection: &mut dyn Connection,
    table: ListedTable,
    at_ms: &[i64],
) -> Result<Vec<i64>> {
    let asked = json_ids(at_ms);
    let sql = match table {
        ListedTable::Runs => FIRST_RUNS_AT,
        ListedTable::Jobs => FIRST_JOBS_AT,
        ListedTable::Audit => FIRST_CHANGES_AT,
    };
    let found = all(connection, sql, &[(&asked).into()], |row| Ok((row.integer(0)?, row.integer(1)?)))?;
    let found: BTreeMap<i64, i64> = found.into_iter().collect();
    Ok(at_ms.iter().map(|at_ms| found.get(at_ms).copied().unwrap_or(0)).collect())
}

const FIRST_RUNS_AT: &str = "WITH RECURSIVE steps (at_ms, reached, step) AS (
         SELECT CAST(wanted.value AS {integer}), coalesce((SELECT min(id) FROM runs), 0) - 1,
                coalesce((SELECT max(id) FROM runs) - (SELECT min(id) FROM runs), 0) + 1
         FROM {texts $1} AS wanted
         UNION ALL
         SELECT at_ms,
                CASE WHEN (SELECT created_at FROM runs WHERE id >= reached + step ORDER BY id LIMIT 1) < at_ms
                     THEN reached + step ELSE reached END,
                CASE WHEN step = 1 THEN 0 ELSE (step + 1) / 2 END
         FROM steps WHERE step > 0
     )
     SELECT at_ms, max(reached) + 1 FROM steps GROUP BY at_ms";
const FIRST_JOBS_AT: &str = "WITH RECURSIVE steps (at_ms, reached, step) AS (
         SELECT CAST(wanted.value AS {integer}), coalesce((SELECT min(id) FROM jobs), 0) - 1,
                coalesce((SELECT max(id) FROM jobs) - (SELECT min(id) FROM jobs), 0) + 1
         FROM {texts $1} AS wanted
         UNION ALL
         SELECT at_ms,
                CASE WHEN (SELECT created_at FROM jobs WHERE id >= reached + step ORDER BY id LIMIT 1) < at_ms
                     THEN reached + step ELSE reached END,
                CASE WHEN step = 1 THEN 0 ELSE (step + 1) / 2 END
         FROM steps WHERE step > 0
     )
     SELECT at_ms, max(reached) + 1 FROM steps GROUP BY at_ms";
const FIRST_CHANGES_AT: &str = "WITH RECURSIVE steps (at_ms, reached, step) AS (
         SELECT CAST(wanted.value AS {integer}), coalesce((SELECT min(id) FROM audit), 0) - 1,
                coalesce((SELECT max(id) FROM audit) - (SELECT min(id) FROM audit), 0) + 1
         FROM {texts $1} AS wanted
         UNION ALL
         SELECT at_ms,
                CASE WHEN (SELECT at FROM audit WHERE id >= reached + step ORDER BY id LIMIT 1) < at_ms
                     THEN reached + step ELSE reached END,
                CASE WHEN step = 1 THEN 0 ELSE (step + 1) / 2 END
         FROM steps WHERE step > 0
     )
     SELECT at_ms, max(reached) + 1 FROM steps GROUP BY at_ms";
