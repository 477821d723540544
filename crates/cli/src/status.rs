//! Reading states and limits from the command line, and the colours of states.

use anstyle::Style;
use clap::builder::RangedU64ValueParser;
use windlass::{JobStatus, RunStatus};

use crate::style::{CYAN, DIM, GREEN, PLAIN, RED, YELLOW};

/// The most that a list shows at once.
const MAX_LIST: u64 = 1_000_000;

/// The value of `--limit`.
pub(crate) fn list_limit() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=MAX_LIST)
}

/// Reads the state of a run in any case; for clap.
pub(crate) fn parse_run_status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| {
        let all: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states of a run are {}", all.join(", "))
    })
}

/// Reads the state of a job in any case; for clap.
pub(crate) fn parse_job_status(text: &str) -> Result<JobStatus, String> {
    JobStatus::parse(text).ok_or_else(|| {
        let all: Vec<&str> = JobStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states of a job are {}", all.join(", "))
    })
}

/// The colour of a job's state.
pub(crate) fn job_style(status: JobStatus) -> Style {
    match status {
        JobStatus::Running => CYAN,
        JobStatus::Successful => GREEN,
        JobStatus::Failed => RED,
        JobStatus::Cancelled | JobStatus::Waiting => YELLOW,
        JobStatus::Blocked | JobStatus::Skipped => DIM,
        JobStatus::Scheduled | JobStatus::Pending => PLAIN,
    }
}

/// The colour of a run's state.
pub(crate) fn run_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Pending => PLAIN,
        RunStatus::Running => CYAN,
        RunStatus::Successful => GREEN,
        RunStatus::Failed => RED,
        RunStatus::Cancelled => YELLOW,
    }
}
