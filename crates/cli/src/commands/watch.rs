//! `windlass watch`: the progress of a run that somebody else executes.

use clap::Args;

use crate::address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution;

/// Follow the progress of a run that a worker executes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// The run
    #[arg(value_name = "RUN", value_parser = address::parse_run_id)]
    run: i64,
}

const EXAMPLES: &str = "\
Examples:
  windlass watch 3

Watching changes nothing: Ctrl-C stops only the watching. The exit code is that of the run.";

/// Watches.
pub(crate) fn execute(global: &GlobalOptions, args: &WatchArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    execution::watch(global, &database, args.run)
}
