//! From what a person typed to the run or job that is meant.

use windlass::store::{Job, Registration, Run, RunFilter};

use crate::address::Address;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;

/// The least likeness of a name for it to be suggested.
const MIN_LIKENESS: f64 = 0.7;

/// A run or a job.
#[derive(Debug)]
pub(crate) enum Target {
    Run(Run),
    Job(Job),
}

/// The run or job at an address; a plain number is a run, or else a job.
pub(crate) fn run_or_job(database: &Database, address: &Address) -> Result<Target, Failure> {
    match address {
        Address::Number(number) => {
            if let Some(run) = database.ask(|store| store.runs().find(*number))? {
                return Ok(Target::Run(run));
            }
            match database.ask(|store| store.jobs().find(*number))? {
                Some(job) => Ok(Target::Job(job)),
                None => Err(no_run(database, format!("there is no run {number} and no job {number}"))?),
            }
        }
        Address::Job(job_id) => job_by_id(database, *job_id).map(Target::Job),
        Address::Named { run_id, name } => job_by_name(database, *run_id, name).map(Target::Job),
    }
}

/// The job at an address; a plain number is a job's id.
pub(crate) fn job(database: &Database, address: &Address) -> Result<Job, Failure> {
    match address {
        Address::Number(job_id) | Address::Job(job_id) => job_by_id(database, *job_id),
        Address::Named { run_id, name } => job_by_name(database, *run_id, name),
    }
}

/// The run of a number.
pub(crate) fn run(database: &Database, run_id: i64) -> Result<Run, Failure> {
    match database.ask(|store| store.runs().find(run_id))? {
        Some(run) => Ok(run),
        None => Err(no_run(database, format!("run {run_id} does not exist"))?),
    }
}

/// The job of a run with a name, or the nearest name there is.
pub(crate) fn job_by_name(database: &Database, run_id: i64, name: &str) -> Result<Job, Failure> {
    if let Some(job) = database.ask(|store| store.jobs().find_by_name(run_id, name))? {
        return Ok(job);
    }
    let run = run(database, run_id)?;
    let jobs = database.ask(|store| store.jobs().of_run(run.id))?;
    let nearest = nearest(name, jobs.iter().filter_map(|job| job.name.as_deref()));
    let hint = nearest.map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default();
    Err(Failure::not_found(
        format!("run {run_id} has no job `{name}`{hint}"),
        format!("`{}` lists its jobs", database.hint(&format!("inspect {run_id}"))),
    ))
}

/// The names of the jobs that a job needs.
pub(crate) fn needs(database: &Database, job: &Job) -> Result<Vec<String>, Failure> {
    let parents = database.ask(|store| store.jobs().parents(job.id))?;
    Ok(parents.iter().map(describe::job_name).collect())
}

fn job_by_id(database: &Database, job_id: i64) -> Result<Job, Failure> {
    database.ask(|store| store.jobs().find(job_id))?.ok_or_else(|| {
        Failure::not_found(
            format!("job j{job_id} does not exist in {}", database.place()),
            format!(
                "`{}` lists the newest; a job of a run is also RUN/NAME, for example 3/build",
                database.hint("jobs")
            ),
        )
    })
}

/// What to do when a run is not there depends on whether there are any.
fn no_run(database: &Database, message: String) -> Result<Failure, Failure> {
    let newest = database.ask(|store| store.runs().list(&RunFilter { limit: 1, ..RunFilter::default() }))?;
    let help = match newest.first() {
        Some(run) => format!("the newest is run {}; `{}` lists them", run.id, database.hint("runs")),
        None => format!("there are no runs yet; `{}` makes one", database.hint("run FILE")),
    };
    let message = format!("{message} in {}", database.place());
    Ok(Failure::NotFound { message, help })
}

/// The registered workflow of a name.
pub(crate) fn registration(database: &Database, name: &str) -> Result<Registration, Failure> {
    match database.ask(|store| store.registrations().get(name))? {
        Some(registration) => Ok(registration),
        None => Err(no_registration(database, name, "no workflow is registered under the name")?),
    }
}

/// What to say when no workflow is registered under a name.
pub(crate) fn no_registration(database: &Database, name: &str, reason: &str) -> Result<Failure, Failure> {
    let registrations = database.ask(|store| store.registrations().list())?;
    let near = nearest(name, registrations.iter().map(|registration| registration.name.as_str()));
    let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let help = match registrations.is_empty() {
        true => format!("none is registered yet; `{}` registers a file", database.hint("apply FILE")),
        false => format!("`{}` lists them", database.hint("workflows")),
    };
    Ok(Failure::not_found(format!("{reason} `{name}` in {}{hint}", database.place()), help))
}

/// The name that is most like another, if one is like it.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= MIN_LIKENESS)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name() {
        let names = ["build", "test", "deploy"];
        assert_eq!(nearest("buidl", names.into_iter()), Some("build"));
        assert_eq!(nearest("tests", names.into_iter()), Some("test"));
        assert_eq!(nearest("xyz", names.into_iter()), None);
    }
}
