//! Completion of runs: their numbers, `latest`, and the names of their workflows.

use clap_complete::ArgValueCompleter;
use windlass_engine::store::{RunFilter, RunSummary};

use super::OFFERED_MAX;
use super::reading::{Candidate, database, offer};
use crate::database::Database;
use crate::text::time;

/// How many of the newest runs are looked at for names of workflows.
const SEARCHED: i64 = 200;

/// A run.
pub(crate) fn run() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &std::ffi::OsStr| {
        offer(&current.to_string_lossy(), || runs(&database()?))
    })
}

/// The newest runs, and the ways to name them. A number that is begun stands for a run, so nothing else begins with it.
pub(super) fn runs(database: &Database) -> Option<Vec<Candidate>> {
    let newest = newest(database)?;
    let now_ms = time::now_ms();
    let about = |run: &RunSummary| {
        format!("{} {}, {}", run.workflow, run.status, time::relative(run.created_at, now_ms))
    };
    let mut offered = Vec::new();
    if let Some(run) = newest.first() {
        offered.push(("latest".to_owned(), about(run)));
    }
    // Half of the places, so that names have some too.
    offered.extend(newest.iter().take(OFFERED_MAX / 2).map(|run| (run.id.to_string(), about(run))));
    let names = newest.iter().map(|run| (run.workflow.clone(), "the newest run of the workflow".to_owned()));
    offered.extend(names);
    offered.extend(newest.iter().skip(OFFERED_MAX / 2).map(|run| (run.id.to_string(), about(run))));
    Some(offered)
}

/// The newest runs.
pub(super) fn newest(database: &Database) -> Option<Vec<RunSummary>> {
    Some(database.ask(|store| store.runs().list(&RunFilter::newest(SEARCHED))).ok()?.rows)
}
