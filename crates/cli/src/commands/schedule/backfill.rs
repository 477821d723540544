//! `windlass schedule backfill`: a range of the past.

use clap::Args;
use windlass::store::{AT_ONCE_MAX, Backfill, Backfilling, Schedule};

use super::{add, select, words};
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::lookup;
use crate::output::{self, Output};
use crate::time;
use crate::views::BackfillView;

/// Occurrences shown by a dry run.
const SHOWN: usize = 10;

/// Start runs for past occurrences, each exactly once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BackfillArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,

    /// The first instant of the range, on the clock of the schedule's zone
    #[arg(long, value_name = "INSTANT")]
    from: String,

    /// The end of the range, which must not be in the future
    #[arg(long, value_name = "INSTANT")]
    to: String,

    /// How many of these runs may be unfinished at a time
    #[arg(long = "limit", value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=AT_ONCE_MAX))]
    at_once: i64,

    /// Only print what would run
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule backfill nightly --from 2026-11-01 --to 2026-11-08 --dry-run
  windlass schedule backfill nightly --from 2026-11-01 --to 2026-11-08
  windlass schedule backfill import --from 2026-11-20T06:00 --to 2026-11-20T18:00 --limit 4

Occurrences that have a run are left out, so it may be repeated, also when it was stopped
half-way. The runs start as `windlass serve` or `windlass worker` gets to them, the earliest
first, beside those that are due. Both ends belong to the range; a day is its first instant.";

pub(super) fn execute(global: &GlobalOptions, args: &BackfillArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    lookup::registration(&database, &schedule.workflow)?;
    let zone = schedule.definition.timezone.as_str();
    let end = |option, text| add::instant(option, Some(text), zone).map(Option::unwrap_or_default);
    let (from_ms, to_ms, now_ms) = (end("--from", &args.from)?, end("--to", &args.to)?, time::now_ms());
    if to_ms > now_ms {
        return Err(Failure::usage(
            format!("--to {} is in the future: the schedule does that by itself", args.to),
            format!("it is {} now; end at that or before", words::local(now_ms, &schedule.definition)),
        ));
    }
    let backfill = Backfill { schedule_id: schedule.id, from_ms, to_ms, at_once: args.at_once };
    let result = database.ask(|store| match args.dry_run {
        true => store.schedules().preview_backfill(backfill),
        false => store.schedules().backfill(backfill),
    })?;
    output::note(&summary(&schedule, args, &result));
    match args.dry_run {
        true => output::note("this was a dry run: nothing was changed"),
        false => {
            say_what_holds_it_up(global, &schedule);
            let show = global.hint(&format!("schedule show {}", quoted(&schedule.key())));
            output::note(&format!("services and workers start them; `{show}` shows how it stands"));
        }
    }
    let view = BackfillView::new(&schedule, &result);
    Output { format: global.output }.object(&view, |_| match args.dry_run {
        true => times(&schedule, &result),
        false => String::new(),
    })
}

fn summary(schedule: &Schedule, args: &BackfillArgs, result: &Backfilling) -> String {
    let known = match (result.with_run, result.waiting) {
        (0, 0) => String::new(),
        (runs, 0) => format!("; {runs} have a run already"),
        (0, waiting) => format!("; {waiting} wait for theirs already"),
        (runs, waiting) => format!("; {runs} have a run already, {waiting} wait for theirs"),
    };
    format!(
        "schedule {} occurs {} from {} to {}: {} {}, {} at once{known}",
        schedule.key(),
        match result.occurrences.len() {
            1 => "once".to_owned(),
            count => format!("{count} times"),
        },
        args.from,
        args.to,
        result.added,
        if args.dry_run { "would get a run" } else { "will get a run" },
        args.at_once,
    )
}

fn say_what_holds_it_up(global: &GlobalOptions, schedule: &Schedule) {
    let resume = if schedule.paused_at.is_some() {
        format!("schedule resume {}", quoted(&schedule.key()))
    } else if schedule.workflow_paused_at.is_some() {
        format!("workflows resume {}", quoted(&schedule.workflow))
    } else {
        return;
    };
    output::note(&format!("they wait while it is paused; `{}` ends the pause", global.hint(&resume)));
}

fn times(schedule: &Schedule, result: &Backfilling) -> String {
    let shown = result.occurrences.iter().take(SHOWN);
    let mut lines: Vec<String> = shown.map(|at_ms| words::local(*at_ms, &schedule.definition)).collect();
    if result.occurrences.len() > SHOWN {
        lines.push(format!("and {} more", result.occurrences.len() - SHOWN));
    }
    lines.join("\n")
}
