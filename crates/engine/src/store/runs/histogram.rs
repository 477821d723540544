//! How many runs ended well and badly in each part of a range of time.

use crate::store::Runs;
use crate::store::accepted::{ListedTable, first_ids_at};
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::stats::Count;
use windlass_db::error::{Error, Result};

/// The most parts of a histogram.
pub const PARTS_MAX: usize = 100;
/// So many runs of a part and a state are counted at most.
const COUNTED_MAX: i64 = 2_000;
const COUNT_PART: &str = "SELECT
    (SELECT count(*) FROM (SELECT id FROM runs
                           WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = 'SUCCESSFUL'
                             AND id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3) AS successful),
    (SELECT count(*) FROM (SELECT id FROM runs
                           WHERE finished_at IS NOT NULL AND parent_job_id IS NULL AND status = 'FAILED'
                             AND id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3) AS failed)";

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
            let parts: Vec<PlainQuery<'_>> = ids
                .windows(2)
                .map(|ids| (COUNT_PART, vec![ids[0].into(), ids[1].into(), (COUNTED_MAX + 1).into()]))
                .collect();
            let counted = rows_of_each(connection, &parts, |row| {
                let count = |counted| Count::up_to(COUNTED_MAX, counted);
                Ok((count(row.integer(0)?), count(row.integer(1)?)))
            })?;
            Ok(counted
                .into_iter()
                .flatten()
                .zip(&limits)
                .map(|((successful, failed), from_ms)| HistogramPart {
                    from_ms: *from_ms,
                    successful,
                    failed,
                })
                .collect())
        })
    }
}
