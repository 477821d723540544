//! The details of one job.

use windlass_engine::store::{Attempt, Job, LogLine, Rounds};
use windlass_engine::{JobStatus, RunStatus};
use windlass_views::{InspectedJob, names_of_needed_jobs};
use windlass_workflow::kinds::{self, SummaryText};

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::shell_words::quoted;
use crate::text::failed_jobs::TAIL_LINES;
use crate::text::style::{BOLD, headline, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::{runs_and_jobs, time, values};

/// How many lines of a script are shown.
const MAX_SCRIPT_LINES: usize = 20;
/// How many columns of a payload, an output or an error are shown.
const VALUE_COLUMNS: usize = 1_000;

/// A job with its attempts and its last output.
pub(super) struct JobDetails {
    job: Job,
    needs: Vec<String>,
    rounds: Option<Rounds>,
    attempts: Vec<Attempt>,
    tail: Vec<LogLine>,
    /// The run that its last attempt has started.
    child: Option<(i64, String, RunStatus)>,
}

impl JobDetails {
    pub(super) fn read(database: &Database, mut job: Job) -> Result<JobDetails, Failure> {
        database.ask(|store| store.jobs().collect_outputs(std::slice::from_mut(&mut job)))?;
        let needs = database.ask(|store| names_of_needed_jobs(store, &job))?;
        let rounds = database.ask(|store| store.jobs().rounds(job.id))?;
        let attempts = database.ask(|store| store.jobs().attempts(job.id))?;
        let tail = database.ask(|store| store.logs().last(job.id, job.attempt, TAIL_LINES))?;
        let child = match job.kind.as_str() {
            "workflow" => database.ask(|store| store.runs().started_by(job.id, job.attempt))?,
            _ => None,
        };
        Ok(JobDetails { job, needs, rounds, attempts, tail, child })
    }

    pub(super) fn view(&self) -> InspectedJob {
        InspectedJob::new(&self.job, self.needs.clone(), self.rounds.as_ref(), &self.attempts)
    }
}

/// The details as text.
pub(super) fn text(details: &JobDetails, global: &GlobalOptions) -> String {
    let now_ms = time::now_ms();
    let mut text = heading(details, now_ms);
    if !details.attempts.is_empty() {
        text.push_str(&format!("\n{}\n", attempts_table(&details.attempts)));
    }
    if !details.tail.is_empty() {
        text.push_str(&format!("\nlast output of attempt {}\n", details.job.attempt));
        text.push_str(&runs_and_jobs::output_tail(details.tail.iter().map(|line| line.text.as_str())));
    }
    text.push_str(&next_steps(&details.job, global));
    text
}

fn heading(details: &JobDetails, now_ms: i64) -> String {
    let job = &details.job;
    let show = |text: &Option<String>| text.as_ref().map(|text| headline(text, VALUE_COLUMNS));
    let not_empty = |text: String| Some(text).filter(|text| !text.is_empty());
    let work = work(job);
    let is_waiting = job.status == JobStatus::Scheduled;
    let priority = if job.priority == 0 { String::new() } else { format!(", priority {}", job.priority) };
    let lines = values::fields(&[
        ("kind", Some(printable(&job.kind).into_owned())),
        ("queue", Some(format!("{}{priority}", printable(&job.queue)))),
        ("needs", not_empty(details.needs.join(", "))),
        (work.0, Some(work.1)),
        ("item", job.item.as_deref().map(|item| values::value(item, VALUE_COLUMNS))),
        ("at a time", job.max_parallel.map(|most| format!("{most} items"))),
        ("run", details.child.as_ref().map(|(run_id, _workflow, status)| format!("{run_id}, {status}"))),
        ("attempts", not_empty(attempts(job))),
        ("rounds", details.rounds.as_ref().filter(|_| job.attempt > 0).map(rounds)),
        ("created", Some(time::instant(job.created_at, now_ms))),
        ("not before", Some(time::instant(job.execute_after, now_ms)).filter(|_| is_waiting)),
        (
            "deadline",
            job.deadline_at.filter(|_| job.finished_at.is_none()).map(|at| time::instant(at, now_ms)),
        ),
        ("ready", job.ready_at.map(|at| time::instant(at, now_ms))),
        ("started", job.started_at.map(|at| time::instant(at, now_ms))),
        ("finished", job.finished_at.map(|at| time::instant(at, now_ms))),
        ("took", not_empty(runs_and_jobs::job_span(job, now_ms))),
        ("error", show(&job.last_error)),
        ("output", job.output.as_deref().map(|output| values::value(output, VALUE_COLUMNS))),
    ]);
    let id = format!("job j{}", job.id);
    let name = job.run_id.map(|_| format!("  {}", printable(&job.label()))).unwrap_or_default();
    format!("{}{name}  {}\n{lines}", paint(BOLD, id), runs_and_jobs::job_state(job))
}

/// What the job does. For a kind that is not built in, it is the payload.
fn work(job: &Job) -> (&'static str, String) {
    let Some(summary) = kinds::summarize_payload(&job.kind, &job.payload) else {
        return ("payload", values::value(&job.payload, VALUE_COLUMNS));
    };
    let text = match summary.text {
        SummaryText::Lines(text) => {
            let mut lines = text.trim_end().lines().take(MAX_SCRIPT_LINES + 1);
            let mut shown: Vec<String> =
                lines.by_ref().take(MAX_SCRIPT_LINES).map(|line| printable(line).into_owned()).collect();
            shown.extend(lines.next().map(|_| "…".to_owned()));
            shown.join("\n              ")
        }
        SummaryText::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            headline(&words.join(" "), VALUE_COLUMNS)
        }
    };
    (summary.label, text)
}

/// The number of attempts, failures and interruptions.
fn attempts(job: &Job) -> String {
    if job.attempt == 0 {
        return String::new();
    }
    let mut text = job.attempt.to_string();
    if job.failures > 0 {
        text.push_str(&format!(", failed {} of {}", job.failures, job.max_attempts));
    }
    if job.interruptions > 0 {
        text.push_str(&format!(", interrupted {} of {}", job.interruptions, job.max_interruptions));
    }
    text
}

/// How many rounds of a job that repeats have ended without what it repeats for.
fn rounds(rounds: &Rounds) -> String {
    format!("{} of at most {}, until {}", rounds.ended, rounds.max, headline(&rounds.until, VALUE_COLUMNS))
}

fn attempts_table(attempts: &[Attempt]) -> String {
    let mut table = Table::new(&[
        Column::Right("ATTEMPT"),
        Column::Left("OUTCOME"),
        Column::Left("STARTED"),
        Column::Right("TIME"),
        Column::Right("WORKER"),
        Column::Shrinking("ERROR"),
    ]);
    for attempt in attempts {
        table.row([
            attempt.attempt.to_string(),
            attempt.outcome.clone(),
            attempt.started_at.map(time::day_and_clock).unwrap_or_default(),
            runs_and_jobs::span(attempt.started_at, Some(attempt.finished_at), 0),
            attempt.worker_id.map(|id| id.to_string()).unwrap_or_default(),
            headline(attempt.error.as_deref().unwrap_or_default(), VALUE_COLUMNS),
        ]);
    }
    table.render(table::stdout_width())
}

fn next_steps(job: &Job, global: &GlobalOptions) -> String {
    let logs = global.hint(&format!("logs j{}", job.id));
    let why = global.hint(&format!("why j{}", job.id));
    match (job.status.is_terminal(), job.attempt) {
        (false, _) => format!("\n`{why}` explains its state\n"),
        (true, 0) => String::new(),
        (true, _) => format!("\n`{logs}` shows all output\n"),
    }
}
