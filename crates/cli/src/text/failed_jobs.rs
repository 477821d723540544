//! The failed jobs of a run, with their errors and their last output.

use windlass_engine::store::Job;

use crate::database::Database;
use crate::error::Failure;
use crate::text::runs_and_jobs;
use crate::text::style::{headline, paint};

/// How many lines of output a failed job shows.
pub(crate) const TAIL_LINES: i64 = 10;
/// How many failed jobs are shown. The others are counted.
const MAX_SHOWN: usize = 5;
/// How many columns of an error are shown.
const ERROR_COLUMNS: usize = 300;

/// The failures as text, after an empty line. Empty if no job failed.
pub(crate) fn text(database: &Database, failed: &[&Job], tail_lines: i64) -> Result<String, Failure> {
    let mut text = String::new();
    let mut is_apart = false;
    for job in failed.iter().take(MAX_SHOWN) {
        let tail = database.ask(|store| store.logs().last(job.id, job.attempt, tail_lines))?;
        // An empty line separates a job that has output from the others.
        if text.is_empty() || is_apart || !tail.is_empty() {
            text.push('\n');
        }
        is_apart = !tail.is_empty();
        let error = headline(job.last_error.as_deref().unwrap_or("unknown reason"), ERROR_COLUMNS);
        let times = if job.failures > 1 { format!(" {} times", job.failures) } else { String::new() };
        let (style, mark) = runs_and_jobs::failure_mark(job.allow_failure);
        let mark = paint(style, mark);
        let allowed = if job.allow_failure { ", which is allowed" } else { "" };
        text.push_str(&format!("{mark} {} failed{times}{allowed}: {error}\n", runs_and_jobs::job_name(job)));
        text.push_str(&runs_and_jobs::output_tail(tail.iter().map(|line| line.text.as_str())));
    }
    if failed.len() > MAX_SHOWN {
        text.push_str(&format!("\n… and {} more failed\n", failed.len() - MAX_SHOWN));
    }
    Ok(text)
}
