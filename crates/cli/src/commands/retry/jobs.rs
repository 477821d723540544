//! Retrying jobs that stand alone: one, or all that match.

use windlass_engine::store::{DeadLetterCursor, DeadLetters, Job, Subject};
use windlass_views::{JobView, RetriedJobs};

use crate::arguments::dead_letters::{described, number_of_jobs};
use crate::arguments::{DeadLetterArgs, GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::text::style::printable;
use crate::{executors, stderr};

/// Retries all jobs that match, or shows how many they are.
pub(super) fn retry_all(global: &GlobalOptions, args: &DeadLetterArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let which = args.dead_letters();
    let matching = database.ask(|store| store.jobs().count_dead_letters(&which))?;
    let description = described(&which);
    let retried = if matching == 0 {
        let list = global.hint("jobs --status failed");
        stderr::note(&format!(
            "no job that belongs to no run matches ({description}); `{list}` lists the newest"
        ));
        0
    } else if args.yes {
        let retried = retry_batches(&database, &which)?;
        let ready = format!("{} ready to run again ({description})", counted(retried));
        stderr::note(&match matching - retried {
            ..=0 => ready,
            left => format!("{ready}; {left} are left out: an unfinished job has their unique key"),
        });
        retried
    } else {
        stderr::note(&format!(
            "{} would run again ({description}); --yes retries {}",
            number_of_jobs(matching),
            if matching == 1 { "it" } else { "them" }
        ));
        0
    };
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    Output { format: global.output }
        .object(&RetriedJobs { matching_jobs: matching, retried_jobs: retried }, |_| String::new())
}

/// Each batch is a transaction of its own. What an interruption leaves is found by the next call.
fn retry_batches(database: &Database, which: &DeadLetters) -> Result<i64, Failure> {
    let (mut retried, mut next) = (0, Some(DeadLetterCursor::default()));
    while let Some(after) = next {
        let batch = database.change("jobs without a run", |store| store.jobs().retry_next(which, after))?;
        retried += batch.jobs;
        next = batch.next;
    }
    Ok(retried)
}

fn counted(count: i64) -> String {
    format!("{} {}", number_of_jobs(count), if count == 1 { "is" } else { "are" })
}

/// Retries one job that belongs to no run.
pub(super) fn retry_one(global: &GlobalOptions, database: &Database, job: &Job) -> Result<(), Failure> {
    if let (Some(run_id), Some(name)) = (job.root_run_id.or(job.run_id), &job.name) {
        let from = match job.root_run_id {
            Some(_root) => String::new(),
            None => format!(
                "; `{}` reruns it and everything after it",
                global.hint(&format!("retry {run_id} --from {}", quoted(name)))
            ),
        };
        return Err(Failure::Conflict {
            message: format!(
                "job {} belongs to run {}",
                printable(&job.label()),
                job.run_id.unwrap_or(run_id)
            ),
            help: format!(
                "`{}` reruns what failed in the run{from}",
                global.hint(&format!("retry {run_id}"))
            ),
        });
    }
    match database.change(Subject::Job(job.id), |store| store.jobs().retry(job.id)) {
        Err(Failure::Conflict { message, .. }) => {
            let why = global.hint(&format!("why j{}", job.id));
            return Err(Failure::Conflict { message, help: format!("`{why}` explains its state") });
        }
        answer => answer?,
    }
    let start = format!("start a worker with `{}`", global.hint("worker"));
    let executor = executors::of_job(database, job.id, &start)?;
    let why = global.hint(&format!("why j{}", job.id));
    stderr::note(&format!("job j{} is ready to run again; {executor}; `{why}` shows its state", job.id));
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let view = database.ask(|store| JobView::read(store, &store.jobs().get(job.id)?))?;
    Output { format: global.output }.object(&view, |_| String::new())
}
