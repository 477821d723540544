//! `windlass schedule next`: shows the next times of a schedule or of all schedules.

use clap::Args;
use windlass_engine::store::Schedule;
use windlass_workflow::schedule::Occurrence;

use super::{coming_times, find_schedule::find_schedule, instant};
use windlass_views::OccurrenceView;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::{schedules, time};

/// The largest number of times.
const MAX_SHOWN: u64 = 10_000;

/// Show the next times of a schedule or of all schedules
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The schedule; without it, all active schedules together
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: Option<String>,

    /// How many times
    #[arg(short = 'n', long = "count", value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=MAX_SHOWN))]
    count: u64,

    /// Start from this instant instead of now, in the time zone of the schedule
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule next                             # of all schedules
  windlass schedule next nightly
  windlass schedule next report/weekly -n 52 -o json
  windlass schedule next nightly --from 2027-03-26   # around a clock change

A time that daylight saving time moves is marked. Jitter, which delays each
run a little, is not shown.";

pub(super) fn execute(global: &GlobalOptions, args: &NextArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let Some(name) = &args.name else { return of_all(global, &database, args) };
    let schedule = find_schedule(&database, name)?;
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let from_ms = instant::parse("--from", args.from.as_deref(), &schedule.definition.timezone)?;
    let occurrences = match from_ms {
        // --from includes the instant itself.
        Some(from_ms) => coming_times::after(&schedule, from_ms.saturating_sub(1), count)?,
        None => coming_times::from_now(&schedule, count)?,
    };
    let views: Vec<OccurrenceView> =
        occurrences.iter().map(|occurrence| OccurrenceView::new(occurrence, &schedule)).collect();
    Output { format: global.output }.list(&views, |_| text(&schedule, &occurrences))
}

/// The next times of all active schedules, the earliest first.
fn of_all(global: &GlobalOptions, database: &Database, args: &NextArgs) -> Result<(), Failure> {
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let mut coming: Vec<(Schedule, Occurrence)> = Vec::new();
    for schedule in database.ask(|store| store.schedules().list())? {
        if !schedule.is_active() {
            continue;
        }
        let from_ms = instant::parse("--from", args.from.as_deref(), &schedule.definition.timezone)?;
        let occurrences = match from_ms {
            Some(from_ms) => coming_times::after(&schedule, from_ms.saturating_sub(1), count)?,
            None => coming_times::from_now(&schedule, count)?,
        };
        coming.extend(occurrences.into_iter().map(|occurrence| (schedule.clone(), occurrence)));
        // So that many schedules take no more memory than the answer.
        coming.sort_by_key(|(_schedule, occurrence)| occurrence.at_ms);
        coming.truncate(count);
    }
    if coming.is_empty() && global.output == OutputFormat::Text {
        stderr::note(&format!(
            "no schedule has a next time; `{}` lists them",
            database.hint("schedule list")
        ));
        return Ok(());
    }
    let views: Vec<OccurrenceView> =
        coming.iter().map(|(schedule, occurrence)| OccurrenceView::new(occurrence, schedule)).collect();
    Output { format: global.output }.list(&views, |_| text_of_all(&coming))
}

fn text_of_all(coming: &[(Schedule, Occurrence)]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Left("SCHEDULE"),
        Column::Left("LOCAL"),
        Column::Optional("UTC"),
        Column::Left("IN"),
    ]);
    for (schedule, occurrence) in coming {
        table.row([
            printable(&schedule.key()).into_owned(),
            schedules::local_time(occurrence.at_ms, &schedule.definition),
            time::utc(occurrence.at_ms),
            time::relative(occurrence.at_ms, now_ms),
        ]);
    }
    table.render(table::stdout_width())
}

fn text(schedule: &Schedule, occurrences: &[Occurrence]) -> String {
    if occurrences.is_empty() {
        return format!("schedule {} has ended: it has no more times", schedule.key());
    }
    coming_times::table(schedule, occurrences)
}
