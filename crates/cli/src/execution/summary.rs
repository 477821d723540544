//! The first line of a run, and its summary at the end: outcome, failures, next commands.

use windlass_engine::store::{Job, JobCounts, Run};
use windlass_engine::{JobStatus, RunStatus, StopReason};

use crate::arguments::{GlobalOptions, WorkOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::text::runs_and_jobs::{self, run_style};
use crate::text::style::{BOLD, DIM, paint, printable};
use crate::text::{failed_jobs, values};

/// How many lines of output a failed job shows in the summary.
const CLOSING_TAIL_LINES: i64 = 5;

/// What the summary shows of the output of failed jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailedOutput {
    LastLines,
    /// Nothing: it was shown before, or nobody wants to see it.
    Nothing,
}

/// The first line.
pub(super) fn opening(run: &Run) -> String {
    let jobs = if run.total_jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", run.total_jobs) };
    // Another program may have inserted the run with wrong numbers, which are corrected later. Of a run without an
    // unfinished job there is nothing to say: only its end is missing.
    let over = match run.total_jobs - run.unfinished_jobs {
        ..=0 => String::new(),
        over if over >= run.total_jobs => String::new(),
        over => format!(", {over} finished before"),
    };
    let title = paint(BOLD, format!("run {}", run.id));
    let params = values::params(&run.params);
    let params = if params.is_empty() { params } else { format!("  {}", paint(DIM, params)) };
    format!("{title}  {}  {jobs}{over}{params}", printable(&run.workflow))
}

/// The summary of a run that has ended.
pub(super) fn closing(
    database: &Database,
    run: &Run,
    work: &WorkOptions,
    global: &GlobalOptions,
    failed_output: FailedOutput,
) -> Result<String, Failure> {
    let counts = database.ask(|store| store.runs().job_counts(run.id))?;
    let jobs = match run.status {
        RunStatus::Successful => Vec::new(),
        RunStatus::Pending | RunStatus::Running | RunStatus::Failed | RunStatus::Cancelled => {
            database.ask(|store| store.jobs().of_run(run.id))?
        }
    };
    let failed: Vec<&Job> =
        jobs.iter().filter(|job| job.status == JobStatus::Failed && !job.allow_failure).collect();
    let tail_lines = match failed_output {
        FailedOutput::LastLines => CLOSING_TAIL_LINES,
        FailedOutput::Nothing => 0,
    };
    let mut text = failed_jobs::text(database, &failed, tail_lines)?;
    text.push_str(&format!("\n{}", outcome(run, &counts)));
    let steps = next_steps(run, &failed, work, global);
    let width = steps.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, what) in steps {
        text.push_str(&format!("\n  {command:width$}  {}", paint(DIM, what)));
    }
    Ok(text)
}

fn outcome(run: &Run, counts: &JobCounts) -> String {
    let word = match (run.status, run.stop_reason) {
        (RunStatus::Failed, Some(StopReason::TimedOut)) => "timed out",
        (RunStatus::Failed, Some(StopReason::Cancelled | StopReason::Skipped) | None) => "failed",
        (RunStatus::Successful, _) => "successful",
        (RunStatus::Cancelled, Some(StopReason::Skipped)) => "skipped",
        (RunStatus::Cancelled, _) => "cancelled",
        (RunStatus::Pending | RunStatus::Running, _) => "unfinished",
    };
    let word = paint(run_style(run.status).bold(), word);
    let took = match (run.started_at, run.finished_at) {
        (Some(_), Some(finished_at)) => format!(" in {}", runs_and_jobs::run_span(run, finished_at)),
        (Some(_), None) | (None, Some(_) | None) => String::new(),
    };
    format!("run {} {word}{took}: {}", run.id, runs_and_jobs::job_counts(counts))
}

/// The next commands, and what each shows or does.
fn next_steps(
    run: &Run,
    failed: &[&Job],
    work: &WorkOptions,
    global: &GlobalOptions,
) -> Vec<(String, &'static str)> {
    let id = run.id;
    let inspect = (global.hint(&format!("inspect {id}")), "timings and outputs");
    let retry = (work.hint(global, &format!("retry {id}")), "rerun failed and skipped jobs");
    match run.status {
        RunStatus::Successful => vec![inspect],
        RunStatus::Failed => {
            let logs = match failed {
                [] => inspect,
                // The output is that of the jobs of the run that it has started.
                [only] if only.kind != "workflow" => {
                    let name = runs_and_jobs::job_name(only);
                    (global.hint(&format!("logs {id} {name}")), "its output")
                }
                _call_or_several => (global.hint(&format!("logs {id}")), "their output"),
            };
            vec![logs, retry]
        }
        RunStatus::Cancelled => vec![inspect, retry],
        RunStatus::Pending | RunStatus::Running => Vec::new(),
    }
}
