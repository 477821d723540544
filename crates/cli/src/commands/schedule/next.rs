//! `windlass schedule next`: the coming times of a schedule.

use clap::Args;
use windlass::store::Schedule;
use windlass::workflow::schedule::{Occurrence, Timetable};

use super::{add, select, words};
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::style::{YELLOW, paint};
use crate::table::{self, Column, Table};
use crate::time;
use crate::views::OccurrenceView;

/// Times shown at most.
const MAX_SHOWN: u64 = 10_000;

/// Show the next times of a schedule, in its zone and in UTC
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,

    /// How many
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_SHOWN))]
    count: u64,

    /// From this instant on instead of from now, on the clock of the schedule's zone
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule next nightly
  windlass schedule next report/weekly -n 52 -o json
  windlass schedule next nightly --from 2027-03-26    # around a change of the clock

A time that a change of the clock touches is marked. Jitter is not shown: it makes each start a
bit later.";

pub(super) fn execute(global: &GlobalOptions, args: &NextArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let from_ms = add::instant("--from", args.from.as_deref(), &schedule.definition.timezone)?;
    let occurrences = match from_ms {
        // The instant itself belongs to what was asked for.
        Some(from_ms) => after(&schedule, from_ms.saturating_sub(1), count)?,
        None => coming(&schedule, count)?,
    };
    let views: Vec<OccurrenceView> =
        occurrences.iter().map(|occurrence| OccurrenceView::new(occurrence, &schedule)).collect();
    Output { format: global.output }.list(&views, |_| text(&schedule, &occurrences))
}

/// The next times from now on.
pub(super) fn coming(schedule: &Schedule, count: usize) -> Result<Vec<Occurrence>, Failure> {
    after(schedule, time::now_ms().max(schedule.decided_until), count)
}

fn after(schedule: &Schedule, instant_ms: i64, count: usize) -> Result<Vec<Occurrence>, Failure> {
    let timetable = Timetable::of(&schedule.definition).map_err(|error| {
        Failure::usage(
            format!("the rule of schedule {} cannot be read: {}", schedule.key(), error.reason),
            error.help,
        )
    })?;
    Ok(timetable.after(instant_ms).take(count).collect())
}

fn text(schedule: &Schedule, occurrences: &[Occurrence]) -> String {
    if occurrences.is_empty() {
        return format!("schedule {} is over: it has no more times", schedule.key());
    }
    table(schedule, occurrences)
}

/// Times as a table.
pub(super) fn table(schedule: &Schedule, occurrences: &[Occurrence]) -> String {
    let now_ms = time::now_ms();
    let zone = schedule.definition.timezone.as_str();
    let mut table = match zone {
        "UTC" => Table::new(&[Column::Left("UTC"), Column::Left("IN"), Column::Yielding("")]),
        _ => Table::new(&[
            Column::Left("LOCAL"),
            Column::Left("UTC"),
            Column::Left("IN"),
            Column::Yielding(""),
        ]),
    };
    for occurrence in occurrences {
        let moved = occurrence.moved.map(|moved| paint(YELLOW, moved)).unwrap_or_default();
        let utc = time::utc(occurrence.at_ms);
        let distance = time::relative(occurrence.at_ms, now_ms);
        match zone {
            "UTC" => table.row([utc, distance, moved]),
            _ => table.row([words::local(occurrence.at_ms, &schedule.definition), utc, distance, moved]),
        }
    }
    table.render(table::stdout_width())
}
