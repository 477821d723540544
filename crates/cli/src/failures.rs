//! The failed jobs of a run: which, why, and the last lines that they wrote.

use windlass::store::Job;

use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::style::{RED, headline, paint};

/// Lines of output shown of a job that failed.
pub(crate) const TAIL_LINES: i64 = 10;
/// Failed jobs shown in full; the others are counted.
const MAX_SHOWN: usize = 5;
/// Columns of an error.
const ERROR_COLUMNS: usize = 300;

/// The failures for people, after an empty line; nothing when there are none.
pub(crate) fn text(database: &Database, failed: &[&Job], tail_lines: i64) -> Result<String, Failure> {
    let mut text = String::new();
    let mut is_apart = false;
    for job in failed.iter().take(MAX_SHOWN) {
        let tail = database.ask(|store| store.logs().last(job.id, job.attempt, tail_lines))?;
        // What comes with output stands apart; the others are lines of one list.
        if text.is_empty() || is_apart || !tail.is_empty() {
            text.push('\n');
        }
        is_apart = !tail.is_empty();
        let error = headline(job.last_error.as_deref().unwrap_or("no reason is known"), ERROR_COLUMNS);
        let times = if job.failures > 1 { format!(" {} times", job.failures) } else { String::new() };
        let mark = paint(RED, "✗");
        text.push_str(&format!("{mark} {} failed{times}: {error}\n", describe::job_name(job)));
        text.push_str(&describe::tail(tail.iter().map(|line| line.text.as_str())));
    }
    if failed.len() > MAX_SHOWN {
        text.push_str(&format!("\n… and {} more failed\n", failed.len() - MAX_SHOWN));
    }
    Ok(text)
}
