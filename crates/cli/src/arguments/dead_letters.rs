//! Which jobs that belong to no run are retried or deleted, all at once.

use clap::Args;
use windlass_engine::JobStatus;
use windlass_engine::store::{DEAD_LETTERS_COUNTED_MAX, DeadLetters};

use super::filters;
use crate::complete;
use crate::text::style::printable;
use crate::text::time;

/// Which jobs are meant. Whoever names one job leaves these out.
#[derive(Debug, Args)]
pub(crate) struct DeadLetterArgs {
    /// All jobs that belong to no run and are in this state: failed (the default) or cancelled
    #[arg(long, value_name = "STATUS", add = complete::dead_status(), value_parser = parse_status)]
    #[arg(conflicts_with = "address")]
    status: Vec<JobStatus>,

    /// Of these, only jobs of this kind
    #[arg(long, value_name = "KIND", add = complete::kind(), conflicts_with = "address")]
    kind: Option<String>,

    /// Of these, only jobs of this queue
    #[arg(long, value_name = "QUEUE", add = complete::queue(), conflicts_with = "address")]
    queue: Option<String>,

    /// Of these, only jobs with this text in their last error
    #[arg(long, value_name = "TEXT", conflicts_with = "address")]
    error: Option<String>,

    /// Do it. Without it, only the number of jobs is shown
    #[arg(long, conflicts_with_all = ["address", "dry_run"])]
    pub(crate) yes: bool,
}

fn parse_status(text: &str) -> Result<JobStatus, String> {
    let status = filters::parse_job_status(text)?;
    match status {
        JobStatus::Failed | JobStatus::Cancelled => Ok(status),
        JobStatus::Pending
        | JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Waiting
        | JobStatus::Running
        | JobStatus::Successful
        | JobStatus::Skipped => {
            Err("only jobs that are FAILED or CANCELLED are taken all at once".to_owned())
        }
    }
}

impl DeadLetterArgs {
    /// The jobs that have ended until now.
    pub(crate) fn dead_letters(&self) -> DeadLetters {
        DeadLetters {
            statuses: if self.status.is_empty() { vec![JobStatus::Failed] } else { self.status.clone() },
            kind: self.kind.clone(),
            queue: self.queue.clone(),
            error: self.error.clone(),
            before_ms: time::now_ms().saturating_add(1),
        }
    }
}

/// What is looked for, for people.
pub(crate) fn described(which: &DeadLetters) -> String {
    let mut parts: Vec<String> = which.statuses.iter().map(|status| status.as_str().to_owned()).collect();
    parts.extend(which.kind.as_ref().map(|kind| format!("kind `{}`", printable(kind))));
    parts.extend(which.queue.as_ref().map(|queue| format!("queue `{}`", printable(queue))));
    parts.extend(which.error.as_ref().map(|error| format!("error with `{}`", printable(error))));
    parts.join(", ")
}

/// A number of jobs, which may be that at which counting stops.
pub(crate) fn number_of_jobs(count: i64) -> String {
    match count {
        1 => "1 job".to_owned(),
        DEAD_LETTERS_COUNTED_MAX.. => format!("{DEAD_LETTERS_COUNTED_MAX} jobs or more"),
        count => format!("{count} jobs"),
    }
}
