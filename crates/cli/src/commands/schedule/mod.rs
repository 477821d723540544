//! `windlass schedule`: adds, shows and changes the schedules of registered workflows.

mod add;
mod backfill;
mod coming_times;
mod find_schedule;
mod fire;
mod instant;
mod list;
mod next;
mod pause;
mod policies;
mod remove;
mod resume;
mod show;

use clap::{Args, Subcommand};
use windlass_views::{ChangedSchedule, ScheduleView};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;

/// Add, list, show, pause, fire or backfill schedules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ScheduleArgs {
    /// What to do; `list` by default
    #[command(subcommand)]
    command: Option<ScheduleCommand>,
}

#[derive(Debug, Subcommand)]
enum ScheduleCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Next(next::NextArgs),
    Add(add::AddArgs),
    Remove(remove::RemoveArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Fire(fire::FireArgs),
    Backfill(backfill::BackfillArgs),
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule list
  windlass schedule next nightly -n 5
  windlass schedule add weekly report --cron '0 6 * * mon'
  windlass schedule fire nightly
  windlass schedule backfill nightly --from 2026-11-01 --to 2026-11-08

A schedule is named WORKFLOW/NAME. The workflow alone is enough if it has one
schedule. The name alone is enough if only one schedule has it. Schedules fire
while `windlass serve` or `windlass worker` runs.";

/// Calls the subcommand.
pub(crate) fn execute(global: &GlobalOptions, args: &ScheduleArgs) -> Result<(), Failure> {
    let Some(command) = &args.command else { return list::execute(global) };
    match command {
        ScheduleCommand::List(list::ListArgs {}) => list::execute(global),
        ScheduleCommand::Show(args) => show::execute(global, args),
        ScheduleCommand::Next(args) => next::execute(global, args),
        ScheduleCommand::Add(args) => add::execute(global, args),
        ScheduleCommand::Remove(args) => remove::execute(global, args),
        ScheduleCommand::Pause(args) => pause::execute(global, args),
        ScheduleCommand::Resume(args) => resume::execute(global, args),
        ScheduleCommand::Fire(args) => fire::execute(global, args),
        ScheduleCommand::Backfill(args) => backfill::execute(global, args),
    }
}

/// Prints the schedule for programs. `changed`: it was not like this before.
fn print_change(
    global: &GlobalOptions,
    database: &Database,
    schedule_id: i64,
    changed: bool,
) -> Result<(), Failure> {
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let schedule = database.ask(|store| store.schedules().get(schedule_id))?;
    let view = ChangedSchedule { schedule: ScheduleView::new(&schedule), changed };
    Output { format: global.output }.object(&view, |_| String::new())
}
