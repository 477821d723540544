//! The filters of lists: states, params and limits.

use clap::builder::RangedU64ValueParser;
use windlass_engine::store::ParamFilter;
use windlass_engine::{JobStatus, RunStatus};

/// How many rows a list shows at most.
const MAX_LIST: u64 = 1_000_000;

/// The value of `--limit`.
pub(crate) fn list_limit() -> RangedU64ValueParser<u32> {
    RangedU64ValueParser::new().range(1..=MAX_LIST)
}

/// Reads the state of a run, in capitals or not; for clap.
pub(crate) fn parse_run_status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| {
        let all: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states of a run are {}", all.join(", "))
    })
}

/// Reads the state of a job, in capitals or not; for clap.
pub(crate) fn parse_job_status(text: &str) -> Result<JobStatus, String> {
    JobStatus::parse(text).ok_or_else(|| {
        let all: Vec<&str> = JobStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states of a job are {}", all.join(", "))
    })
}

/// Reads a param that runs must have, as NAME=VALUE; for clap.
pub(crate) fn parse_param(text: &str) -> Result<ParamFilter, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok(ParamFilter { name: name.to_owned(), value: value.to_owned() })
        }
        Some(_) | None => Err("write NAME=VALUE, for example day=2026-11-20".to_owned()),
    }
}
