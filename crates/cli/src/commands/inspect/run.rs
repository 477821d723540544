//! The details of one run.

use std::collections::HashMap;

use windlass_engine::store::{Job, JobCounts, Run, RunDefinition, Schedule};
use windlass_engine::{JobStatus, RunSource, RunStatus};
use windlass_views::{InspectedRun, RunView, needed_jobs_of_run, workspace_path};
use windlass_workflow::schedule::local_text;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::text::failed_jobs::{self, TAIL_LINES};
use crate::text::style::{BOLD, headline, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::{runs_and_jobs, time, values};

/// How many columns of an output or an error a pipe gets.
const RESULT_COLUMNS: usize = 300;

/// A run with its jobs.
pub(super) struct RunDetails {
    run: Run,
    jobs: Vec<Job>,
    counts: JobCounts,
    interrupted: bool,
    /// The schedule that started the run.
    schedule: Option<Schedule>,
    /// The path of the workspace, unless it was removed.
    workspace: Option<String>,
    /// The names of the jobs that a job needs, by its id.
    needs: HashMap<i64, Vec<String>>,
    /// The job that has started the run.
    parent: Option<Job>,
    /// What the run gives, or why that has no value.
    outputs: Option<Result<serde_json::Value, String>>,
    /// Its definitions, in order.
    definitions: Vec<RunDefinition>,
}

impl RunDetails {
    pub(super) fn read(database: &Database, run: Run) -> Result<RunDetails, Failure> {
        let mut jobs = database.ask(|store| store.jobs().of_run(run.id))?;
        database.ask(|store| store.jobs().collect_outputs(&mut jobs))?;
        let counts = database.ask(|store| store.runs().job_counts(run.id))?;
        let interrupted = database.ask(|store| store.runs().is_interrupted(run.id))?;
        let schedule = match run.schedule_id {
            Some(schedule_id) => Some(database.ask(|store| store.schedules().get(schedule_id))?),
            None => None,
        };
        let needs = database.ask(|store| needed_jobs_of_run(store, run.id, &jobs))?;
        let parent = match run.parent_job_id {
            Some(job_id) => database.ask(|store| store.jobs().find(job_id))?,
            None => None,
        };
        let outputs = database.ask(|store| store.runs().outputs(run.id))?;
        let workspace = workspace_path(database.ask(|store| store.runs().workspace(run.id))?);
        let definitions = database.ask(|store| store.runs().definitions(run.id))?;
        Ok(RunDetails {
            run,
            jobs,
            counts,
            interrupted,
            schedule,
            workspace,
            needs,
            parent,
            outputs,
            definitions,
        })
    }

    pub(super) fn view(&self) -> InspectedRun {
        let run = RunView::new(&self.run, &self.counts, self.interrupted);
        let outputs = self.outputs.clone().and_then(Result::ok);
        InspectedRun::new(run, outputs, self.workspace.clone(), &self.definitions, &self.jobs, &self.needs)
    }
}

/// The details as text.
pub(super) fn text(
    database: &Database,
    details: &RunDetails,
    global: &GlobalOptions,
) -> Result<String, Failure> {
    let now_ms = time::now_ms();
    let mut text = heading(details, now_ms);
    text.push('\n');
    text.push_str(&definitions_table(&details.definitions, now_ms));
    text.push_str(&jobs_table(details, now_ms));
    text.push('\n');
    let failed: Vec<&Job> = details.jobs.iter().filter(|job| job.status == JobStatus::Failed).collect();
    text.push_str(&failed_jobs::text(database, &failed, TAIL_LINES)?);
    text.push_str(&next_steps(details, global));
    Ok(text)
}

fn heading(details: &RunDetails, now_ms: i64) -> String {
    let run = &details.run;
    let title = format!("run {}", run.id);
    let took = runs_and_jobs::run_span(run, now_ms);
    let params = values::params(&run.params);
    let lines = values::fields(&[
        ("schedule", details.schedule.as_ref().map(|schedule| occasion(run, schedule))),
        ("parent", details.parent.as_ref().map(|parent| printable(&parent.label()).into_owned())),
        ("by", run.started_by.as_deref().map(|name| printable(name).into_owned())),
        ("created", Some(time::instant(run.created_at, now_ms))),
        ("started", run.started_at.map(|at| time::instant(at, now_ms))),
        ("finished", run.finished_at.map(|at| time::instant(at, now_ms))),
        (
            if run.finished_at.is_some() { "took" } else { "so far" },
            Some(took).filter(|took| !took.is_empty()),
        ),
        ("before", Some(before_retry(run)).filter(|before| !before.is_empty())),
        (
            "deadline",
            run.deadline_at.filter(|_| run.finished_at.is_none()).map(|at| time::instant(at, now_ms)),
        ),
        ("from", only_source(&details.definitions)),
        ("params", Some(params).filter(|params| !params.is_empty())),
        ("key", run.run_key.as_deref().map(|key| printable(key).into_owned())),
        ("concurrency", run.concurrency.as_ref().map(concurrency)),
        ("tags", Some(run.tags.join(", ")).filter(|tags| !tags.is_empty())),
        ("folder", run.dir.as_deref().map(|dir| printable(dir).into_owned())),
        ("outputs", details.outputs.as_ref().map(outputs)),
        ("workspace", details.workspace.as_deref().map(|path| printable(path).into_owned())),
        ("jobs", Some(runs_and_jobs::job_counts(&details.counts))),
    ]);
    let state = runs_and_jobs::run_state(run, details.interrupted);
    format!("{}  {}  {state}\n{lines}", paint(BOLD, title), printable(&run.workflow))
}

/// The concurrency key of a run, and how many runs with it may be active.
fn concurrency((key, limit): &(String, i64)) -> String {
    format!("{}, {} at a time", printable(key), values::counted(*limit, "run", "runs"))
}

/// Where the definition of a run came from, if it has one. Several are listed.
fn only_source(definitions: &[RunDefinition]) -> Option<String> {
    match definitions {
        [only] => source_of(only),
        _several => None,
    }
}

/// Where a definition came from.
fn source_of(definition: &RunDefinition) -> Option<String> {
    let registered = definition.version.map(|version| format!("version {version}"));
    let file = definition.file.as_ref().map(|file| match &file.only {
        Some(only) => format!("{} (only {})", printable(&file.named), printable(&only.jobs.join(", "))),
        None => printable(&file.named).into_owned(),
    });
    file.or(registered)
}

/// The definitions of a run that had several, in order.
fn definitions_table(definitions: &[RunDefinition], now_ms: i64) -> String {
    if definitions.len() < 2 {
        return String::new();
    }
    let mut table = Table::new(&[
        Column::Right("DEFINITION"),
        Column::Left("VERB"),
        Column::Left("AT"),
        Column::Shrinking("FROM"),
    ]);
    for definition in definitions {
        table.row([
            definition.number.to_string(),
            definition.origin.as_str().to_owned(),
            time::instant(definition.pinned_at, now_ms),
            source_of(definition).unwrap_or_default(),
        ]);
    }
    format!("{}\n\n", table.render(table::stdout_width()).trim_end())
}

/// How long a run took before its last retry.
fn before_retry(run: &Run) -> String {
    match run.ran_before_ms {
        ..=0 => String::new(),
        before_ms => format!("{} of it before the last retry", time::duration(before_ms)),
    }
}

/// The outputs of a run, or why they have no value.
fn outputs(outputs: &Result<serde_json::Value, String>) -> String {
    match outputs {
        Ok(value) => values::value(&value.to_string(), RESULT_COLUMNS),
        Err(reason) => headline(reason, RESULT_COLUMNS),
    }
}

/// The schedule that started a run, and the time of the occurrence.
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

fn jobs_table(details: &RunDetails, now_ms: i64) -> String {
    let mut table = Table::new(&[
        Column::Left("JOB"),
        Column::Left("STATUS"),
        Column::Right("START"),
        Column::Right("TIME"),
        Column::Right("ATTEMPTS"),
        Column::Shrinking("RESULT"),
    ]);
    let mut row = |job: &Job| {
        table.row([
            runs_and_jobs::job_name(job),
            runs_and_jobs::job_state(job),
            start(details.run.started_at, job.started_at),
            runs_and_jobs::job_span(job, now_ms),
            if job.attempt > 0 { job.attempt.to_string() } else { String::new() },
            result(job),
        ]);
    };
    let items = Items::of(&details.jobs);
    for job in details.jobs.iter().filter(|job| job.group_id.is_none()) {
        row(job);
        items.shown(job).for_each(&mut row);
    }
    let mut text = table.render(table::stdout_width());
    text.extend(items.hidden(&details.jobs));
    text
}

/// How many items of a job with `for_each` are listed. Of a larger one only those that failed or run are.
const MAX_ITEMS_LISTED: usize = 20;

/// The items of the jobs with `for_each`, by the id of that job.
struct Items<'j> {
    of_groups: HashMap<i64, Vec<&'j Job>>,
}

impl<'j> Items<'j> {
    fn of(jobs: &'j [Job]) -> Items<'j> {
        let mut of_groups: HashMap<i64, Vec<&Job>> = HashMap::new();
        for job in jobs {
            if let Some(group_id) = job.group_id {
                of_groups.entry(group_id).or_default().push(job);
            }
        }
        Items { of_groups }
    }

    /// The items of a job that are listed.
    fn shown(&self, job: &Job) -> impl Iterator<Item = &'j Job> {
        let items = self.of_groups.get(&job.id).map(Vec::as_slice).unwrap_or_default();
        let is_large = items.len() > MAX_ITEMS_LISTED;
        let is_shown = move |item: &&&Job| {
            !is_large || [JobStatus::Failed, JobStatus::Cancelled, JobStatus::Running].contains(&item.status)
        };
        items.iter().filter(is_shown).take(MAX_ITEMS_LISTED).copied()
    }

    /// A line for each job whose items are not all listed.
    fn hidden(&self, jobs: &[Job]) -> Vec<String> {
        let is_large =
            |job: &&Job| self.of_groups.get(&job.id).is_some_and(|items| items.len() > MAX_ITEMS_LISTED);
        jobs.iter()
            .filter(is_large)
            .map(|job| {
                let mut counts = JobCounts::default();
                self.of_groups[&job.id].iter().for_each(|item| counts.add_job(item));
                let (name, counts) = (runs_and_jobs::job_name(job), runs_and_jobs::job_counts(&counts));
                format!("items of {name}: {counts}\n")
            })
            .collect()
    }
}

/// The time from the start of the run to the start of the job's last attempt.
fn start(run_started_at: Option<i64>, job_started_at: Option<i64>) -> String {
    match (run_started_at, job_started_at) {
        // A retry starts the run anew, and keeps the jobs that succeeded before.
        (Some(run), Some(job)) if job >= run => format!("+{}", time::duration(job - run)),
        (None | Some(_), _) => String::new(),
    }
}

/// The error of the job, or else its output.
fn result(job: &Job) -> String {
    match (&job.last_error, &job.output) {
        (Some(error), _) if job.status != JobStatus::Successful => headline(error, RESULT_COLUMNS),
        (_, Some(output)) => values::value(output, RESULT_COLUMNS),
        (_, None) => String::new(),
    }
}

fn next_steps(details: &RunDetails, global: &GlobalOptions) -> String {
    let id = details.run.id;
    // The run at the top has the runs that its jobs have started.
    let top = details.run.root_run_id.unwrap_or(id);
    if details.interrupted {
        let resume = global.hint(&format!("resume {top}"));
        return format!("\nno worker executes this run; `{resume}` continues it\n");
    }
    if !details.run.status.is_terminal() {
        return format!("\n`{}` follows its progress\n", global.hint(&format!("watch {id}")));
    }
    if details.counts.of(JobStatus::Successful) == details.counts.total() {
        return String::new();
    }
    let logs = global.hint(&format!("logs {id}"));
    if details.run.status == RunStatus::Successful {
        // What failed was allowed to, and what was skipped was not needed.
        return format!("\n`{logs}` shows all output\n");
    }
    let retry = global.hint(&format!("retry {top}"));
    format!("\n`{logs}` shows all output, `{retry}` reruns failed and skipped jobs\n")
}
