//! `windlass schedule show`: shows one schedule.

use clap::Args;
use windlass_engine::store::{Occurrence, OccurrenceStatus, Run, RunFilter, Schedule, ScheduleOrigin};

use super::{coming_times, find_schedule::find_schedule};
use windlass_views::{InspectedSchedule, OccurrenceView, RunView, ScheduleView, UnstartedView, overlap_name};

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::text::style::{BOLD, headline, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::{runs_and_jobs, schedules, time, values};

/// How many runs, waiting and skipped occurrences are shown.
const SHOWN: i64 = 5;
/// How many columns of a reason a pipe gets.
const REASON_COLUMNS: usize = 300;

/// Show a schedule: rule, last runs, waiting and skipped occurrences, next times
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The schedule
    #[arg(value_name = "SCHEDULE", add = complete::schedule())]
    name: String,
}

const EXAMPLES: &str = "\
Examples:
  windlass schedule show nightly
  windlass schedule show report/weekly -o json | jq .skipped";

/// A schedule with its runs and unstarted occurrences.
struct ScheduleDetails {
    schedule: Schedule,
    runs: Vec<Run>,
    waiting_count: i64,
    waiting: Vec<Occurrence>,
    skipped: Vec<Occurrence>,
}

pub(super) fn execute(global: &GlobalOptions, args: &ShowArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let schedule = find_schedule(&database, &args.name)?;
    let id = schedule.id;
    let of_schedule = RunFilter { schedule_id: Some(id), ..RunFilter::newest(SHOWN) };
    let details = ScheduleDetails {
        runs: database.ask(|store| store.runs().list_full(&of_schedule))?.rows,
        waiting_count: database.ask(|store| store.schedules().waiting_occurrences(id))?,
        waiting: database.ask(|store| store.schedules().occurrences(id, OccurrenceStatus::Waiting, SHOWN))?,
        skipped: database.ask(|store| store.schedules().occurrences(id, OccurrenceStatus::Skipped, SHOWN))?,
        schedule,
    };
    let coming = coming_times::from_now(&details.schedule, usize::try_from(SHOWN).unwrap_or(0))?;
    let view = InspectedSchedule {
        schedule: ScheduleView::new(&details.schedule),
        runs: database.ask(|store| RunView::read_all(store, &details.runs))?,
        waiting_count: details.waiting_count,
        waiting: details.waiting.iter().map(UnstartedView::new).collect(),
        skipped: details.skipped.iter().map(UnstartedView::new).collect(),
        next: coming.iter().map(|occurrence| OccurrenceView::new(occurrence, &details.schedule)).collect(),
    };
    Output { format: global.output }.object(&view, |_| {
        let mut text = heading(&details.schedule);
        text.push_str(&runs_table(&details));
        text.push_str(&waiting(&details));
        text.push_str(&skipped(&details));
        if details.schedule.is_active() && !coming.is_empty() {
            text.push_str(&format!("\n{}\n", coming_times::table(&details.schedule, &coming)));
        }
        text.push_str(&next_step(&details.schedule, global));
        text
    })
}

fn heading(schedule: &Schedule) -> String {
    let now_ms = time::now_ms();
    let definition = &schedule.definition;
    let local = |at_ms: i64| schedules::local_time(at_ms, definition);
    let params = values::params(&serde_json::Value::Object(definition.params.clone()).to_string());
    let jitter = Some(definition.jitter_ms).filter(|jitter_ms| *jitter_ms > 0);
    let lines = values::fields(&[
        ("rule", Some(printable(&schedules::rule(definition)).into_owned())),
        ("timezone", Some(definition.timezone.clone())),
        ("start", definition.start_ms.map(local)),
        ("end", definition.end_ms.map(local)),
        ("overlap", Some(overlap_name(definition.overlap).to_owned())),
        ("catchup", Some(schedules::catchup_rule(definition))),
        ("jitter", jitter.map(|jitter_ms| format!("up to {}", time::duration(jitter_ms)))),
        ("params", Some(params).filter(|params| !params.is_empty())),
        (
            "defined",
            Some(match schedule.origin {
                ScheduleOrigin::File => "in the file of its workflow".to_owned(),
                ScheduleOrigin::Command => "on the command line".to_owned(),
            }),
        ),
    ]);
    let title = paint(BOLD, format!("schedule {}", printable(&schedule.key())));
    let state = schedules::state(schedule, now_ms);
    format!("{}\n{lines}", format!("{title}  {state}").trim_end())
}

fn runs_table(details: &ScheduleDetails) -> String {
    if details.runs.is_empty() {
        return "\nthe schedule has no runs yet\n".to_owned();
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
    for run in &details.runs {
        let scheduled_for =
            run.scheduled_for.map(|at_ms| schedules::local_time(at_ms, &details.schedule.definition));
        table.row([
            run.id.to_string(),
            scheduled_for.unwrap_or_default(),
            run.source.map(|source| source.as_str().to_owned()).unwrap_or_default(),
            runs_and_jobs::run_state(run, false),
            time::relative(run.created_at, now_ms),
            runs_and_jobs::run_span(run, now_ms),
        ]);
    }
    format!("\n{}\n", table.render(table::stdout_width()))
}

fn waiting(details: &ScheduleDetails) -> String {
    if details.waiting.is_empty() {
        return String::new();
    }
    let title = match details.waiting_count {
        1 => "1 occurrence waits".to_owned(),
        count => format!("{count} occurrences wait, the earliest first"),
    };
    let now_ms = time::now_ms();
    let line = |occurrence: &Occurrence| {
        let at = schedules::local_time(occurrence.scheduled_for, &details.schedule.definition);
        match (occurrence.source, occurrence.start_after > now_ms) {
            (windlass_engine::RunSource::Backfill, _) => format!("  {at}  from a backfill\n"),
            (_, true) => format!("  {at}  starts {}\n", time::relative(occurrence.start_after, now_ms)),
            (_, false) => format!("  {at}  until an earlier run has ended\n"),
        }
    };
    let lines: String = details.waiting.iter().map(line).collect();
    format!("\n{title}\n{lines}")
}

fn skipped(details: &ScheduleDetails) -> String {
    if details.skipped.is_empty() {
        return String::new();
    }
    let line = |occurrence: &Occurrence| {
        let at = schedules::local_time(occurrence.scheduled_for, &details.schedule.definition);
        let reason = headline(occurrence.reason.as_deref().unwrap_or_default(), REASON_COLUMNS);
        format!("  {at}  {reason}\n")
    };
    let lines: String = details.skipped.iter().map(line).collect();
    format!("\nskipped, the latest first\n{lines}")
}

/// The next step if the schedule does not fire.
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
