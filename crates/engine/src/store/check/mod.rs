//! The invariants of the tables, as queries that find rows which break them.

mod cycles;
mod jobs;
mod runs;
mod service;

use crate::store::Upkeep;
use windlass_db::error::Result;
use windlass_db::{Connection, all};

/// An invariant that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The invariant.
    pub check: &'static str,
    /// Where it is broken.
    pub detail: String,
    /// What a person can do about it.
    pub next_step: &'static str,
}

/// How many rows are shown for each invariant.
const SHOWN_MAX: usize = 20;

/// A rule that all rows keep.
struct Invariant {
    rule: &'static str,
    /// Selects one text for each row that breaks the rule, at most `$1`. `$2` is the current time.
    sql: &'static str,
    next_step: &'static str,
}

const STORAGE: Invariant = Invariant {
    rule: "the stored data is not damaged",
    sql: "SELECT detail FROM {damage} AS damage LIMIT $1",
    next_step: "stop whatever uses the database, and restore a backup",
};

impl Upkeep<'_> {
    /// Checks every invariant in one snapshot. An empty list means that the database is sound.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn check(&self) -> Result<Vec<Problem>> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| broken_rules(connection, now_ms))
    }
}

/// Checks every invariant in the caller's transaction.
pub(super) fn broken_rules(connection: &mut dyn Connection, now_ms: i64) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let invariants = [&STORAGE].into_iter().chain(jobs::INVARIANTS).chain(runs::INVARIANTS);
    for Invariant { rule: check, sql, next_step } in invariants.chain(service::INVARIANTS) {
        let parameters = [(SHOWN_MAX as i64 + 1).into(), now_ms.into()];
        let used = if sql.contains("$2") { 2 } else { 1 };
        let mut details =
            all(connection, sql, &parameters[..used], |row| Ok(row.lossy_text(0)?.unwrap_or_default()))?;
        if details.len() > SHOWN_MAX {
            details.truncate(SHOWN_MAX);
            details.push(format!("more than {SHOWN_MAX} rows break this rule; the others are not shown"));
        }
        problems.extend(details.into_iter().map(|detail| Problem { check, detail, next_step }));
    }
    problems.extend(cycles::find(connection)?);
    Ok(problems)
}
