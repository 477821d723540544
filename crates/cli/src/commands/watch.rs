//! `windlass watch`: shows the progress of a run that a worker executes.

use clap::Args;

use crate::arguments::{GlobalOptions, RunAddress, ShowOptions};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::{execution, find};

/// Follow the progress of a run that a worker executes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// The run: its number, `latest`, or the name of its workflow
    #[arg(value_name = "RUN", add = complete::run(), default_value = "latest")]
    run: RunAddress,
    #[command(flatten)]
    show: ShowOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass watch             # the newest run
  windlass watch 3
  windlass watch nightly     # the newest run of the workflow `nightly`

Ctrl-C stops only the command, not the run. The exit code is that of the run.";

/// Shows the progress until the run ends.
pub(crate) fn execute(global: &GlobalOptions, args: &WatchArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let run = find::named_run(&database, &args.run)?;
    execution::watch(global, &database, run.id, args.show)
}
