//! `windlass schedule add`: a schedule beside those of the workflow's file.

use clap::{ArgGroup, Args};
use std::time::Duration;

use windlass::workflow::Workflow;
use windlass::workflow::limits::{CATCHUP, CATCHUP_DEFAULT};
use windlass::workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};
use windlass::workflow::params::Supplied;
use windlass::workflow::schedule::{Timetable, check_params, parse_instant};

use super::next;
use super::words::{self, CatchupWord, OverlapWord};
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::views::ScheduleView;
use crate::{lookup, submission, time};

/// Times shown of a new schedule.
const SHOWN: usize = 3;

/// Add a schedule to a registered workflow
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("rule").required(true))]
pub(super) struct AddArgs {
    /// The name of the schedule
    #[arg(value_name = "NAME", value_parser = parse_name)]
    name: String,

    /// The registered workflow that it runs
    #[arg(value_name = "WORKFLOW")]
    workflow: String,

    /// A cron expression of five or six fields, or a shortcut like @daily
    #[arg(long, value_name = "EXPRESSION", group = "rule")]
    cron: Option<String>,

    /// A fixed interval instead, for example 90s
    #[arg(long, value_name = "DURATION", group = "rule", value_parser = time::parse_duration)]
    every: Option<Duration>,

    /// The time zone of the cron expression
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,

    /// What to do while an earlier run is not over [default: skip, or queue_all with --catchup all]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapWord>,

    /// What to do about runs that were missed [default: last]
    #[arg(long, value_name = "POLICY")]
    catchup: Option<CatchupWord>,

    /// How old a missed occurrence may be to be caught up
    #[arg(long, value_name = "DURATION", value_parser = time::parse_duration)]
    catchup_window: Option<Duration>,

    /// How many missed occurrences are caught up at most; the newest are [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=CATCHUP))]
    catchup_max: Option<i64>,

    /// No occurrence before this instant; an interval counts from it
    #[arg(long, value_name = "INSTANT")]
    start: Option<String>,

    /// No occurrence from this instant on
    #[arg(long, value_name = "INSTANT")]
    end: Option<String>,

    /// Delay each occurrence by a random time up to this
    #[arg(long, value_name = "DURATION", value_parser = time::parse_duration)]
    jitter: Option<Duration>,

    /// A parameter of the runs, which may use `{{ scheduled_for }}`; may be given many times
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = submission::parse_pair)]
    params: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule add weekly report --cron '0 6 * * mon' --timezone Europe/Berlin
  windlass schedule add poll inbox --every 90s --overlap skip
  windlass schedule add hourly import --cron @hourly --catchup all --catchup-window 2d
  windlass schedule add nightly report --cron '30 2 * * *' -p 'day={{ scheduled_for | date }}'

Instants are days or times on the clock of the zone, or have their offset: 2026-11-21T02:30:00Z.
A schedule that belongs to the workflow is better written into its file, as [[schedules]].";

pub(super) fn execute(global: &GlobalOptions, args: &AddArgs) -> Result<(), Failure> {
    let mut definition = definition(args)?;
    let database = Database::existing(global)?;
    let Some((registration, workflow)) =
        database.ask(|store| store.registrations().workflow(&args.workflow))?
    else {
        refuse_swapped_names(&database, global, args)?;
        let reason = "no workflow is registered under the name";
        return Err(lookup::no_registration(&database, &args.workflow, reason)?);
    };
    definition.params = params(args, &workflow, &definition)?;
    refuse_a_taken_name(&database, global, args)?;
    let schedule = database.ask(|store| store.schedules().add(&args.workflow, definition))?;
    let key = schedule.key();
    output::note(&format!(
        "schedule {key} is added; `{}` takes it out again",
        global.hint(&format!("schedule remove {}", quoted(&key)))
    ));
    if registration.paused_at.is_some() {
        let resume = global.hint(&format!("workflows resume {}", quoted(&args.workflow)));
        output::note(&format!("it fires nothing yet: its workflow is paused; `{resume}` ends that"));
    }
    let coming = next::coming(&schedule, SHOWN)?;
    Output { format: global.output }
        .object(&ScheduleView::new(&schedule), |_| next::table(&schedule, &coming))
}

/// Schedules are called WORKFLOW/NAME, so that the workflow is easily written first.
fn refuse_swapped_names(database: &Database, global: &GlobalOptions, args: &AddArgs) -> Result<(), Failure> {
    if database.ask(|store| store.registrations().get(&args.name))?.is_none() {
        return Ok(());
    }
    let right = format!("schedule add {} {}", quoted(&args.workflow), quoted(&args.name));
    Err(Failure::usage(
        format!("`{}` is a workflow, and `{}` is none", args.name, args.workflow),
        format!("the name of the schedule comes first: `{} …`", global.hint(&right)),
    ))
}

fn refuse_a_taken_name(database: &Database, global: &GlobalOptions, args: &AddArgs) -> Result<(), Failure> {
    let schedules = database.ask(|store| store.schedules().list())?;
    let is_it = |schedule: &&windlass::store::Schedule| {
        schedule.workflow == args.workflow && schedule.name == args.name
    };
    let Some(schedule) = schedules.iter().find(is_it) else { return Ok(()) };
    let key = schedule.key();
    Err(Failure::Conflict {
        message: format!("there is a schedule {key} already: {}", words::rule(&schedule.definition)),
        help: format!(
            "take another name, or remove that one first; `{}` shows it",
            global.hint(&format!("schedule show {}", quoted(&key)))
        ),
    })
}

/// The schedule without its parameters.
fn definition(args: &AddArgs) -> Result<Definition, Failure> {
    let catchup = args.catchup.map_or(Catchup::default(), CatchupWord::catchup);
    check_catchup(args, catchup)?;
    let overlap = args.overlap.map_or_else(|| default_overlap(catchup), OverlapWord::overlap);
    let rule = match (&args.cron, args.every) {
        (Some(cron), _) => Rule::Cron(cron.clone()),
        (None, every) => Rule::EveryMs(milliseconds(every.unwrap_or_default())),
    };
    let mut definition = Definition {
        name: args.name.clone(),
        rule,
        timezone: args.timezone.clone(),
        overlap,
        catchup,
        catchup_window_ms: args.catchup_window.map(milliseconds),
        catchup_max: args.catchup_max.unwrap_or(CATCHUP_DEFAULT),
        start_ms: None,
        end_ms: None,
        jitter_ms: args.jitter.map_or(0, milliseconds),
        params: serde_json::Map::new(),
    };
    // First without its ends: they are read in its zone.
    check(&definition)?;
    definition.start_ms = instant("--start", args.start.as_deref(), &definition.timezone)?;
    definition.end_ms = instant("--end", args.end.as_deref(), &definition.timezone)?;
    check(&definition)?;
    Ok(definition)
}

fn default_overlap(catchup: Catchup) -> Overlap {
    match catchup {
        // Who wants every occurrence wants none of them skipped.
        Catchup::All => Overlap::QueueAll,
        Catchup::None | Catchup::Last => Overlap::default(),
    }
}

/// A limit on what is not done has no meaning.
fn check_catchup(args: &AddArgs, catchup: Catchup) -> Result<(), Failure> {
    let word = words::catchup(catchup);
    let useless = |option: &str, help: &str| {
        Failure::usage(format!("{option} has no meaning with --catchup {word}"), help)
    };
    if args.catchup_window.is_some() && catchup == Catchup::None {
        return Err(useless("--catchup-window", "take --catchup last or --catchup all, or leave it out"));
    }
    if args.catchup_max.is_some() && catchup != Catchup::All {
        return Err(useless("--catchup-max", "take --catchup all, or leave it out"));
    }
    Ok(())
}

fn check(definition: &Definition) -> Result<(), Failure> {
    match Timetable::of(definition) {
        Ok(_timetable) => Ok(()),
        Err(error) => Err(Failure::usage(error.reason, error.help)),
    }
}

pub(super) fn instant(option: &str, text: Option<&str>, timezone: &str) -> Result<Option<i64>, Failure> {
    let Some(text) = text else { return Ok(None) };
    match parse_instant(text, timezone) {
        Ok(at_ms) => Ok(Some(at_ms)),
        Err(help) => Err(Failure::usage(format!("{option} {text} is not an instant"), help)),
    }
}

fn params(
    args: &AddArgs,
    workflow: &Workflow,
    definition: &Definition,
) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let supplied = args.params.iter().map(|(name, text)| (name.clone(), Supplied::Text(text.clone())));
    check_params(&workflow.params, definition, supplied.collect())
        .map_err(|errors| submission::invalid_params(workflow, &errors))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The same rule as for a schedule in a file.
fn parse_name(text: &str) -> Result<String, String> {
    windlass::workflow::check_schedule_name(text).map(|()| text.to_owned())
}
