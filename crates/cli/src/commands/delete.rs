//! `windlass delete`: deletes jobs that stand alone, by their ids or all that match.

use clap::Args;
use windlass_engine::store::{DeadLetterCursor, DeadLetters, Subject};
use windlass_views::{DeletedJob, DeletedJobs};

use crate::arguments::dead_letters::{described, number_of_jobs};
use crate::arguments::{DeadLetterArgs, GlobalOptions, OutputFormat, RunOrJob};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::Output;
use crate::stderr;

/// Delete single jobs that wait or have ended
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// Jobs by their ids (j42)
    #[arg(id = "address", value_name = "JOB", add = complete::single_job())]
    #[arg(required_unless_present_any = ["status", "kind", "queue", "error"])]
    addresses: Vec<RunOrJob>,

    /// With --status and the like: only show how many jobs match
    #[arg(long, conflicts_with = "address")]
    dry_run: bool,
    #[command(flatten)]
    dead_letters: DeadLetterArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass delete j42 j43
  windlass delete --status failed --kind email --error bounced
  windlass delete --status cancelled --queue mail --yes

Their output and their attempts are deleted too. A running job must be
cancelled first. Of all jobs that match, only the number is shown; --yes
deletes them. Runs are deleted as a whole: see `windlass db prune`.";

/// Deletes the jobs that are named, or all that match.
pub(crate) fn execute(global: &GlobalOptions, args: &DeleteArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    match args.addresses.is_empty() {
        true => delete_all(global, &database, &args.dead_letters),
        false => delete_named(global, &database, args),
    }
}

/// Deletes all jobs that match, or shows how many they are.
fn delete_all(global: &GlobalOptions, database: &Database, args: &DeadLetterArgs) -> Result<(), Failure> {
    let which = args.dead_letters();
    let matching = database.ask(|store| store.jobs().count_dead_letters(&which))?;
    let (jobs, description) = (number_of_jobs(matching), described(&which));
    let deleted = match (matching, args.yes) {
        (0, _) => {
            stderr::note(&format!("no job that belongs to no run matches ({description})"));
            0
        }
        (_, true) => {
            let deleted = delete_batches(database, &which)?;
            stderr::note(&format!("deleted: {} ({description})", number_of_jobs(deleted)));
            deleted
        }
        (_, false) => {
            stderr::note(&format!(
                "{jobs} would be deleted ({description}); --yes deletes {}",
                if matching == 1 { "it" } else { "them" }
            ));
            0
        }
    };
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let view = DeletedJobs { matching_jobs: matching, deleted_jobs: deleted };
    Output { format: global.output }.object(&view, |_| String::new())
}

/// Each batch is a transaction of its own. What an interruption leaves is found by the next call.
fn delete_batches(database: &Database, which: &DeadLetters) -> Result<i64, Failure> {
    let (mut deleted, mut next) = (0, Some(DeadLetterCursor::default()));
    while let Some(after) = next {
        let batch = database.change("jobs without a run", |store| store.jobs().delete_next(which, after))?;
        deleted += batch.jobs;
        next = batch.next;
    }
    Ok(deleted)
}

/// Deletes jobs by their ids, one after the other.
fn delete_named(global: &GlobalOptions, database: &Database, args: &DeleteArgs) -> Result<(), Failure> {
    // All are found before one is deleted.
    let jobs = args
        .addresses
        .iter()
        .map(|address| match find::run_or_job(database, address)? {
            FoundRunOrJob::Job(job) => Ok(job),
            FoundRunOrJob::Run(run) => Err(Failure::usage(
                format!("{} is a run; only jobs that belong to no run can be deleted", run.id),
                format!("`{}` deletes old runs; a job is written as j42", global.hint("db prune")),
            )),
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    let output = Output { format: global.output };
    let mut views = Vec::with_capacity(jobs.len());
    for job in jobs {
        match database.change(Subject::Job(job.id), |store| store.jobs().delete(job.id)) {
            Err(Failure::Conflict { message, .. }) => {
                let help = match job.run_id {
                    Some(_run_id) => format!("`{}` deletes old runs", global.hint("db prune")),
                    None => format!("`{}` stops it", global.hint(&format!("cancel j{}", job.id))),
                };
                return Err(Failure::Conflict { message, help });
            }
            answer => answer?,
        }
        stderr::note(&format!("job j{} is deleted", job.id));
        views.push(DeletedJob { job_id: job.id });
    }
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    output.list(&views, |_| String::new())
}
