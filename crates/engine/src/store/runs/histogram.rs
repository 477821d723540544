//! How many runs ended well and badly in each part of a range of time.

use std::collections::BTreeMap;

use crate::store::accepted::{ListedTable, first_ids_at};
use crate::store::stats::Count;
use crate::store::{Runs, json_ids};
use windlass_db::all;
use windlass_db::error::{Error, Result};

/// The most parts of a histogram.
pub const PARTS_MAX: usize = 100;
/// So many runs of a part and a state are counted at most.
const COUNTED_MAX: i64 = 2_000;
/// One row for each part that has ids: its first id, and the runs that ended well and badly. $1 are the first ids of all parts and
/// the end of the last one.
const COUNT_PARTS: &str = "WITH parts (first_id, below_id) AS MATERIALIZED (
         SELECT DISTINCT CAST(first.value AS {integer}),
                (SELECT min(CAST(later.value AS {integer})) FROM {texts $1} AS later
                 WHERE CAST(later.value AS {integer}) > CAST(first.value AS {integer}))
         FROM {texts $1} AS first)
     SELECT first_id,
            (SELECT count(*) FROM (SELECT id FROM runs
                                   WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = 'SUCCESSFUL'
                                     AND id >= parts.first_id AND id < parts.below_id
                                   ORDER BY id DESC LIMIT $2) AS successful),
            (SELECT count(*) FROM (SELECT id FROM runs
                                   WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = 'FAILED'
                                     AND id >= parts.first_id AND id < parts.below_id
                                   ORDER BY id DESC LIMIT $2) AS failed)
     FROM parts WHERE below_id IS NOT NULL";

/// The runs that were accepted in one part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistogramPart {
    /// The first instant.
    pub from_ms: i64,
    /// Runs that succeeded.
    pub successful: Count,
    /// Runs that failed.
    pub failed: Count,
}

impl Runs<'_> {
    /// Counts the finished runs that were accepted in equal parts of a range of time, up to a bound for each part. Runs that
    /// jobs have started are not counted. The parts are found by ids, which are only roughly in the order of time.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a range that is empty or more than [`PARTS_MAX`] parts, and the database's.
    pub fn histogram(&self, from_ms: i64, until_ms: i64, parts: usize) -> Result<Vec<HistogramPart>> {
        if parts == 0 || parts > PARTS_MAX || until_ms <= from_ms {
            let reason = format!("it has 1 to {PARTS_MAX} parts of a range of time that is not empty");
            return Err(Error::invalid("count runs by time", reason));
        }
        let limits: Vec<i64> = (0..=parts)
            .map(|part| from_ms + ((until_ms - from_ms) as i128 * part as i128 / parts as i128) as i64)
            .collect();
        self.store.read(|connection| {
            let ids = first_ids_at(connection, ListedTable::Runs, &limits)?;
            let asked = json_ids(&ids);
            let counted =
                all(connection, COUNT_PARTS, &[(&asked).into(), (COUNTED_MAX + 1).into()], |row| {
                    Ok((row.integer(0)?, [row.integer(1)?, row.integer(2)?]))
                })?;
            let counted: BTreeMap<i64, [i64; 2]> = counted.into_iter().collect();
            // A part without ids begins where the next one does.
            let of_part = |part: &[i64]| match part[0] == part[1] {
                true => [0, 0],
                false => counted.get(&part[0]).copied().unwrap_or_default(),
            };
            Ok(ids
                .windows(2)
                .map(of_part)
                .zip(&limits)
                .map(|([successful, failed], from_ms)| HistogramPart {
                    from_ms: *from_ms,
                    successful: Count::up_to(COUNTED_MAX, successful),
                    failed: Count::up_to(COUNTED_MAX, failed),
                })
                .collect())
        })
    }
}
