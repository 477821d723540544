//! Completion of names in the database: workflows, queues, schedules, tags, kinds; and of states.

use std::ffi::OsStr;

use clap_complete::{ArgValueCompleter, CompletionCandidate};
use windlass_engine::store::{Count, JobFilter, Schedule};
use windlass_engine::{JobStatus, RunStatus};

use super::reading::{Candidate, database, offer, plain};
use super::runs::newest;
use super::{OFFERED_MAX, words};
use crate::config;
use crate::database::Database;

/// How many of the newest jobs are looked at for kinds.
const SEARCHED: i64 = 500;

fn from_database(read: fn(&Database) -> Option<Vec<Candidate>>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        offer(&current.to_string_lossy(), move || read(&database()?))
    })
}

/// A state of runs.
pub(crate) fn run_status() -> ArgValueCompleter {
    statuses(RunStatus::ALL.iter().map(|status| status.as_str().to_lowercase()).collect())
}

/// A state of jobs.
pub(crate) fn job_status() -> ArgValueCompleter {
    statuses(JobStatus::ALL.iter().map(|status| status.as_str().to_lowercase()).collect())
}

/// A state of jobs that are retried or deleted all at once.
pub(crate) fn dead_status() -> ArgValueCompleter {
    statuses(vec!["failed".to_owned(), "cancelled".to_owned()])
}

/// States are read in capitals too.
fn statuses(all: Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let prefix = current.to_string_lossy().to_lowercase();
        let matching = all.iter().filter(|status| status.starts_with(&prefix));
        matching.map(CompletionCandidate::new).collect()
    })
}

/// A workflow that is registered or has runs.
pub(crate) fn workflow() -> ArgValueCompleter {
    from_database(workflows)
}

pub(super) fn workflows(database: &Database) -> Option<Vec<Candidate>> {
    let registered = database.ask(|store| store.registrations().list()).ok()?;
    let mut names: Vec<Candidate> =
        registered.into_iter().map(|workflow| (workflow.name, "registered".to_owned())).collect();
    names.extend(newest(database)?.into_iter().map(|run| plain(run.workflow)));
    Some(names)
}

/// A queue.
pub(crate) fn queue() -> ArgValueCompleter {
    from_database(|database| {
        let queues = database.ask(|store| store.queues().list()).ok()?;
        let about = |pending: Count, paused: Option<i64>| match paused {
            Some(_paused_at) => "paused".to_owned(),
            None => format!("{pending} pending"),
        };
        Some(queues.into_iter().map(|queue| (queue.name, about(queue.pending, queue.paused_at))).collect())
    })
}

/// A schedule, by its full name.
pub(crate) fn schedule() -> ArgValueCompleter {
    from_database(|database| {
        let schedules = database.ask(|store| store.schedules().list()).ok()?;
        let about = |schedule: &Schedule| match schedule.paused_at {
            Some(_paused_at) => "paused".to_owned(),
            None => String::new(),
        };
        Some(schedules.iter().map(|schedule| (schedule.key(), about(schedule))).collect())
    })
}

/// A tag of runs.
pub(crate) fn tag() -> ArgValueCompleter {
    from_database(|database| {
        let tags = database.ask(|store| store.runs().tags(OFFERED_MAX as i64)).ok()?;
        Some(tags.into_iter().map(plain).collect())
    })
}

/// A kind of jobs.
pub(crate) fn kind() -> ArgValueCompleter {
    from_database(|database| {
        let jobs = database.ask(|store| store.jobs().list(&JobFilter::newest(SEARCHED))).ok()?.rows;
        Some(
            ["shell", "http"]
                .into_iter()
                .map(plain)
                .chain(jobs.into_iter().map(|job| plain(job.kind)))
                .collect(),
        )
    })
}

/// A target of notifications, from the configuration file.
pub(crate) fn notify_target() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        offer(&current.to_string_lossy(), || {
            let config = config::read_here(words::global()?.config().as_deref()).ok()?;
            Some(config.notify.into_iter().map(|target| plain(target.name)).collect())
        })
    })
}
