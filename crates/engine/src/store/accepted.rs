//! The ids of the runs and jobs that were accepted in a range of time.

use crate::store::page::IdRange;
use crate::store::round_trip::{PlainQuery, rows_of_each};
use windlass_db::error::Result;
use windlass_db::{Connection, one};

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
}

impl ListedTable {
    fn name(self) -> &'static str {
        match self {
            ListedTable::Runs => "runs",
            ListedTable::Jobs => "jobs",
        }
    }
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

/// The id of the first row that was accepted at an instant or later, found by binary search: from the highest power of two
/// down, a step is made if the row there was accepted earlier. An index by time would slow each submission down, and would
/// not give the rows in the order of ids.
fn first_id_at(connection: &mut dyn Connection, table: ListedTable, at_ms: i64) -> Result<i64> {
    let parameters = [at_ms.into(), table.name().into()];
    one(connection, FIRST_ID_AT, &parameters, |row| row.integer(0))
}

/// The same for several instants, in their order.
pub(in crate::store) fn first_ids_at(
    connection: &mut dyn Connection,
    table: ListedTable,
    at_ms: &[i64],
) -> Result<Vec<i64>> {
    let asked: Vec<PlainQuery<'_>> =
        at_ms.iter().map(|at_ms| (FIRST_ID_AT, vec![(*at_ms).into(), table.name().into()])).collect();
    Ok(rows_of_each(connection, &asked, |row| row.integer(0))?.into_iter().flatten().collect())
}

const FIRST_ID_AT: &str = "WITH RECURSIVE steps (reached, step) AS (
         SELECT coalesce(CASE CAST($2 AS TEXT) WHEN 'runs' THEN (SELECT min(id) FROM runs)
                                               ELSE (SELECT min(id) FROM jobs) END, 0) - 1,
                4611686018427387904
         UNION ALL
         SELECT CASE WHEN CASE CAST($2 AS TEXT)
                          WHEN 'runs' THEN (SELECT created_at FROM runs WHERE id >= reached + step
                                            ORDER BY id LIMIT 1)
                          ELSE (SELECT created_at FROM jobs WHERE id >= reached + step ORDER BY id LIMIT 1)
                          END < $1
                     THEN reached + step ELSE reached END,
                step / 2
         FROM steps WHERE step > 0
     )
     SELECT max(reached) + 1 FROM steps";
