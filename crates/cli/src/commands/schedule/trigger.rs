//! `windlass schedule trigger`: a run out of turn.

use clap::Args;
use windlass::RunStatus;

use super::select;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::lookup;
use crate::output::{self, Format, Output};
use crate::views::SubmittedView;

/// Start a run of a schedule now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TriggerArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule trigger nightly

The run has the schedule's parameters, with the present time as `scheduled_for`. It starts at
once, also when the schedule is paused or another of its runs is not over.";

pub(super) fn execute(global: &GlobalOptions, args: &TriggerArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    lookup::registration(&database, &schedule.workflow)?;
    let submitted = database.ask(|store| store.schedules().trigger(schedule.id))?;
    let run_id = submitted.run_id;
    if global.output == Format::Text {
        output::note(&format!(
            "run {run_id} of schedule {} is accepted; `{}` executes it, `{}` shows it",
            schedule.key(),
            global.hint("worker"),
            global.hint(&format!("watch {run_id}"))
        ));
        return output::write_text(&run_id.to_string());
    }
    let view = SubmittedView::new(submitted, &schedule.workflow, RunStatus::Pending);
    Output { format: global.output }.object(&view, |_| String::new())
}
