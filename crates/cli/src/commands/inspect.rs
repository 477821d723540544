//! `windlass inspect`: shows one run or one job.

mod job;
mod run;

use clap::Args;
use windlass_views::{InspectedJob, InspectedRun};

use crate::arguments::{GlobalOptions, RunOrJob};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::Output;

/// Show one run or job: outcome, timings, attempts, failures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// A run (3, latest, nightly), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job(), default_value = "latest")]
    address: RunOrJob,
}

const EXAMPLES: &str = "\
Examples:
  windlass inspect             # the newest run
  windlass inspect 3           # run 3 with its jobs
  windlass inspect nightly~1   # the run before the newest of `nightly`
  windlass inspect 3/build     # the job `build` of run 3
  windlass inspect j42         # job 42
  windlass inspect 3 -o json | jq '.jobs[] | {job, duration_ms}'";

/// Prints the run or the job.
pub(crate) fn execute(global: &GlobalOptions, args: &InspectArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let output = Output { format: global.output };
    match find::run_or_job(&database, &args.address)? {
        FoundRunOrJob::Run(found) => {
            let details = run::RunDetails::read(&database, *found)?;
            let text = run::text(&database, &details, global)?;
            output.object(&details.view(), |_: &InspectedRun| text)
        }
        FoundRunOrJob::Job(found) => {
            let details = job::JobDetails::read(&database, *found)?;
            output.object(&details.view(), |_: &InspectedJob| job::text(&details, global))
        }
    }
}
