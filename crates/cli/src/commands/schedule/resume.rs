//! `windlass schedule resume`: fires again.

use clap::Args;

use super::{select, words};
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output;

/// Resume a schedule; what was missed during the pause is not caught up
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResumeArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule resume nightly

What the pause hid is not caught up; `windlass schedule backfill` makes up for it.";

pub(super) fn execute(global: &GlobalOptions, args: &ResumeArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    let key = schedule.key();
    if !database.ask(|store| store.schedules().resume(schedule.id))? {
        output::note(&format!("schedule {key} was not paused"));
    }
    let schedule = database.ask(|store| store.schedules().get(schedule.id))?;
    output::note(&match (schedule.workflow_paused_at, schedule.next_at) {
        (Some(_), _) => format!(
            "schedule {key} fires nothing yet: its workflow is paused; `{}` ends that",
            global.hint(&format!("workflows resume {}", quoted(&schedule.workflow)))
        ),
        (None, Some(next_at)) => {
            format!("schedule {key} fires next at {}", words::local(next_at, &schedule.definition))
        }
        (None, None) => format!("schedule {key} has no more times"),
    });
    Ok(())
}
