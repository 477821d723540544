//! `windlass schedule next`: shows the next times of a schedule.

use clap::Args;
use windlass_engine::store::Schedule;
use windlass_workflow::schedule::Occurrence;

use super::{coming_times, find_schedule::find_schedule, instant};
use windlass_views::OccurrenceView;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;

/// The largest number of times.
const MAX_SHOWN: u64 = 10_000;

/// Show the next times of a schedule, in its zone and in UTC
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,

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
  windlass schedule next nightly
  windlass schedule next report/weekly -n 52 -o json
  windlass schedule next nightly --from 2027-03-26   # around a clock change

A time that daylight saving time moves is marked. Jitter, which delays each
run a little, is not shown.";

pub(super) fn execute(global: &GlobalOptions, args: &NextArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
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

fn text(schedule: &Schedule, occurrences: &[Occurrence]) -> String {
    if occurrences.is_empty() {
        return format!("schedule {} has ended: it has no more times", schedule.key());
    }
    coming_times::table(schedule, occurrences)
}
