//! Everything about one job.

use serde_json::Value;
use windlass::JobStatus;
use windlass::store::{Attempt, Job, LogLine};

use crate::cli::{GlobalOptions, quoted};
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::failures::TAIL_LINES;
use crate::lookup;
use crate::style::{BOLD, headline, paint, printable};
use crate::table::{self, Column, Table};
use crate::time;
use crate::views::InspectedJob;

/// Lines of a script that are shown.
const MAX_SCRIPT_LINES: usize = 20;
/// Columns of the payload, an output or an error.
const VALUE_COLUMNS: usize = 1_000;

/// What was read of a job.
pub(super) struct RetryState {
    job: Job,
    needs: Vec<String>,
    attempts: Vec<Attempt>,
    tail: Vec<LogLine>,
}

impl RetryState {
    pub(super) fn read(database: &Database, job: Job) -> Result<RetryState, Failure> {
        let needs = lookup::needs(database, &job)?;
        let attempts = database.ask(|store| store.jobs().attempts(job.id))?;
        let tail = database.ask(|store| store.logs().last(job.id, job.attempt, TAIL_LINES))?;
        Ok(RetryState { job, needs, attempts, tail })
    }

    pub(super) fn view(&self) -> InspectedJob {
        InspectedJob::new(&self.job, self.needs.clone(), &self.attempts)
    }
}

/// The retry state for people.
pub(super) fn text(retry_state: &RetryState, global: &GlobalOptions) -> String {
    let now_ms = time::now_ms();
    let mut text = heading(retry_state, now_ms);
    if !retry_state.attempts.is_empty() {
        text.push_str(&format!("\n{}\n", attempts_table(&retry_state.attempts)));
    }
    if !retry_state.tail.is_empty() {
        text.push_str(&format!("\nlast output of attempt {}\n", retry_state.job.attempt));
        text.push_str(&describe::tail(retry_state.tail.iter().map(|line| line.text.as_str())));
    }
    text.push_str(&next_steps(&retry_state.job, global));
    text
}

fn heading(retry_state: &RetryState, now_ms: i64) -> String {
    let job = &retry_state.job;
    let show = |text: &Option<String>| text.as_ref().map(|text| headline(text, VALUE_COLUMNS));
    let not_empty = |text: String| Some(text).filter(|text| !text.is_empty());
    let work = work(job);
    let is_waiting = job.status == JobStatus::Scheduled;
    let priority = if job.priority == 0 { String::new() } else { format!(", priority {}", job.priority) };
    let lines = describe::retry_state(&[
        ("kind", Some(printable(&job.kind).into_owned())),
        ("queue", Some(format!("{}{priority}", printable(&job.queue)))),
        ("needs", not_empty(retry_state.needs.join(", "))),
        (work.0, Some(work.1)),
        ("attempts", not_empty(attempts(job))),
        ("created", Some(describe::instant(job.created_at, now_ms))),
        ("not before", Some(describe::instant(job.execute_after, now_ms)).filter(|_| is_waiting)),
        ("started", job.started_at.map(|at| describe::instant(at, now_ms))),
        ("finished", job.finished_at.map(|at| describe::instant(at, now_ms))),
        ("took", not_empty(describe::job_span(job, now_ms))),
        ("error", show(&job.last_error)),
        ("output", job.output.as_deref().map(|output| describe::value(output, VALUE_COLUMNS))),
    ]);
    let id = format!("job j{}", job.id);
    let name = job.run_id.map(|_| format!("  {}", printable(&job.label()))).unwrap_or_default();
    format!("{}{name}  {}\n{lines}", paint(BOLD, id), describe::job_state(job))
}

/// What it is to do: the script or command of a shell job, the payload of any other.
fn work(job: &Job) -> (&'static str, String) {
    let payload: Value = serde_json::from_str(&job.payload).unwrap_or_default();
    if let Some(script) = payload.get("run").and_then(Value::as_str) {
        let mut lines = script.trim_end().lines().take(MAX_SCRIPT_LINES + 1);
        let mut text: Vec<String> =
            lines.by_ref().take(MAX_SCRIPT_LINES).map(|line| printable(line).into_owned()).collect();
        text.extend(lines.next().map(|_| "…".to_owned()));
        return ("script", text.join("\n              "));
    }
    match payload.get("command") {
        Some(Value::Array(words)) => {
            let words: Vec<String> = words.iter().map(|word| quoted(&describe::plain_value(word))).collect();
            ("command", headline(&words.join(" "), VALUE_COLUMNS))
        }
        Some(_) | None => ("payload", describe::value(&job.payload, VALUE_COLUMNS)),
    }
}

/// Attempts, and what came of them.
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

fn attempts_table(attempts: &[Attempt]) -> String {
    let mut table = Table::new(&[
        Column::Right("ATTEMPT"),
        Column::Left("OUTCOME"),
        Column::Left("STARTED"),
        Column::Right("TIME"),
        Column::Right("WORKER"),
        Column::Yielding("ERROR"),
    ]);
    for attempt in attempts {
        table.row([
            attempt.attempt.to_string(),
            attempt.outcome.clone(),
            attempt.started_at.map(time::day_and_clock).unwrap_or_default(),
            describe::span(attempt.started_at, Some(attempt.finished_at), 0),
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
        (false, _) => format!("\n`{why}` tells why it stands there\n"),
        (true, 0) => String::new(),
        (true, _) => format!("\n`{logs}` shows all output\n"),
    }
}
