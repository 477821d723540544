//! `windlass schedule add`: adds a schedule that is not in the workflow's file.

use clap::{ArgGroup, Args};
use std::time::Duration;

use windlass_workflow::Workflow;
use windlass_workflow::limits::{CATCHUP, CATCHUP_DEFAULT};
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};
use windlass_workflow::params::Supplied;
use windlass_workflow::schedule::{Timetable, check_params};

use super::policies::{CatchupArgument, OverlapArgument};
use super::{coming_times, instant};
use windlass_views::{ChangedSchedule, ScheduleView, catchup_name};

use crate::arguments::{GlobalOptions, parse_duration};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::text::schedules;
use crate::{find, stderr, submission};

/// How many times of the new schedule are shown.
const SHOWN: usize = 3;

/// Add a schedule to a registered workflow
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, group = ArgGroup::new("rule").required(true))]
pub(super) struct AddArgs {
    /// The name of the schedule, alone or as WORKFLOW/NAME
    #[arg(value_name = "NAME")]
    name: String,

    /// The registered workflow that it runs, unless the name has it
    #[arg(value_name = "WORKFLOW", add = complete::workflow())]
    workflow: Option<String>,

    /// A cron expression with five or six fields, or a shortcut such as @daily
    #[arg(long, value_name = "CRON", group = "rule")]
    cron: Option<String>,

    /// A fixed interval instead of a cron expression, for example 90s
    #[arg(long, value_name = "EVERY", group = "rule", value_parser = parse_duration)]
    every: Option<Duration>,

    /// One instant instead of a cron expression, for example 2026-11-21T02:30
    #[arg(long, value_name = "AT", group = "rule", conflicts_with_all = ["start", "end"])]
    at: Option<String>,

    /// The time zone of the cron expression and of instants
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,

    /// What to do while an earlier run is unfinished [default: skip, or queue_all with --catchup all]
    #[arg(long, value_name = "POLICY")]
    overlap: Option<OverlapArgument>,

    /// What to do about missed runs [default: last]
    #[arg(long, value_name = "POLICY")]
    catchup: Option<CatchupArgument>,

    /// Catch up only missed runs that are not older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    catchup_window: Option<Duration>,

    /// Catch up at most this many missed runs, the newest ones [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=CATCHUP))]
    catchup_max: Option<i64>,

    /// Start no run before this instant; an interval counts from it
    #[arg(long, value_name = "INSTANT")]
    start: Option<String>,

    /// Start no run at or after this instant
    #[arg(long, value_name = "INSTANT")]
    end: Option<String>,

    /// Delay each run by a random time up to this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    jitter: Option<Duration>,

    /// A parameter of the runs; it may use `{{ scheduled_for }}` and may be given many times
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = submission::parse_pair)]
    params: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule add weekly report --cron '0 6 * * mon' --timezone Asia/Tokyo
  windlass schedule add inbox/poll --every 90s --overlap skip
  windlass schedule add once report --at 2026-11-21T02:30
  windlass schedule add hourly import --cron @hourly --catchup all
  windlass schedule add x report --cron @daily -p 'd={{ scheduled_for | date }}'

An instant is a day or a time in the time zone, or has an offset:
2026-11-21T02:30:00Z. If you own the workflow file, write the schedule there,
as [[schedules]].";

pub(super) fn execute(global: &GlobalOptions, args: &AddArgs) -> Result<(), Failure> {
    let names = &names(args)?;
    let mut definition = definition(args, names)?;
    let database = Database::existing(global)?;
    let Some((registration, workflow)) =
        database.ask(|store| store.registrations().workflow(&names.workflow))?
    else {
        refuse_swapped_names(&database, global, names)?;
        let reason = "no workflow is registered under the name";
        return Err(find::no_workflow(&database, &names.workflow, reason)?);
    };
    definition.params = params(args, &workflow, &definition)?;
    refuse_a_taken_name(&database, global, names)?;
    let schedule = database.change(format!("schedule {}/{}", names.workflow, names.name), |store| {
        store.schedules().add(&names.workflow, definition)
    })?;
    let key = schedule.key();
    stderr::note(&format!(
        "schedule {key} is added; `{}` removes it",
        global.hint(&format!("schedule remove {}", quoted(&key)))
    ));
    if registration.paused_at.is_some() {
        let resume = global.hint(&format!("workflows resume {}", quoted(&names.workflow)));
        stderr::note(&format!(
            "the schedule starts no runs yet, because its workflow is paused; `{resume}` ends the pause"
        ));
    }
    let coming = coming_times::from_now(&schedule, SHOWN)?;
    let view = ChangedSchedule { schedule: ScheduleView::new(&schedule), changed: true };
    Output { format: global.output }.object(&view, |_| coming_times::table(&schedule, &coming))
}

/// The names of a new schedule.
struct Names {
    name: String,
    workflow: String,
}

/// The names as two arguments, or as WORKFLOW/NAME. The rules for a name are those of a workflow file, so it has no slash.
fn names(args: &AddArgs) -> Result<Names, Failure> {
    let (name, workflow) = match (&args.workflow, args.name.rsplit_once('/')) {
        (Some(workflow), _) => (args.name.as_str(), workflow.as_str()),
        (None, Some((workflow, name))) => (name, workflow),
        (None, None) => {
            return Err(Failure::usage(
                format!("the workflow of the schedule `{}` is missing", args.name),
                format!("write WORKFLOW/{0}, or {0} WORKFLOW", args.name),
            ));
        }
    };
    windlass_workflow::check_schedule_name(name).map_err(|reason| {
        Failure::usage(
            format!("`{name}` can't be the name of a schedule: {reason}"),
            "write WORKFLOW/NAME, or NAME WORKFLOW",
        )
    })?;
    Ok(Names { name: name.to_owned(), workflow: workflow.to_owned() })
}

/// Catches the two names in the wrong order. A schedule is called WORKFLOW/NAME, so this is an easy mistake.
fn refuse_swapped_names(database: &Database, global: &GlobalOptions, names: &Names) -> Result<(), Failure> {
    if database.ask(|store| store.registrations().get(&names.name))?.is_none() {
        return Ok(());
    }
    let right = format!("schedule add {} {}", quoted(&names.workflow), quoted(&names.name));
    Err(Failure::usage(
        format!("`{}` is a workflow, and `{}` is not", names.name, names.workflow),
        format!("write the name of the schedule first: `{} …`", global.hint(&right)),
    ))
}

fn refuse_a_taken_name(database: &Database, global: &GlobalOptions, names: &Names) -> Result<(), Failure> {
    let schedules = database.ask(|store| store.schedules().list())?;
    let is_it = |schedule: &&windlass_engine::store::Schedule| {
        schedule.workflow == names.workflow && schedule.name == names.name
    };
    let Some(schedule) = schedules.iter().find(is_it) else { return Ok(()) };
    let key = schedule.key();
    Err(Failure::Conflict {
        message: format!("schedule {key} exists already: {}", schedules::rule(&schedule.definition)),
        help: format!(
            "choose another name, or remove the existing schedule first; `{}` shows it",
            global.hint(&format!("schedule show {}", quoted(&key)))
        ),
    })
}

/// The schedule without its parameters.
fn definition(args: &AddArgs, names: &Names) -> Result<Definition, Failure> {
    let catchup = args.catchup.map_or(Catchup::default(), CatchupArgument::catchup);
    check_catchup(args, catchup)?;
    let overlap = args.overlap.map_or_else(|| default_overlap(catchup), OverlapArgument::overlap);
    let rule = match (&args.cron, args.every, &args.at) {
        (Some(cron), _, _) => Rule::Cron(cron.clone()),
        // Its instant is read in the time zone.
        (None, None, Some(_at)) => Rule::AtMs(0),
        (None, every, _) => Rule::EveryMs(milliseconds(every.unwrap_or_default())),
    };
    let mut definition = Definition {
        name: names.name.clone(),
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
    // The first check covers the time zone, in which --at, --start and --end are read.
    check(&definition)?;
    if let Some(at_ms) = instant::parse("--at", args.at.as_deref(), &definition.timezone)? {
        definition.rule = Rule::AtMs(at_ms);
    }
    definition.start_ms = instant::parse("--start", args.start.as_deref(), &definition.timezone)?;
    definition.end_ms = instant::parse("--end", args.end.as_deref(), &definition.timezone)?;
    check(&definition)?;
    Ok(definition)
}

fn default_overlap(catchup: Catchup) -> Overlap {
    match catchup {
        // Skipping would drop runs that `--catchup all` asks for.
        Catchup::All => Overlap::QueueAll,
        Catchup::None | Catchup::Last => Overlap::default(),
    }
}

/// Refuses options that have no effect with the catch-up policy.
fn check_catchup(args: &AddArgs, catchup: Catchup) -> Result<(), Failure> {
    let word = catchup_name(catchup);
    let useless = |option: &str, help: &str| {
        Failure::usage(format!("{option} has no effect with --catchup {word}"), help)
    };
    if args.catchup_window.is_some() && catchup == Catchup::None {
        return Err(useless(
            "--catchup-window",
            "use --catchup last or --catchup all, or leave the option out",
        ));
    }
    if args.catchup_max.is_some() && catchup != Catchup::All {
        return Err(useless("--catchup-max", "use --catchup all, or leave the option out"));
    }
    Ok(())
}

fn check(definition: &Definition) -> Result<(), Failure> {
    let errors = Timetable::errors(definition);
    if errors.is_empty() {
        return Ok(());
    }
    let (reasons, help): (Vec<String>, Vec<String>) =
        errors.into_iter().map(|error| (error.reason, error.help)).unzip();
    Err(Failure::usage(reasons.join("; "), help.join("\n")))
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
