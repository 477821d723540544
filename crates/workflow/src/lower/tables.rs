//! Finds the tables of a file that have jobs: `jobs`, and the handlers of the end of a run.

use std::collections::HashMap;

use super::top_level::TopLevel;
use crate::kinds;
use crate::model::RunHandler;
use crate::report::{Finding, Findings, Span};
use crate::tree::{Entry, Value};
use crate::{expect, limits};

/// A job in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct JobEntry<'t, 's> {
    pub(super) entry: &'t Entry<'s>,
    /// The table that has the job. Nothing for `jobs`.
    pub(super) handler: Option<RunHandler>,
}

/// The entries of `jobs`, and after them those of the handlers. There is at least one job, and there are at most
/// [`limits::JOBS`] jobs and handlers.
pub(super) fn read<'t, 's>(top: &TopLevel<'t, 's>, findings: &mut Findings) -> Option<Vec<JobEntry<'t, 's>>> {
    let jobs = jobs(top, findings);
    let mut entries: Vec<JobEntry<'t, 's>> =
        jobs.unwrap_or_default().iter().map(|entry| JobEntry { entry, handler: None }).collect();
    for (handler, table) in &top.handlers {
        let expected = "a table of names and jobs";
        for entry in expect::table(table, usize::MAX, expected, findings).unwrap_or_default() {
            entries.push(JobEntry { entry, handler: Some(*handler) });
        }
    }
    jobs?;
    if entries.len() > limits::JOBS {
        let span = top.jobs.map_or(0..0, |jobs| jobs.key_span.clone());
        findings.push(
            Finding::new(span, format!("the workflow has {} jobs", entries.len()))
                .label(format!("the limit is {}", limits::JOBS))
                .help("split the workflow into several"),
        );
        return None;
    }
    check_names(&entries, findings);
    Some(entries)
}

fn jobs<'t, 's>(top: &TopLevel<'t, 's>, findings: &mut Findings) -> Option<&'t [Entry<'s>]> {
    let help = || {
        format!(
            "define one under `jobs`: a table with the job's name, and in it {}",
            kinds::action_keys_text()
        )
    };
    let Some(jobs) = top.jobs else {
        findings.push(Finding::without_position("the workflow has no jobs").help(help()));
        return None;
    };
    let Value::Table(entries) = &jobs.node.value else {
        expect::wrong_type_help(&jobs.node, "`jobs`", "a table of names and jobs", help(), findings);
        return None;
    };
    if entries.is_empty() {
        findings.push(Finding::new(jobs.key_span.clone(), "the workflow has no jobs").help(help()));
        return None;
    }
    Some(entries)
}

/// Reports handlers that have the name of another job. Two jobs of one table with the same name are an error of the syntax,
/// which was reported.
fn check_names(entries: &[JobEntry<'_, '_>], findings: &mut Findings) {
    if entries.iter().all(|job| job.handler.is_none()) {
        return;
    }
    let mut seen: HashMap<&str, (Option<RunHandler>, Span)> = HashMap::new();
    for JobEntry { entry, handler } in entries {
        match seen.get(entry.key.as_ref()) {
            Some((other, first)) if other != handler => findings.push(
                Finding::new(entry.key_span.clone(), format!("two jobs have the name `{}`", entry.key))
                    .related(first.clone(), "the first one")
                    .help("the names of all jobs and handlers of a file must differ; rename one of them"),
            ),
            Some(_) => (),
            None => {
                seen.insert(entry.key.as_ref(), (*handler, entry.key_span.clone()));
            }
        }
    }
}

/// The table of a job, for messages.
pub(super) fn table_name(handler: Option<RunHandler>) -> &'static str {
    handler.map_or("jobs", RunHandler::key)
}
