//! Finds a run or a job.

use windlass_engine::store::{Job, Run, RunFilter};

use super::nearest_name;
use crate::arguments::{RunAddress, RunOrJob};
use crate::database::Database;
use crate::error::Failure;
use crate::pages;
use crate::shell_words::quoted;

/// How many of the newest runs are searched for a workflow with a similar name.
const NAMES_MAX: i64 = 100;
/// How many of them are searched for a job with that name.
const JOBS_OF_RUNS_MAX: usize = 10;

/// A run or a job, as it is in the database.
#[derive(Debug)]
pub(crate) enum FoundRunOrJob {
    Run(Box<Run>),
    Job(Box<Job>),
}

/// The run or job of an argument.
pub(crate) fn run_or_job(database: &Database, argument: &RunOrJob) -> Result<FoundRunOrJob, Failure> {
    match argument {
        RunOrJob::Run(address) => named_run(database, address).map(Box::new).map(FoundRunOrJob::Run),
        RunOrJob::Job(job_id) => job_by_id(database, *job_id).map(Box::new).map(FoundRunOrJob::Job),
        RunOrJob::Named { run, name } => {
            if let Some(address) = argument.as_run()
                && newest(database, run)?.is_none()
                && let Some(run) = newest(database, &address)?
            {
                return Ok(FoundRunOrJob::Run(Box::new(run)));
            }
            let run_id = named_run(database, run)?.id;
            job_by_name(database, run_id, name).map(Box::new).map(FoundRunOrJob::Job)
        }
    }
}

/// The job of an argument, or of a run and a name as two arguments.
pub(crate) fn job(database: &Database, argument: &RunOrJob, name: Option<&str>) -> Result<Job, Failure> {
    match (run_or_job(database, argument)?, name) {
        (FoundRunOrJob::Run(run), Some(name)) => job_by_name(database, run.id, name),
        (FoundRunOrJob::Job(job), None) => Ok(*job),
        (FoundRunOrJob::Run(run), None) => Err(Failure::usage(
            format!("`{argument}` is a run, but a job is needed"),
            format!(
                "write the job as {}/NAME or as its id; `{}` lists the jobs of the run",
                run.id,
                database.hint(&format!("inspect {}", run.id))
            ),
        )),
        (FoundRunOrJob::Job(_), Some(name)) => Err(Failure::usage(
            format!("`{argument}` is a job, and `{name}` names another job"),
            format!("write RUN {name} or RUN/{name}, for example 3/{name} or latest/{name}"),
        )),
    }
}

/// The run of an argument.
pub(crate) fn named_run(database: &Database, address: &RunAddress) -> Result<Run, Failure> {
    let (workflow, back) = match address {
        RunAddress::Number(run_id) => return run(database, *run_id),
        RunAddress::Newest { workflow, back } => (workflow.as_deref(), *back),
    };
    if let Some(run) = newest(database, address)? {
        return Ok(run);
    }
    if back > 0
        && newest(database, &RunAddress::Newest { workflow: workflow.map(str::to_owned), back: 0 })?.is_some()
    {
        let of = workflow.map(|workflow| format!(" of workflow `{workflow}`")).unwrap_or_default();
        let list =
            workflow.map_or("runs".to_owned(), |workflow| format!("runs --workflow {}", quoted(workflow)));
        return Err(Failure::not_found(
            format!(
                "there is no run {address} in {}: fewer than {} runs{of} are there",
                database.address(),
                back + 1
            ),
            format!("`{}` lists them", database.hint(&list)),
        ));
    }
    match workflow {
        Some(workflow) => Err(no_run_of(database, workflow)?),
        None => Err(no_run(database, "there is no run".to_owned(), "")?),
    }
}

/// The newest run of an address that has no number, if it exists. Runs that jobs have started don't count.
fn newest(database: &Database, address: &RunAddress) -> Result<Option<Run>, Failure> {
    let RunAddress::Newest { workflow, back } = address else { return Ok(None) };
    let filter = RunFilter { workflow: workflow.clone(), ..RunFilter::default() };
    let runs = pages::read(None, back.saturating_add(1), |cursor| {
        database.ask(|store| store.runs().list(&RunFilter { cursor, ..filter.clone() }))
    })?;
    match runs.get(*back as usize) {
        Some(summary) => database.ask(|store| store.runs().find(summary.id)),
        None => Ok(None),
    }
}

/// The run with this number.
pub(crate) fn run(database: &Database, run_id: i64) -> Result<Run, Failure> {
    if let Some(run) = database.ask(|store| store.runs().find(run_id))? {
        return Ok(run);
    }
    let job = database.ask(|store| store.jobs().find(run_id))?;
    let hint = job.map(|_job| format!("; did you mean job j{run_id}?")).unwrap_or_default();
    Err(no_run(database, format!("run {run_id} does not exist"), &hint)?)
}

/// The job of a run with this name.
pub(crate) fn job_by_name(database: &Database, run_id: i64, name: &str) -> Result<Job, Failure> {
    // A shell takes brackets for a pattern, so an item may be written as `load.3`.
    let as_item = name
        .rsplit_once('.')
        .filter(|(_group, index)| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
        .map(|(group, index)| format!("{group}[{index}]"));
    for name in std::iter::once(name).chain(as_item.as_deref()) {
        if let Some(job) = database.ask(|store| store.jobs().find_by_name(run_id, name))? {
            return Ok(job);
        }
    }
    let run = run(database, run_id)?;
    let jobs = database.ask(|store| store.jobs().of_run(run.id))?;
    let nearest = nearest_name(name, jobs.iter().filter_map(|job| job.name.as_deref()));
    let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
    Err(Failure::not_found(
        format!("run {run_id} has no job `{name}`{hint}"),
        format!("`{}` lists its jobs", database.hint(&format!("inspect {run_id}"))),
    ))
}

fn job_by_id(database: &Database, job_id: i64) -> Result<Job, Failure> {
    database.ask(|store| store.jobs().find(job_id))?.ok_or_else(|| {
        Failure::not_found(
            format!("job j{job_id} does not exist in {}", database.address()),
            format!(
                "`{}` lists the newest jobs; you can also write RUN/NAME, for example 3/build",
                database.hint("jobs")
            ),
        )
    })
}

/// The failure when a run does not exist. Its next step depends on whether any run exists.
fn no_run(database: &Database, message: String, hint: &str) -> Result<Failure, Failure> {
    let newest = database.ask(|store| store.runs().list(&RunFilter::newest(1)))?;
    let help = match newest.rows.first() {
        Some(run) => format!("the newest is run {}; `{}` lists all runs", run.id, database.hint("runs")),
        None => format!("there are no runs yet; `{}` starts one", database.hint("run FILE")),
    };
    let message = format!("{message} in {}{hint}", database.address());
    Ok(Failure::NotFound { message, help })
}

/// The failure when a workflow has no run. The name may be mistyped, or that of a job of the newest run.
fn no_run_of(database: &Database, workflow: &str) -> Result<Failure, Failure> {
    let message = format!("there is no run of a workflow `{workflow}`");
    let newest = database.ask(|store| store.runs().list(&RunFilter::newest(NAMES_MAX)))?.rows;
    for run in newest.iter().take(JOBS_OF_RUNS_MAX) {
        if database.ask(|store| store.jobs().find_by_name(run.id, workflow))?.is_some() {
            let hint = format!("; did you mean the job {}/{workflow}?", run.id);
            return no_run(database, message, &hint);
        }
    }
    let registrations = database.ask(|store| store.registrations().list())?;
    if registrations.iter().any(|registration| registration.name == workflow) {
        return Ok(Failure::not_found(
            format!("the workflow `{workflow}` has no run yet in {}", database.address()),
            format!("`{}` starts one", database.hint(&format!("run {}", quoted(workflow)))),
        ));
    }
    let near = nearest_name(workflow, newest.iter().map(|run| run.workflow.as_str()));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    no_run(database, message, &hint)
}
