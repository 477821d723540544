//! `windlass schedule backfill`: starts the runs of a past range.

use clap::Args;
use windlass_engine::store::{AT_ONCE_MAX, Backfill, BackfillResult, Schedule};

use super::{find_schedule::find_schedule, instant};
use windlass_views::BackfillView;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::text::{schedules, time};
use crate::{find, stderr};

/// How many times a dry run shows.
const SHOWN: usize = 10;

/// Start the runs of a past range, each exactly once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BackfillArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,

    /// The start of the range, in the time zone of the schedule
    #[arg(long, value_name = "INSTANT")]
    from: String,

    /// The end of the range, not in the future
    #[arg(long, value_name = "INSTANT")]
    to: String,

    /// How many of these runs may be unfinished at a time
    #[arg(long = "limit", value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=AT_ONCE_MAX))]
    at_once: i64,

    /// Only print the runs that would start
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule backfill nightly --from 2026-11-01 --to 2026-11-08 --dry-run
  windlass schedule backfill nightly --from 2026-11-01 --to 2026-11-08
  windlass schedule backfill import --from 2026-11-20 --to 2026-11-21 --limit 4

The command may be repeated: a time that has a run gets no second one.
`windlass serve` or `windlass worker` starts the runs, the earliest first,
beside the runs that are due. Both ends belong to the range. A day stands for
its first instant.";

pub(super) fn execute(global: &GlobalOptions, args: &BackfillArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    find::workflow(&database, &schedule.workflow)?;
    let zone = schedule.definition.timezone.as_str();
    let instant_of = |option, text| instant::parse(option, Some(text), zone).map(Option::unwrap_or_default);
    let (from_ms, to_ms, now_ms) =
        (instant_of("--from", &args.from)?, instant_of("--to", &args.to)?, time::now_ms());
    if to_ms > now_ms {
        return Err(Failure::usage(
            format!("--to {} is in the future, and future runs start by themselves", args.to),
            format!("use {} (now) or an earlier time", schedules::local_time(now_ms, &schedule.definition)),
        ));
    }
    let backfill = Backfill { schedule_id: schedule.id, from_ms, to_ms, at_once: args.at_once };
    let subject = format!("schedule {}", schedule.key());
    let result = database.change(subject, |store| match args.dry_run {
        true => store.schedules().preview_backfill(backfill),
        false => store.schedules().backfill(backfill),
    })?;
    stderr::note(&summary(&schedule, args, &result));
    match args.dry_run {
        true => stderr::note("this was a dry run; nothing was changed"),
        false => {
            note_pause(global, &schedule);
            let show = global.hint(&format!("schedule show {}", quoted(&schedule.key())));
            stderr::note(&format!("a service or a worker starts the runs; `{show}` shows the progress"));
        }
    }
    let view = BackfillView::new(&schedule, &result);
    Output { format: global.output }.object(&view, |_| match args.dry_run {
        true => times(&schedule, &result),
        false => String::new(),
    })
}

fn summary(schedule: &Schedule, args: &BackfillArgs, result: &BackfillResult) -> String {
    let known = match (result.with_run, result.waiting) {
        (0, 0) => String::new(),
        (runs, 0) => format!("; {runs} had a run before"),
        (0, waiting) => format!("; {waiting} were waiting before"),
        (runs, waiting) => format!("; {runs} had a run before, {waiting} were waiting"),
    };
    format!(
        "schedule {} fires {} from {} to {}: {} {}, {} at a time{known}",
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

fn note_pause(global: &GlobalOptions, schedule: &Schedule) {
    let resume = if schedule.paused_at.is_some() {
        format!("schedule resume {}", quoted(&schedule.key()))
    } else if schedule.workflow_paused_at.is_some() {
        format!("workflows resume {}", quoted(&schedule.workflow))
    } else {
        return;
    };
    stderr::note(&format!("the runs start when the pause ends; `{}` ends it", global.hint(&resume)));
}

fn times(schedule: &Schedule, result: &BackfillResult) -> String {
    let shown = result.occurrences.iter().take(SHOWN);
    let mut lines: Vec<String> =
        shown.map(|at_ms| schedules::local_time(*at_ms, &schedule.definition)).collect();
    if result.occurrences.len() > SHOWN {
        lines.push(format!("and {} more", result.occurrences.len() - SHOWN));
    }
    lines.join("\n")
}
