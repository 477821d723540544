//! From the tree of a file to the model. Both formats are read by the same code, and all errors are reported at once.

mod called_files;
mod calls;
mod concurrency;
mod for_each;
mod job;
mod needs;
mod outputs;
mod param;
mod reads;
mod repeat;
mod requires;
mod retry;
mod schedule;
mod secret;
mod set_variables;
mod settings;
mod tables;
mod top_level;
mod trigger;
mod workspace;

pub use called_files::FileCalls;
use calls::Local;
use job::UnresolvedJob;
pub(crate) use param::read_all as read_params;
use reads::Declared;
use top_level::TopLevel;
pub(crate) use trigger::pattern_fault;

use crate::include;
use crate::job_names::JobNames;
use crate::keys::Table;
use crate::model::{Secret, Workflow};
use crate::report::{Findings, Report, Severity};
use crate::source::Source;
use crate::support::Accepted;
use crate::tree::Entry;

/// Reads and checks a workflow file.
///
/// # Errors
/// All errors of the file.
pub fn parse(source: &Source) -> Result<Workflow, Report> {
    parse_accepting(source, Accepted::Supported)
}

/// Reads and checks a workflow file that may use this. [`parse`] is for all files but those of tests.
///
/// # Errors
/// All errors of the file.
pub fn parse_accepting(source: &Source, accepted: Accepted) -> Result<Workflow, Report> {
    let mut findings = Findings::of(accepted);
    let tree = include::read(source, &mut findings);
    let workflow = tree.as_deref().and_then(|root| workflow(source, root, &mut findings));
    match workflow {
        Some(workflow) if findings.is_empty() => Ok(workflow),
        Some(_) | None => Err(Report::of_source(source, Severity::Error, findings)),
    }
}

fn workflow(source: &Source, root: &[Entry<'_>], findings: &mut Findings) -> Option<Workflow> {
    let top = top_level::read(root, Table::Workflow, findings);
    let name = top_level::workflow_name(source, &top, findings);
    let locals = calls::read_locals(top.workflows, findings);
    let secrets = top.secrets.clone();
    let file = FileParts { source, locals: &locals, secrets: &secrets };
    let mut read: Vec<Option<Workflow>> = Vec::with_capacity(locals.len());
    for local in &locals {
        let own_key = format!("{name}/{}", local.name);
        read.push(body(&file, local.name.to_owned(), own_key, &local.top, findings));
    }
    let mut workflow = body(&file, name.clone(), name, &top, findings)?;
    workflow.tags = top.tags;
    workflow.workflows = read.into_iter().collect::<Option<_>>()?;
    calls::check(&workflow, top.workflows, findings);
    Some(workflow)
}

/// What all workflows of a file share.
struct FileParts<'a> {
    source: &'a Source,
    locals: &'a [Local<'a, 'a>],
    secrets: &'a [Secret],
}

/// Reads the jobs of a workflow, and what refers to them. `own_key` is the concurrency key of its runs if it names none.
fn body<'a>(
    file: &FileParts<'a>,
    name: String,
    own_key: String,
    top: &'a TopLevel<'a, 'a>,
    findings: &mut Findings,
) -> Option<Workflow> {
    let entries = tables::read(top, findings)?;
    let names = JobNames::new(entries.iter().map(|job| job.entry.key.as_ref()));
    let secrets: Vec<&str> = file.secrets.iter().map(|secret| secret.name.as_str()).collect();
    let mut jobs: Vec<UnresolvedJob<'_, '_>> =
        entries.iter().map(|job| job::read(*job, &top.defaults, findings)).collect();
    for unresolved in &mut jobs {
        unresolved.job.secrets =
            secret::resolve(unresolved.secrets, &unresolved.job.action, &secrets, findings);
    }
    requires::check_not_jobs(top.defaults.settings.requires.as_deref().unwrap_or_default(), &names, findings);
    for job in &jobs {
        requires::check_not_jobs(&job.requires, &names, findings);
    }
    needs::resolve(&mut jobs, &names, findings);
    calls::resolve(&mut jobs, &entries, file.locals, findings);
    let graph = needs::check_cycles(&jobs, findings);
    let text = &file.source.text;
    let declared = Declared { file: text, top, names: &names, secrets: &secrets };
    reads::resolve(&declared, &mut jobs, graph.as_ref(), findings);
    let schedules = schedule::read_all(text, top, &names, findings);
    let triggers = trigger::read_all(text, &name, top, &names, findings);
    Some(Workflow {
        name,
        description: top.description.clone(),
        timeout_ms: top.timeout_ms,
        params: top.params.clone(),
        env: top.env.clone(),
        schedules,
        triggers,
        tags: Vec::new(),
        secrets: file.secrets.to_vec(),
        outputs: top.outputs.expressions.clone(),
        workflows: Vec::new(),
        workspace: top.workspace,
        concurrency: top.concurrency.clone().map(|concurrency| concurrency.of_workflow(own_key)),
        jobs: jobs.into_iter().map(|unresolved| unresolved.job).collect(),
    })
}
