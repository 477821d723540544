//! `windlass schedule pause`: nothing is fired.

use clap::Args;

use super::select;
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output;

/// Pause a schedule; occurrences during a pause are not caught up
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PauseArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule pause nightly
  windlass schedule resume nightly

Runs that are not over go on. `windlass workflows pause` does it for all schedules of a workflow.";

pub(super) fn execute(global: &GlobalOptions, args: &PauseArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    let key = schedule.key();
    let resume = global.hint(&format!("schedule resume {}", quoted(&key)));
    output::note(&match database.ask(|store| store.schedules().pause(schedule.id))? {
        true => format!("schedule {key} is paused; `{resume}` ends the pause"),
        false => format!("schedule {key} was paused already; `{resume}` ends the pause"),
    });
    Ok(())
}
