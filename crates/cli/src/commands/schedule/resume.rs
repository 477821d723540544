//! `windlass schedule resume`: lets a schedule fire again.

use clap::Args;
use windlass_engine::store::Subject;

use super::find_schedule::find_schedule;
use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::shell_words::quoted;
use crate::stderr;
use crate::text::schedules;

/// Resume a schedule; runs missed during the pause are not caught up
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResumeArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule resume nightly

`windlass schedule backfill` starts the runs that were missed during the
pause.";

pub(super) fn execute(global: &GlobalOptions, args: &ResumeArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    let key = schedule.key();
    let changed = database.change(Subject::Schedule { id: schedule.id, key: schedule.key() }, |store| {
        store.schedules().resume(schedule.id)
    })?;
    if !changed {
        stderr::note(&format!("schedule {key} was not paused"));
    }
    let schedule = database.ask(|store| store.schedules().get(schedule.id))?;
    stderr::note(&match (schedule.workflow_paused_at, schedule.next_at) {
        (Some(_), _) => format!(
            "schedule {key} does not fire yet, because its workflow is paused; `{}` ends the pause",
            global.hint(&format!("workflows resume {}", quoted(&schedule.workflow)))
        ),
        (None, Some(next_at)) => {
            format!("schedule {key} fires next at {}", schedules::local_time(next_at, &schedule.definition))
        }
        (None, None) => format!("schedule {key} has no more times"),
    });
    super::print_change(global, &database, schedule.id, changed)
}
