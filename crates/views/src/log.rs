//! A line of output as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::LogLine;
use windlass_system::terminal_text;

use crate::time::Instant;

/// A line that a job wrote, or that the engine wrote about it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Log")]
pub struct LogView {
    /// The run.
    run_id: Option<i64>,
    /// The job.
    job_id: i64,
    /// The name of the job in its run.
    job: Option<String>,
    /// The attempt that wrote it.
    attempt: i64,
    /// The number of the line in its attempt.
    line: i64,
    /// When it was written.
    at: Instant,
    /// Where it was written.
    #[schemars(extend("enum" = ["stdout", "stderr", "engine"]))]
    stream: &'static str,
    /// The line.
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
            at: Instant::at(line.at),
            stream: line.stream.as_str(),
            // Colours are for terminals.
            text: terminal_text::plain(&line.text).into_owned(),
        }
    }
}
