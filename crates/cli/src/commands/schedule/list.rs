//! `windlass schedule list`: lists the schedules and when each fires next.

use clap::Args;
use windlass_engine::store::Schedule;

use windlass_views::ScheduleView;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::{schedules, time};

/// List the schedules and when each fires next
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass schedule list
  windlass schedule list -o json | jq '.[] | select(.paused_at)'";

pub(super) fn execute(global: &GlobalOptions) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedules = database.ask(|store| store.schedules().list())?;
    if schedules.is_empty() && global.output == OutputFormat::Text {
        stderr::note(&format!(
            "there are no schedules; add [[schedules]] to a workflow file, then register it with `{}`",
            database.hint("apply FILE")
        ));
        return Ok(());
    }
    let views: Vec<ScheduleView> = schedules.iter().map(ScheduleView::new).collect();
    Output { format: global.output }.list(&views, |_| text(&schedules))
}

fn text(schedules: &[Schedule]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Left("SCHEDULE"),
        Column::Shrinking("RULE"),
        Column::Optional("TIMEZONE"),
        Column::Left("NEXT"),
        Column::Left("IN"),
        Column::Left("STATE"),
    ]);
    for schedule in schedules {
        let next_at = schedule.next_at.filter(|_| schedule.is_active());
        table.row([
            printable(&schedule.key()).into_owned(),
            printable(&schedules::rule(&schedule.definition)).into_owned(),
            schedule.definition.timezone.clone(),
            next_at.map(|at_ms| schedules::local_time(at_ms, &schedule.definition)).unwrap_or_default(),
            next_at.map(|at_ms| time::relative(at_ms, now_ms)).unwrap_or_default(),
            schedules::state(schedule, now_ms),
        ]);
    }
    table.render(table::stdout_width())
}
