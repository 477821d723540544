//! `windlass schedule show`: everything about one schedule.

use clap::Args;
use windlass::store::{Occurrence, OccurrenceStatus, Run, Schedule, ScheduleOrigin};

use super::{next, select, words};
use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::output::Output;
use crate::style::{BOLD, headline, paint, printable};
use crate::table::{self, Column, Table};
use crate::time;
use crate::views::{InspectedSchedule, OccurrenceView, RunView, ScheduleView, UnstartedView};

/// Runs and occurrences shown of each kind.
const SHOWN: i64 = 5;
/// Columns of a reason in a pipe.
const REASON_COLUMNS: usize = 300;

/// Show a schedule: its rule, its last runs, what waits and what was skipped, the next times
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE")]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule show nightly
  windlass schedule show report/weekly -o json | jq .skipped";

/// What was read of a schedule.
struct RetryState {
    schedule: Schedule,
    runs: Vec<Run>,
    waiting_count: i64,
    waiting: Vec<Occurrence>,
    skipped: Vec<Occurrence>,
}

pub(super) fn execute(global: &GlobalOptions, args: &ShowArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = select::find(&database, &args.name)?;
    let id = schedule.id;
    let retry_state = RetryState {
        runs: database.ask(|store| store.runs().of_schedule(id, SHOWN))?,
        waiting_count: database.ask(|store| store.schedules().waiting_occurrences(id))?,
        waiting: database.ask(|store| store.schedules().occurrences(id, OccurrenceStatus::Waiting, SHOWN))?,
        skipped: database.ask(|store| store.schedules().occurrences(id, OccurrenceStatus::Skipped, SHOWN))?,
        schedule,
    };
    let coming = next::coming(&retry_state.schedule, usize::try_from(SHOWN).unwrap_or(0))?;
    let runs = retry_state.runs.iter().map(|run| RunView::read(&database, run));
    let view = InspectedSchedule {
        schedule: ScheduleView::new(&retry_state.schedule),
        runs: runs.collect::<Result<_, Failure>>()?,
        waiting_count: retry_state.waiting_count,
        waiting: retry_state.waiting.iter().map(UnstartedView::new).collect(),
        skipped: retry_state.skipped.iter().map(UnstartedView::new).collect(),
        next: coming
            .iter()
            .map(|occurrence| OccurrenceView::new(occurrence, &retry_state.schedule))
            .collect(),
    };
    Output { format: global.output }.object(&view, |_| {
        let mut text = heading(&retry_state.schedule);
        text.push_str(&runs_table(&retry_state));
        text.push_str(&waiting(&retry_state));
        text.push_str(&skipped(&retry_state));
        if retry_state.schedule.is_active() && !coming.is_empty() {
            text.push_str(&format!("\n{}\n", next::table(&retry_state.schedule, &coming)));
        }
        text.push_str(&next_step(&retry_state.schedule, global));
        text
    })
}

fn heading(schedule: &Schedule) -> String {
    let now_ms = time::now_ms();
    let definition = &schedule.definition;
    let local = |at_ms: i64| words::local(at_ms, definition);
    let params = describe::params(&serde_json::Value::Object(definition.params.clone()).to_string());
    let jitter = Some(definition.jitter_ms).filter(|jitter_ms| *jitter_ms > 0);
    let lines = describe::retry_state(&[
        ("rule", Some(printable(&words::rule(definition)).into_owned())),
        ("timezone", Some(definition.timezone.clone())),
        ("start", definition.start_ms.map(local)),
        ("end", definition.end_ms.map(local)),
        ("overlap", Some(words::overlap(definition.overlap).to_owned())),
        ("catchup", Some(words::catchup_rule(definition))),
        ("jitter", jitter.map(|jitter_ms| format!("up to {}", time::duration(jitter_ms)))),
        ("params", Some(params).filter(|params| !params.is_empty())),
        (
            "written",
            Some(match schedule.origin {
                ScheduleOrigin::File => "in the file of its workflow".to_owned(),
                ScheduleOrigin::Command => "on the command line".to_owned(),
            }),
        ),
    ]);
    let title = paint(BOLD, format!("schedule {}", printable(&schedule.key())));
    let state = words::state(schedule, now_ms);
    format!("{}\n{lines}", format!("{title}  {state}").trim_end())
}

fn runs_table(retry_state: &RetryState) -> String {
    if retry_state.runs.is_empty() {
        return "\nit has no runs yet\n".to_owned();
    }
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("RUN"),
        Column::Left("FOR"),
        Column::Left("SOURCE"),
        Column::Left("STATUS"),
        Column::Left("CREATED"),
        Column::Right("TIME"),
    ]);
    for run in &retry_state.runs {
        let scheduled_for =
            run.scheduled_for.map(|at_ms| words::local(at_ms, &retry_state.schedule.definition));
        table.row([
            run.id.to_string(),
            scheduled_for.unwrap_or_default(),
            run.source.map(|source| source.as_str().to_owned()).unwrap_or_default(),
            describe::run_state(run, false),
            time::relative(run.created_at, now_ms),
            describe::span(run.started_at, run.finished_at, now_ms),
        ]);
    }
    format!("\n{}\n", table.render(table::stdout_width()))
}

fn waiting(retry_state: &RetryState) -> String {
    if retry_state.waiting.is_empty() {
        return String::new();
    }
    let title = match retry_state.waiting_count {
        1 => "1 occurrence waits".to_owned(),
        count => format!("{count} occurrences wait, the earliest first"),
    };
    let now_ms = time::now_ms();
    let line = |occurrence: &Occurrence| {
        let at = words::local(occurrence.scheduled_for, &retry_state.schedule.definition);
        match (occurrence.source, occurrence.start_after > now_ms) {
            (windlass::RunSource::Backfill, _) => format!("  {at}  of a backfill\n"),
            (_, true) => format!("  {at}  starts {}\n", time::relative(occurrence.start_after, now_ms)),
            (_, false) => format!("  {at}  until an earlier run is over\n"),
        }
    };
    let lines: String = retry_state.waiting.iter().map(line).collect();
    format!("\n{title}\n{lines}")
}

fn skipped(retry_state: &RetryState) -> String {
    if retry_state.skipped.is_empty() {
        return String::new();
    }
    let line = |occurrence: &Occurrence| {
        let at = words::local(occurrence.scheduled_for, &retry_state.schedule.definition);
        let reason = headline(occurrence.reason.as_deref().unwrap_or_default(), REASON_COLUMNS);
        format!("  {at}  {reason}\n")
    };
    let lines: String = retry_state.skipped.iter().map(line).collect();
    format!("\nskipped, the latest first\n{lines}")
}

/// What to do when it fires nothing.
fn next_step(schedule: &Schedule, global: &GlobalOptions) -> String {
    let key = quoted(&schedule.key());
    let workflow = quoted(&schedule.workflow);
    if !schedule.is_registered {
        return format!("\n`{}` registers its workflow\n", global.hint("apply FILE"));
    }
    if schedule.paused_at.is_some() {
        return format!("\n`{}` ends the pause\n", global.hint(&format!("schedule resume {key}")));
    }
    if schedule.workflow_paused_at.is_some() {
        return format!("\n`{}` ends the pause\n", global.hint(&format!("workflows resume {workflow}")));
    }
    String::new()
}
