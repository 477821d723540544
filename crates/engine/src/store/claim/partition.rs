//! The order of claiming: partitions of the claimable jobs, and each partition's candidate.

use std::rc::Rc;
use windlass_db::error::Result;
use windlass_db::{Fragment, Row, Value};

/// The rank of a row of `jobs`. The job with the lowest rank is claimed first. A job is due at `execute_after`, and each
/// point of priority is a head start of one minute. Both are bounded, so that the sum can't overflow.
pub(crate) const RANK: Fragment = Fragment {
    name: "rank",
    sql: "({bounded execute_after 4000000000000000000} - {bounded priority 1000000} * 60000)",
};

/// A job's position in the order of claiming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::store) struct ClaimPosition {
    pub(in crate::store) rank: i64,
    pub(in crate::store) id: i64,
}

/// The first job of a partition, or a job that would be in the partition if it were PENDING.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Candidate {
    pub(in crate::store) position: ClaimPosition,
    pub(in crate::store) partition: Rc<ClaimPartition>,
}

/// What the jobs of a partition have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct ClaimPartition {
    pub(in crate::store) queue: String,
    pub(in crate::store) kind: String,
    pub(in crate::store) requires: String,
    pub(in crate::store) code_version: i64,
    /// The queue has a row with rules, so its limits must be counted.
    pub(in crate::store) may_have_rules: bool,
}

/// Reads a [`Candidate`] from the first seven columns.
pub(in crate::store) fn read_candidate(row: &dyn Row) -> Result<Candidate> {
    Ok(Candidate { position: read_position(row)?, partition: Rc::new(ClaimPartition::read(row)?) })
}

/// Reads a [`ClaimPosition`] from the first two columns.
pub(in crate::store) fn read_position(row: &dyn Row) -> Result<ClaimPosition> {
    Ok(ClaimPosition { id: row.integer(0)?, rank: row.integer(1)? })
}

impl ClaimPartition {
    /// Reads a partition from the five columns after the position.
    pub(in crate::store) fn read(row: &dyn Row) -> Result<ClaimPartition> {
        Ok(ClaimPartition {
            queue: row.lossy_text(2)?.unwrap_or_default(),
            kind: row.lossy_text(3)?.unwrap_or_default(),
            requires: row.lossy_text(4)?.unwrap_or_default(),
            code_version: row.integer(5)?,
            may_have_rules: row.integer(6)? > 0,
        })
    }

    /// Whether the row's columns name this partition.
    pub(in crate::store) fn is_of(&self, row: &dyn Row) -> bool {
        let is_text = |column, text: &str| row.value(column) == Ok(Value::Text(text));
        is_text(2, &self.queue)
            && is_text(3, &self.kind)
            && is_text(4, &self.requires)
            && row.value(5) == Ok(Value::Integer(self.code_version))
            && row.value(6) == Ok(Value::Integer(i64::from(self.may_have_rules)))
    }
}
