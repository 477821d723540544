//! Finds a run or a job.

use windlass_engine::store::{Job, Run, RunFilter};

use super::nearest_name;
use crate::arguments::RunOrJob;
use crate::database::Database;
use crate::error::Failure;

/// A run or a job, as it is in the database.
#[derive(Debug)]
pub(crate) enum FoundRunOrJob {
    Run(Box<Run>),
    Job(Box<Job>),
}

/// The run or job of an argument. A plain number is a run, or else a job.
pub(crate) fn run_or_job(database: &Database, argument: &RunOrJob) -> Result<FoundRunOrJob, Failure> {
    match argument {
        RunOrJob::Number(number) => {
            if let Some(run) = database.ask(|store| store.runs().find(*number))? {
                return Ok(FoundRunOrJob::Run(Box::new(run)));
            }
            match database.ask(|store| store.jobs().find(*number))? {
                Some(job) => Ok(FoundRunOrJob::Job(Box::new(job))),
                None => Err(no_run(database, format!("there is no run {number} and no job {number}"))?),
            }
        }
        RunOrJob::Job(job_id) => job_by_id(database, *job_id).map(Box::new).map(FoundRunOrJob::Job),
        RunOrJob::Named { run_id, name } => {
            job_by_name(database, *run_id, name).map(Box::new).map(FoundRunOrJob::Job)
        }
    }
}

/// The job of an argument. A plain number is the id of a job.
pub(crate) fn job(database: &Database, argument: &RunOrJob) -> Result<Job, Failure> {
    match argument {
        RunOrJob::Number(job_id) | RunOrJob::Job(job_id) => job_by_id(database, *job_id),
        RunOrJob::Named { run_id, name } => job_by_name(database, *run_id, name),
    }
}

/// The run with this number.
pub(crate) fn run(database: &Database, run_id: i64) -> Result<Run, Failure> {
    match database.ask(|store| store.runs().find(run_id))? {
        Some(run) => Ok(run),
        None => Err(no_run(database, format!("run {run_id} does not exist"))?),
    }
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
fn no_run(database: &Database, message: String) -> Result<Failure, Failure> {
    let newest = database.ask(|store| store.runs().list(&RunFilter::newest(1)))?;
    let help = match newest.rows.first() {
        Some(run) => format!("the newest is run {}; `{}` lists all runs", run.id, database.hint("runs")),
        None => format!("there are no runs yet; `{}` starts one", database.hint("run FILE")),
    };
    let message = format!("{message} in {}", database.address());
    Ok(Failure::NotFound { message, help })
}
