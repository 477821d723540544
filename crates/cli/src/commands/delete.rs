//! `windlass delete`: deletes jobs that stand alone.

use clap::Args;
use windlass_views::DeletedJob;

use crate::arguments::{GlobalOptions, OutputFormat, RunOrJob};
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
    #[arg(value_name = "JOB", required = true)]
    addresses: Vec<RunOrJob>,
}

const EXAMPLES: &str = "\
Examples:
  windlass delete j42 j43

Their output and their attempts are deleted too. A running job must be
cancelled first. Runs are deleted as a whole: see `windlass db prune`.";

/// Deletes the jobs, one after the other.
pub(crate) fn execute(global: &GlobalOptions, args: &DeleteArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    // All are found before one is deleted.
    let jobs = args
        .addresses
        .iter()
        .map(|address| match find::run_or_job(&database, address)? {
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
        match database.change(&format!("job {}", job.id), |store| store.jobs().delete(job.id)) {
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
