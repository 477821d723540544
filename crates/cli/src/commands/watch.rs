//! `windlass watch`: shows the progress of a run that a worker executes.

use clap::Args;

use crate::arguments::{GlobalOptions, ShowOptions, parse_run_id};
use crate::database::Database;
use crate::error::Failure;
use crate::execution;

/// Follow the progress of a run that a worker executes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// The run
    #[arg(value_name = "RUN", value_parser = parse_run_id)]
    run: i64,
    #[command(flatten)]
    show: ShowOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass watch 3

Ctrl-C stops only the command, not the run. The exit code is that of the run.";

/// Shows the progress until the run ends.
pub(crate) fn execute(global: &GlobalOptions, args: &WatchArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    execution::watch(global, &database, args.run, args.show)
}
