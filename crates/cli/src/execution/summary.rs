//! The last words about a run: what came of it, what failed, what to type next.

use windlass::store::{Job, JobCounts, Run};
use windlass::{JobStatus, RunStatus, StopReason};

use super::WorkOptions;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::failures;
use crate::status::run_style;
use crate::style::{BOLD, DIM, paint, printable};
use crate::time;

/// Lines of output of each failure: they were shown at more length when it happened.
const CLOSING_TAIL_LINES: i64 = 5;

/// The line before everything else.
pub(super) fn opening(run: &Run) -> String {
    let jobs = if run.total_jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", run.total_jobs) };
    // Another program may have written the numbers, and they are counted anew only after a while.
    let over = match run.total_jobs - run.unfinished_jobs {
        ..=0 => String::new(),
        over => format!(", {over} over before"),
    };
    let title = paint(BOLD, format!("run {}", run.id));
    let params = describe::params(&run.params);
    let params = if params.is_empty() { params } else { format!("  {}", paint(DIM, params)) };
    format!("{title}  {}  {jobs}{over}{params}", printable(&run.workflow))
}

/// The words at the end of a run that is over.
pub(super) fn closing(
    database: &Database,
    run: &Run,
    work: &WorkOptions,
    global: &GlobalOptions,
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
    let mut text = failures::text(database, &failed, CLOSING_TAIL_LINES)?;
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
        (RunStatus::Failed, Some(StopReason::Cancelled) | None) => "failed",
        (RunStatus::Successful, _) => "successful",
        (RunStatus::Cancelled, _) => "cancelled",
        (RunStatus::Pending | RunStatus::Running, _) => "unfinished",
    };
    let word = paint(run_style(run.status).bold(), word);
    let took = match (run.started_at, run.finished_at) {
        (Some(started_at), Some(finished_at)) => format!(" in {}", time::duration(finished_at - started_at)),
        (Some(_), None) | (None, Some(_) | None) => String::new(),
    };
    format!("run {} {word}{took}: {}", run.id, describe::counts(counts))
}

/// Commands to type next, and what each does.
fn next_steps(
    run: &Run,
    failed: &[&Job],
    work: &WorkOptions,
    global: &GlobalOptions,
) -> Vec<(String, &'static str)> {
    let id = run.id;
    let inspect = (global.hint(&format!("inspect {id}")), "timings and outputs");
    let retry = (work.hint(global, &format!("retry {id}")), "executes again what did not succeed");
    match run.status {
        RunStatus::Successful => vec![inspect],
        RunStatus::Failed => {
            let logs = match failed {
                [] => inspect,
                [only] => {
                    let name = describe::job_name(only);
                    (global.hint(&format!("logs {id} {name}")), "all that it wrote")
                }
                _several => (global.hint(&format!("logs {id}")), "all that they wrote"),
            };
            vec![logs, retry]
        }
        RunStatus::Cancelled => vec![inspect, retry],
        RunStatus::Pending | RunStatus::Running => Vec::new(),
    }
}
