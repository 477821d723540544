//! `windlass schedule remove`: deactivate a schedule.

use clap::Args;
use windlass::store::ScheduleOrigin;

use super::select;
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output;

/// Remove a schedule that was added on the command line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RemoveArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule remove report/weekly

Its runs are kept, and those that are not over go on; occurrences that wait are forgotten.";

pub(super) fn execute(global: &GlobalOptions, args: &RemoveArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    let key = schedule.key();
    match schedule.origin {
        ScheduleOrigin::Command => {}
        ScheduleOrigin::File => {
            return Err(Failure::usage(
                format!("schedule {key} stands in the file of its workflow, and would come back with it"),
                format!(
                    "take it out of the file and apply that, or `{}` it",
                    global.hint(&format!("schedule pause {}", quoted(&key)))
                ),
            ));
        }
    }
    database.ask(|store| store.schedules().remove(schedule.id))?;
    output::note(&format!("schedule {key} is removed; its runs are kept"));
    Ok(())
}
