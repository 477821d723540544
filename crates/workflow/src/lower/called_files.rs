//! Checks the calls of a file to workflows in other files, when these have been read.

use std::collections::{BTreeMap, HashMap};

use super::calls;
use crate::include;
use crate::kinds::Action;
use crate::model::{RunHandler, Workflow};
use crate::report::{Finding, Findings, Report, Severity};
use crate::source::Source;
use crate::tree::{Entry, Value};

/// The workflows of a file that was read without errors, and the files that they call.
#[derive(Debug, Clone, Copy)]
pub struct FileCalls<'a> {
    /// The text of the file.
    pub source: &'a Source,
    /// The workflow of the file, and after it those in its `workflows`.
    pub own: &'a [&'a Workflow],
    /// The list to which the calls of these workflows point.
    pub all: &'a [Workflow],
    /// The files that can't be read, as the calls name them, with the reasons.
    pub unreadable: &'a BTreeMap<String, String>,
}

impl FileCalls<'_> {
    /// Checks that the called files were read, and that the params of the calls fit.
    ///
    /// # Errors
    /// All errors of these calls.
    pub fn check(&self) -> Result<(), Report> {
        let mut findings = Findings::default();
        let root = include::read(self.source, &mut Findings::default()).unwrap_or_default();
        let locals = table(&root, "workflows");
        let mut own = self.own.iter();
        if let Some(workflow) = own.next() {
            self.check_workflow(workflow, &root, &mut findings);
        }
        for workflow in own {
            self.check_workflow(workflow, table(locals, &workflow.name), &mut findings);
        }
        match findings.is_empty() {
            true => Ok(()),
            false => Err(Report::of_source(self.source, Severity::Error, findings)),
        }
    }

    /// `keys` are those of the workflow in the file.
    fn check_workflow(&self, workflow: &Workflow, keys: &[Entry<'_>], findings: &mut Findings) {
        let mut entries: HashMap<(Option<RunHandler>, &str), &Entry<'_>> = HashMap::new();
        for handler in [None].into_iter().chain(RunHandler::ALL.map(Some)) {
            let jobs = table(keys, handler.map_or("jobs", RunHandler::key));
            entries.extend(jobs.iter().map(|job| ((handler, job.key.as_ref()), job)));
        }
        for job in &workflow.jobs {
            let Action::Call(call) = &job.action else { continue };
            let Some(entry) = entries.get(&(job.handler, job.name.as_str())) else { continue };
            if !call.is_of_file() {
                continue;
            }
            if let Some(reason) = self.unreadable.get(&call.workflow) {
                let message = format!("the workflow `{}` can't be read", call.workflow.escape_debug());
                findings.push(
                    Finding::new(calls::span_of_called(entry), message)
                        .label(reason)
                        .help("a path starts in the folder of the file that has the job"),
                );
            } else if let Some(called) = call.called.and_then(|index| self.all.get(index)) {
                calls::check_params(call, &called.params, entry, findings);
            }
        }
    }
}

/// The entries of a table among others; none if it is not there.
fn table<'a, 's>(entries: &'a [Entry<'s>], key: &str) -> &'a [Entry<'s>] {
    let found = entries.iter().find(|entry| entry.key == key);
    match found.map(|entry| &entry.node.value) {
        Some(Value::Table(entries)) => entries,
        Some(
            Value::Text(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Null
            | Value::Broken
            | Value::List(_),
        )
        | None => &[],
    }
}
