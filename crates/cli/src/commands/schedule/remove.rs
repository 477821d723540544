//! `windlass schedule remove`: deactivates a schedule.

use clap::Args;
use windlass_engine::store::{ScheduleOrigin, Subject};
use windlass_views::{ChangedSchedule, ScheduleView};

use super::find_schedule::find_schedule;
use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::stderr;

/// Remove a schedule that was added on the command line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RemoveArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule remove report/weekly

Its runs are kept, and unfinished runs continue. Waiting runs of the schedule
never start.";

pub(super) fn execute(global: &GlobalOptions, args: &RemoveArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    let key = schedule.key();
    match schedule.origin {
        ScheduleOrigin::Command => {}
        ScheduleOrigin::File => {
            return Err(Failure::usage(
                format!("schedule {key} is in the file of its workflow, which would register it again"),
                format!(
                    "remove it from the file and apply the file, or pause it with `{}`",
                    global.hint(&format!("schedule pause {}", quoted(&key)))
                ),
            ));
        }
    }
    database.change(Subject::Schedule { id: schedule.id, key: schedule.key() }, |store| {
        store.schedules().remove(schedule.id)
    })?;
    stderr::note(&format!("schedule {key} is removed; its runs are kept"));
    let view = ChangedSchedule { schedule: ScheduleView::new(&schedule), changed: true };
    Output { format: global.output }.object(&view, |_| String::new())
}
