//! From the tree of a file to the model: one reading for both formats, all errors at once.

mod concurrency;
mod env;
pub(crate) mod expect;
mod job;
pub(crate) mod keys;
mod name;
mod needs;
mod outputs;
mod param;
mod requires;
mod retry;
mod schedule;
mod settings;
mod top;

pub(crate) use env::RESERVED as ENV_RESERVED;
use job::Draft;
pub use name::check_schedule_name;
pub(crate) use name::{Rule as NameRule, check as check_name};
use top::Top;
pub(crate) use top::name_fault as workflow_name_fault;

use crate::job_names::JobNames;
use crate::model::Workflow;
use crate::report::{Findings, Report};
use crate::source::Source;
use crate::tree::{self, Entry};

/// Reads a workflow file. What comes back is complete and checked; else the report has all errors of
/// the file.
pub fn parse(source: &Source) -> Result<Workflow, Report> {
    let mut findings = Findings::default();
    let tree = tree::read(source, &mut findings);
    let workflow = tree.as_deref().and_then(|root| workflow(source, root, &mut findings));
    match workflow {
        Some(workflow) if findings.is_empty() => Ok(workflow),
        _ => Err(Report::new(source.path.as_str(), &source.text, findings)),
    }
}

fn workflow(source: &Source, root: &[Entry<'_>], findings: &mut Findings) -> Option<Workflow> {
    let top = top::read(root, findings);
    let name = top::workflow_name(source, &top, findings);
    let entries = top::jobs(&top, findings)?;
    let names = JobNames::new(entries.iter().map(|entry| entry.key.as_ref()));
    let mut drafts: Vec<Draft<'_, '_>> =
        entries.iter().map(|entry| job::read(entry, &top.defaults, findings)).collect();
    requires::check_not_jobs(top.defaults.requires.as_deref().unwrap_or_default(), &names, findings);
    for draft in &drafts {
        requires::check_not_jobs(&draft.required, &names, findings);
    }
    needs::resolve(&mut drafts, &names, findings);
    let graph = needs::check_cycles(&drafts, findings);
    outputs::resolve(&source.text, &top, &mut drafts, &names, graph.as_ref(), findings);
    let schedules = schedule::read_all(&source.text, &top, &names, findings);
    let Top { description, timeout_ms, params, env, .. } = top;
    let jobs = drafts.into_iter().map(|draft| draft.job).collect();
    Some(Workflow { name, description, timeout_ms, params, env, schedules, jobs })
}
