//! A line of output as JSON.

use serde::Serialize;
use windlass_engine::store::LogLine;
use windlass_system::terminal_text;

use crate::time::rfc3339;

/// A line that a job wrote, or that the engine wrote about it.
#[derive(Debug, Serialize)]
pub struct LogView {
    run_id: Option<i64>,
    job_id: i64,
    job: Option<String>,
    attempt: i64,
    line: i64,
    at: String,
    stream: &'static str,
    text: String,
}

impl LogView {
    /// `job` is the name of the job in its run.
    pub fn new(run_id: Option<i64>, job: Option<&str>, line: LogLine) -> LogView {
        LogView {
            run_id,
            job_id: line.job_id,
            job: job.map(str::to_owned),
            attempt: line.attempt,
            line: line.line,
            at: rfc3339(line.at),
            stream: line.stream.as_str(),
            // Colours are for terminals.
            text: terminal_text::plain(&line.text).into_owned(),
        }
    }
}
