//! `windlass inspect`: everything about one run or one job.

mod job;
mod run;

use clap::Args;

use crate::address::Address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::lookup::{self, Target};
use crate::output::Output;
use crate::views::{InspectedJob, InspectedRun};
pub(crate) use run::RetryState as RunFacts;

/// Show one run or job: outcome, timings, attempts, failures
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    /// A run (3), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB")]
    address: Address,
}

const EXAMPLES: &str = "\
Examples:
  windlass inspect 3           # run 3 with its jobs
  windlass inspect 3/build     # the job `build` of run 3
  windlass inspect j42         # job 42
  windlass inspect 3 -o json | jq '.jobs[] | {name, duration_ms}'";

/// Prints what there is to know.
pub(crate) fn execute(global: &GlobalOptions, args: &InspectArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let output = Output { format: global.output };
    match lookup::run_or_job(&database, &args.address)? {
        Target::Run(found) => {
            let retry_state = run::RetryState::read(&database, found)?;
            let text = run::text(&database, &retry_state, global)?;
            output.object(&retry_state.view(), |_: &InspectedRun| text)
        }
        Target::Job(found) => {
            let retry_state = job::RetryState::read(&database, found)?;
            output.object(&retry_state.view(), |_: &InspectedJob| job::text(&retry_state, global))
        }
    }
}
