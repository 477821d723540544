//! `windlass schedule pause`: stops a schedule from firing.

use clap::Args;
use windlass_engine::store::Subject;

use super::find_schedule::find_schedule;
use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::shell_words::quoted;
use crate::stderr;

/// Pause a schedule; runs missed during the pause are not caught up
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct PauseArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule pause nightly
  windlass schedule resume nightly

Unfinished runs continue. `windlass workflows pause` pauses all schedules of a
workflow.";

pub(super) fn execute(global: &GlobalOptions, args: &PauseArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    let key = schedule.key();
    let resume = global.hint(&format!("schedule resume {}", quoted(&key)));
    let changed = database.change(Subject::Schedule { id: schedule.id, key: schedule.key() }, |store| {
        store.schedules().pause(schedule.id)
    })?;
    stderr::note(&match changed {
        true => format!("schedule {key} is paused; `{resume}` ends the pause"),
        false => format!("schedule {key} was already paused; `{resume}` ends the pause"),
    });
    super::print_change(global, &database, schedule.id, changed)
}
