//! `windlass schedule fire`: starts a run of a schedule now.

use clap::Args;
use windlass_engine::RunStatus;
use windlass_engine::store::Subject;

use super::find_schedule::find_schedule;
use windlass_views::SubmittedView;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::{executors, find, stderr};

/// Start a run of a schedule now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FireArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule fire nightly

The run gets the schedule's parameters, and the current time as
`scheduled_for`. It starts even if the schedule is paused or an earlier run is
unfinished.";

pub(super) fn execute(global: &GlobalOptions, args: &FireArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    find::workflow(&database, &schedule.workflow)?;
    let submitted = database.change(Subject::Schedule { id: schedule.id, key: schedule.key() }, |store| {
        store.schedules().fire(schedule.id)
    })?;
    let run_id = submitted.run_id;
    if global.output == OutputFormat::Text {
        let start = format!("start a worker with `{}`", global.hint("worker"));
        stderr::note(&format!(
            "run {run_id} of schedule {} is accepted; {}; `{}` shows the progress",
            schedule.key(),
            executors::of_run(&database, run_id, &start)?,
            global.hint(&format!("watch {run_id}"))
        ));
        return output::write_text(&run_id.to_string());
    }
    let view = SubmittedView::new(submitted, &schedule.workflow, RunStatus::Pending);
    Output { format: global.output }.object(&view, |_| String::new())
}
