//! Which lines of a job are shown, and where reading them begins.

use regex::Regex;
use windlass_engine::store::{LogLine, LogPosition};

use crate::database::Database;
use crate::error::Failure;

/// How many lines one read has.
pub(super) const PAGE_LINES: i64 = 1_000;

/// Which lines of each job are shown.
#[derive(Debug, Clone, Default)]
pub(super) struct LineSelection {
    /// Only lines of this attempt.
    pub(super) attempt: Option<i64>,
    /// Only the last lines of each job.
    pub(super) tail: Option<u32>,
    /// Only lines that were written at this instant or later.
    pub(super) since_ms: Option<i64>,
    /// Only lines that match.
    pub(super) pattern: Option<Regex>,
}

impl LineSelection {
    /// Whether the line is shown, wherever reading began.
    pub(super) fn takes(&self, line: &LogLine) -> bool {
        self.attempt.is_none_or(|attempt| attempt == line.attempt)
            && self.since_ms.is_none_or(|since_ms| line.at >= since_ms)
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(&anstream::adapter::strip_str(&line.text).to_string()))
    }

    /// The position after which the lines of a job are read. With `--tail` and `--since` it is found from the end on, so that
    /// no more is read than is shown.
    pub(super) fn start(&self, database: &Database, job_id: i64) -> Result<LogPosition, Failure> {
        let attempt = self.attempt.map_or(0, |attempt| attempt - 1);
        let first = LogPosition { job_id, attempt, line: i64::MAX };
        if self.tail.is_none() && self.since_ms.is_none() {
            return Ok(first);
        }
        let last_attempt = self.attempt.unwrap_or(i64::MAX);
        let mut position = LogPosition { job_id, attempt: last_attempt, line: i64::MAX };
        let mut left = self.tail;
        loop {
            let lines = database.ask(|store| store.logs().before(position, PAGE_LINES))?;
            for line in lines.iter().rev() {
                let here = LogPosition { job_id, attempt: line.attempt, line: line.line };
                let is_early = self.since_ms.is_some_and(|since_ms| line.at < since_ms);
                if here <= first || is_early || left == Some(0) {
                    return Ok(here.max(first));
                }
                if self.takes(line) {
                    left = left.map(|left| left - 1);
                }
                position = here;
            }
            if lines.is_empty() {
                return Ok(first);
            }
        }
    }
}
