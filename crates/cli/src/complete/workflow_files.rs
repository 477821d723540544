//! Completion of workflow files, and of what they have: jobs and parameters.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::ValueCompleter;
use clap_complete::{ArgValueCompleter, CompletionCandidate, PathCompleter};
use windlass_workflow::Workflow;

use super::names::workflows;
use super::reading::{Candidate, database, offer};
use super::runs::runs;
use super::words;
use crate::read_file::PathOrigin;
use crate::submission;
use crate::workflow_files::is_workflow_file;

/// A workflow file, or a folder.
pub(crate) fn workflow_file() -> ArgValueCompleter {
    ArgValueCompleter::new(files)
}

/// A workflow file, or the name of a registered workflow.
pub(crate) fn workflow_file_or_name() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let registered = || {
            let names = workflows(&database()?)?;
            Some(names.into_iter().filter(|(_name, about)| about == "registered").collect())
        };
        let mut offered = files(current);
        offered.extend(offer(&current.to_string_lossy(), registered));
        offered
    })
}

/// A workflow file, or a run.
pub(crate) fn workflow_file_or_run() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut offered = files(current);
        offered.extend(offer(&current.to_string_lossy(), || runs(&database()?)));
        offered
    })
}

fn files(current: &OsStr) -> Vec<CompletionCandidate> {
    PathCompleter::any().filter(is_workflow_file).complete(current)
}

/// A job of the workflow that the verb names.
pub(crate) fn job_of_file() -> ArgValueCompleter {
    of_workflow(|workflow| {
        let about = |description: Option<String>| description.unwrap_or_default();
        workflow.jobs.into_iter().map(|job| (job.name, about(job.description))).collect()
    })
}

/// A parameter of the workflow that the verb names, with `=`.
pub(crate) fn param_of_file() -> ArgValueCompleter {
    of_workflow(|workflow| {
        let about = |description: Option<String>| description.unwrap_or_default();
        let params = workflow.params.into_iter();
        params.map(|param| (format!("{}=", param.name), about(param.description))).collect()
    })
}

fn of_workflow(list: fn(Workflow) -> Vec<Candidate>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        offer(&current.to_string_lossy(), move || Some(list(named_workflow(&words::value_of("workflow")?)?)))
    })
}

/// The workflow in a file, or the registered one. Nobody named the file on purpose yet, so pipes are not read.
fn named_workflow(name: &str) -> Option<Workflow> {
    if Path::new(name).is_file() {
        return submission::load(Path::new(name), PathOrigin::Found).ok();
    }
    let found = database()?.ask(|store| store.registrations().workflow(name)).ok()?;
    found.map(|(_registration, workflow)| workflow)
}
