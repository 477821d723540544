//! Everything about one run.

use std::collections::HashMap;

use windlass::store::{Job, JobCounts, Run, Schedule};
use windlass::workflow::schedule::local_text;
use windlass::{JobStatus, RunSource};

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::failures::{self, TAIL_LINES};
use crate::style::{BOLD, headline, paint, printable};
use crate::table::{self, Column, Table};
use crate::time;
use crate::views::{InspectedRun, JobView, RunView};

/// Columns of an output or error in a pipe.
const RESULT_COLUMNS: usize = 300;

/// What was read of a run.
pub(crate) struct RetryState {
    run: Run,
    jobs: Vec<Job>,
    counts: JobCounts,
    interrupted: bool,
    /// The schedule that made it.
    schedule: Option<Schedule>,
    /// The names of the jobs that a job needs, by its id.
    needs: HashMap<i64, Vec<String>>,
}

impl RetryState {
    pub(crate) fn read(database: &Database, run: Run) -> Result<RetryState, Failure> {
        let jobs = database.ask(|store| store.jobs().of_run(run.id))?;
        let counts = database.ask(|store| store.runs().job_counts(run.id))?;
        let interrupted = database.ask(|store| store.runs().is_interrupted(run.id))?;
        let schedule = match run.schedule_id {
            Some(schedule_id) => Some(database.ask(|store| store.schedules().get(schedule_id))?),
            None => None,
        };
        let names: HashMap<i64, String> = jobs.iter().map(|job| (job.id, describe::job_name(job))).collect();
        let mut needs: HashMap<i64, Vec<String>> = HashMap::new();
        for (parent_id, child_id) in database.ask(|store| store.jobs().dependencies(run.id))? {
            let parent = names.get(&parent_id).cloned().unwrap_or_else(|| format!("j{parent_id}"));
            needs.entry(child_id).or_default().push(parent);
        }
        Ok(RetryState { run, jobs, counts, interrupted, schedule, needs })
    }

    pub(crate) fn view(&self) -> InspectedRun {
        let view = |job: &Job| JobView::new(job, self.needs.get(&job.id).cloned().unwrap_or_default());
        InspectedRun {
            run: RunView::new(&self.run, &self.counts, self.interrupted),
            jobs: self.jobs.iter().map(view).collect(),
        }
    }
}

/// The retry state for people.
pub(super) fn text(
    database: &Database,
    retry_state: &RetryState,
    global: &GlobalOptions,
) -> Result<String, Failure> {
    let now_ms = time::now_ms();
    let mut text = heading(retry_state, now_ms);
    text.push('\n');
    text.push_str(&jobs_table(retry_state, now_ms));
    text.push('\n');
    let failed: Vec<&Job> = retry_state.jobs.iter().filter(|job| job.status == JobStatus::Failed).collect();
    text.push_str(&failures::text(database, &failed, TAIL_LINES)?);
    text.push_str(&next_steps(retry_state, global));
    Ok(text)
}

fn heading(retry_state: &RetryState, now_ms: i64) -> String {
    let run = &retry_state.run;
    let title = format!("run {}", run.id);
    let took = describe::span(run.started_at, run.finished_at, now_ms);
    let params = describe::params(&run.params);
    let lines = describe::retry_state(&[
        ("schedule", retry_state.schedule.as_ref().map(|schedule| occasion(run, schedule))),
        ("created", Some(describe::instant(run.created_at, now_ms))),
        ("started", run.started_at.map(|at| describe::instant(at, now_ms))),
        ("finished", run.finished_at.map(|at| describe::instant(at, now_ms))),
        (
            if run.finished_at.is_some() { "took" } else { "so far" },
            Some(took).filter(|took| !took.is_empty()),
        ),
        (
            "deadline",
            run.deadline_at.filter(|_| run.finished_at.is_none()).map(|at| describe::instant(at, now_ms)),
        ),
        ("params", Some(params).filter(|params| !params.is_empty())),
        ("key", run.run_key.as_deref().map(|key| printable(key).into_owned())),
        ("folder", run.dir.as_deref().map(|dir| printable(dir).into_owned())),
        ("jobs", Some(describe::counts(&retry_state.counts))),
    ]);
    let state = describe::run_state(run, retry_state.interrupted);
    format!("{}  {}  {state}\n{lines}", paint(BOLD, title), printable(&run.workflow))
}

/// The schedule that made a run, and for which time.
fn occasion(run: &Run, schedule: &Schedule) -> String {
    let key = printable(&schedule.key()).into_owned();
    let time = run.scheduled_for.map(|at_ms| local_text(at_ms, &schedule.definition.timezone));
    match (run.source, time) {
        (Some(RunSource::Schedule), Some(time)) => format!("{key} for {time}"),
        (Some(source), Some(time)) => format!("{key} for {time} ({})", source.as_str()),
        (Some(source), None) => format!("{key} ({})", source.as_str()),
        (None, _) => key,
    }
}

fn jobs_table(retry_state: &RetryState, now_ms: i64) -> String {
    let mut table = Table::new(&[
        Column::Left("JOB"),
        Column::Left("STATUS"),
        Column::Right("START"),
        Column::Right("TIME"),
        Column::Right("ATTEMPTS"),
        Column::Yielding("RESULT"),
    ]);
    for job in &retry_state.jobs {
        table.row([
            describe::job_name(job),
            describe::job_state(job),
            start(retry_state.run.started_at, job.started_at),
            describe::job_span(job, now_ms),
            if job.attempt > 0 { job.attempt.to_string() } else { String::new() },
            result(job),
        ]);
    }
    table.render(table::stdout_width())
}

/// How long after the run's start the job's last attempt began.
fn start(run_started_at: Option<i64>, job_started_at: Option<i64>) -> String {
    match (run_started_at, job_started_at) {
        (Some(run), Some(job)) => format!("+{}", time::duration(job - run)),
        (None, _) | (_, None) => String::new(),
    }
}

/// What went wrong, or else what the job handed on.
fn result(job: &Job) -> String {
    match (&job.last_error, &job.output) {
        (Some(error), _) if job.status != JobStatus::Successful => headline(error, RESULT_COLUMNS),
        (_, Some(output)) => describe::value(output, RESULT_COLUMNS),
        (_, None) => String::new(),
    }
}

fn next_steps(retry_state: &RetryState, global: &GlobalOptions) -> String {
    let id = retry_state.run.id;
    if retry_state.interrupted {
        let resume = global.hint(&format!("resume {id}"));
        return format!("\nnobody executes it now; `{resume}` carries on\n");
    }
    if !retry_state.run.status.is_terminal() {
        return format!("\n`{}` follows its progress\n", global.hint(&format!("watch {id}")));
    }
    if retry_state.counts.of(JobStatus::Successful) == retry_state.counts.total() {
        return String::new();
    }
    let retry = global.hint(&format!("retry {id}"));
    let logs = global.hint(&format!("logs {id}"));
    format!("\n`{logs}` shows all output, `{retry}` executes again what did not succeed\n")
}
