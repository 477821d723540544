//! Warnings: what a valid file says, and its author can hardly have meant.
//!
//! A warning never stops a run. Each file of this folder has one sort. They read the tree of the file for the positions, and the
//! model for everything else.

mod artifacts;
mod ends;
mod outputs;
mod reads;
mod scripts;
mod spelling;
mod unused;
mod variables;

use std::collections::HashMap;

use crate::model::{Job, Workflow};
use crate::report::{Findings, Report, Severity};
use crate::source::Source;
use crate::tree::{Entry, Value};
use crate::{include, limits};
use reads::TextRead;

/// Finds the warnings of a file that [`crate::parse`] accepted as this workflow.
#[must_use]
pub fn warnings(source: &Source, workflow: &Workflow) -> Report {
    let mut findings = Findings::default();
    if let Some(root) = include::read(source, &mut findings) {
        let locals = entry(&root, "workflows").map(entries).unwrap_or_default();
        let mut workflows = vec![WorkflowInFile::of(&source.text, &root, workflow)];
        for local in locals {
            let named = workflow.workflows.iter().find(|called| called.name == local.key);
            workflows.extend(named.map(|called| WorkflowInFile::of(&source.text, entries(local), called)));
        }
        for workflow in &workflows {
            unused::params(workflow, &mut findings);
            outputs::check(workflow, &mut findings);
            ends::check(workflow, &mut findings);
            spelling::check(workflow, &mut findings);
            scripts::check(workflow, &mut findings);
            variables::check(workflow, &mut findings);
            artifacts::check(workflow, &mut findings);
        }
        // A file may include more than it uses.
        let own = |entry: &&Entry<'_>| !source.is_included(entry.key_span.start);
        let secrets = entry(&root, "secrets").map(entries).unwrap_or_default();
        unused::secrets(secrets.iter().filter(own), &workflows, &mut findings);
        unused::workflows(locals.iter().filter(own), &workflows, &mut findings);
    }
    Report::of_source(source, Severity::Warning, findings)
}

/// A workflow, and where its file has its parts: the workflow of the file, or one of its `workflows`.
struct WorkflowInFile<'a, 's> {
    root: &'a [Entry<'s>],
    workflow: &'a Workflow,
    jobs: Vec<JobInFile<'a, 's>>,
    /// What `env` and `defaults` of the workflow read, which belong to no single job.
    shared_reads: Vec<TextRead>,
}

/// A job, and where its file has it.
struct JobInFile<'a, 's> {
    job: &'a Job,
    entry: &'a Entry<'s>,
    /// What its templates and expressions read.
    reads: Vec<TextRead>,
}

impl<'a, 's> WorkflowInFile<'a, 's> {
    fn of(text: &'a str, root: &'a [Entry<'s>], workflow: &'a Workflow) -> WorkflowInFile<'a, 's> {
        let tables: HashMap<&'a str, HashMap<&'a str, &'a Entry<'s>>> = root
            .iter()
            .map(|table| {
                let by_name = entries(table).iter().map(|entry| (entry.key.as_ref(), entry));
                (table.key.as_ref(), by_name.collect())
            })
            .collect();
        let jobs = workflow.jobs.iter().filter_map(|job| {
            let table = tables.get(job.handler.map_or("jobs", |handler| handler.key()))?;
            let entry = *table.get(job.name.as_str())?;
            Some(JobInFile { job, entry, reads: reads::of_job(text, entry) })
        });
        let jobs: Vec<JobInFile<'a, 's>> = jobs.collect();
        WorkflowInFile { root, workflow, jobs, shared_reads: reads::of_workflow(text, root) }
    }

    /// Everything that the file reads.
    fn reads(&self) -> impl Iterator<Item = &TextRead> {
        self.jobs.iter().flat_map(|job| &job.reads).chain(&self.shared_reads)
    }

    /// The entries of a table of the file; none if it has no such table.
    fn table(&self, key: &str) -> &'a [Entry<'s>] {
        entry(self.root, key).map(entries).unwrap_or_default()
    }
}

impl<'a, 's> JobInFile<'a, 's> {
    /// The entry of a key that the job itself has, without `[defaults]`.
    fn key(&self, key: &str) -> Option<&'a Entry<'s>> {
        entry(entries(self.entry), key)
    }
}

fn entry<'a, 's>(entries: &'a [Entry<'s>], key: &str) -> Option<&'a Entry<'s>> {
    entries.iter().find(|entry| entry.key == key)
}

/// The entries of a table.
fn entries<'a, 's>(entry: &'a Entry<'s>) -> &'a [Entry<'s>] {
    match &entry.node.value {
        Value::Table(entries) => entries,
        Value::Text(_)
        | Value::Integer(_)
        | Value::Number(_)
        | Value::Boolean(_)
        | Value::Date(_)
        | Value::Null
        | Value::Broken
        | Value::List(_) => &[],
    }
}

/// Counts jobs and edges that were looked at, up to a limit for the whole file.
struct Budget {
    steps: usize,
}

impl Budget {
    fn new() -> Budget {
        Budget { steps: limits::WARNING_STEPS }
    }

    /// Whether so many more may be looked at.
    fn take(&mut self, steps: usize) -> bool {
        match self.steps.checked_sub(steps) {
            Some(rest) => {
                self.steps = rest;
                true
            }
            None => false,
        }
    }
}
