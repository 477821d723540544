//! Completion of jobs: of a run, and of jobs that stand alone.

use std::ffi::OsStr;

use clap_complete::ArgValueCompleter;
use windlass_engine::store::JobFilter;

use super::OFFERED_MAX;
use super::reading::{Candidate, database, offer};
use super::runs::runs;
use super::words;
use crate::arguments::RunOrJob;
use crate::database::Database;
use crate::find::{self, FoundRunOrJob};

/// A run, or a job as `j42` or `RUN/NAME`.
pub(crate) fn run_or_job() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let prefix = current.clone();
        offer(&prefix, move || {
            let database = database()?;
            match current.split_once('/') {
                Some((run, _name)) => {
                    let jobs = of_run(&database, run)?;
                    Some(jobs.into_iter().map(|(name, about)| (format!("{run}/{name}"), about)).collect())
                }
                None => {
                    let mut offered = runs(&database)?;
                    if current.starts_with('j') || offered.is_empty() {
                        offered.extend(alone(&database)?);
                    }
                    Some(offered)
                }
            }
        })
    })
}

/// A job that belongs to no run, as `j42`.
pub(crate) fn single_job() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| offer(&current.to_string_lossy(), || alone(&database()?)))
}

/// The name of a job of the run that another argument names.
pub(crate) fn job_of_run(run: &'static str) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        offer(&current.to_string_lossy(), move || {
            let run = words::value_of(run).unwrap_or_else(|| "latest".to_owned());
            of_run(&database()?, &run)
        })
    })
}

/// The names of the jobs of a run, in the order of the file.
fn of_run(database: &Database, run: &str) -> Option<Vec<Candidate>> {
    let FoundRunOrJob::Run(run) = find::run_or_job(database, &run.parse::<RunOrJob>().ok()?).ok()? else {
        return None;
    };
    // All jobs of the run: a prefix may leave out the first thousand.
    let jobs = database.ask(|store| store.jobs().of_run(run.id)).ok()?;
    Some(jobs.into_iter().filter_map(|job| Some((job.name?, job.status.to_string()))).collect())
}

fn alone(database: &Database) -> Option<Vec<Candidate>> {
    let newest = JobFilter::newest(10 * OFFERED_MAX as i64);
    let jobs = database.ask(|store| store.jobs().list(&newest)).ok()?.rows;
    let alone = jobs.into_iter().filter(|job| job.run_id.is_none());
    Some(alone.map(|job| (format!("j{}", job.id), format!("{} {}", job.kind, job.status))).collect())
}
