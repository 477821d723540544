//! Finds the jobs that the templates and expressions of each job read. A job that is read must be an ancestor of the reader,
//! so that it is over when the reader starts.

use super::job::UnresolvedJob;
use super::tables::table_name;
use super::top_level::TopLevel;
use crate::expression::{Form, HasItems, HasWorkspace, JobField, Reader, Scope};
use crate::files;
use crate::graph::Graph;
use crate::handlers::{Order, order};
use crate::job_names::JobNames;
use crate::kinds::Action;
use crate::limits;
use crate::model::RunHandler;
use crate::report::{Finding, Findings, Span};
use crate::template::{self, Read};

/// A read of a job that the reader does not need directly. Both jobs are indices.
struct IndirectRead {
    reader: usize,
    read: usize,
    field: JobField,
    span: Span,
}

/// The names that a file declares.
pub(super) struct Declared<'a> {
    /// The text of the file.
    pub(super) file: &'a str,
    pub(super) top: &'a TopLevel<'a, 'a>,
    pub(super) names: &'a JobNames<'a>,
    pub(super) secrets: &'a [&'a str],
}

/// Checks all templates and expressions, and fills in the `uses` of all jobs.
///
/// Most jobs that are read are direct needs of the reader. For the others, each pass over the graph checks 128 of the jobs
/// that are read. So there are at most [`limits::INDIRECT_OUTPUTS`] / 128 passes.
pub(super) fn resolve(
    declared: &Declared<'_>,
    jobs: &mut [UnresolvedJob<'_, '_>],
    graph: Option<&Graph>,
    findings: &mut Findings,
) {
    let Declared { file, top, names, secrets } = *declared;
    let has_workspace = HasWorkspace::of(top.workspace);
    let scope = |reader, has_items| Scope {
        file,
        params: &top.params,
        jobs: names,
        secrets,
        reader,
        has_items,
        has_workspace,
    };
    template::check(&top.templates, &scope(Reader::Workflow, HasItems::No), findings);
    // These are evaluated when every job is over.
    template::check(&top.outputs.templates, &scope(Reader::Outputs, HasItems::No), findings);
    let handlers: Vec<Option<RunHandler>> = jobs.iter().map(|unresolved| unresolved.job.handler).collect();
    let mut indirect = Vec::new();
    for (reader, unresolved) in jobs.iter_mut().enumerate() {
        let own = handlers[reader];
        let reader_kind = if own.is_some() { Reader::Handler } else { Reader::Job };
        let scope = scope(reader_kind, unresolved.has_items);
        for read in template::check(&unresolved.templates, &scope, findings) {
            if read.job == reader {
                findings.push(own_read(&unresolved.job.name, &read));
                continue;
            }
            match order(own, handlers[read.job]) {
                Order::Before => (),
                Order::Same if unresolved.job.needs.binary_search(&read.job).is_ok() => (),
                Order::Same => {
                    indirect.push(IndirectRead {
                        reader,
                        read: read.job,
                        field: read.field,
                        span: read.span,
                    });
                }
                Order::NotBefore => {
                    findings.push(late_read(&unresolved.job.name, own, handlers[read.job], &read));
                    continue;
                }
            }
            match read.form {
                Form::Template => unresolved.job.uses.push(read.job),
                // The engine asks an expression what it reads.
                Form::Bare => (),
            }
        }
        unresolved.job.uses.sort_unstable();
        unresolved.job.uses.dedup();
    }
    if let Some(graph) = graph {
        check_indirect(&indirect, jobs, graph, findings);
    }
    check_inputs(jobs, names, findings);
}

/// Checks that jobs keep the files that others get from them.
fn check_inputs(jobs: &[UnresolvedJob<'_, '_>], names: &JobNames<'_>, findings: &mut Findings) {
    for (input, span) in jobs.iter().flat_map(|unresolved| unresolved.templates.inputs()) {
        let Some(index) = names.index(&input.job) else { continue };
        let action = &jobs[index].job.action;
        let kept = match action {
            Action::Call(_) => {
                Err(format!("`{}` calls a workflow, which gives values by `outputs` and no files", input.job))
            }
            Action::Shell(_)
            | Action::Http(_)
            | Action::Sleep(_)
            | Action::WaitFor(_)
            | Action::Approval(_)
            | Action::Signal(_) => files::check_is_kept(action.artifacts(), &input.job, &input.path),
        };
        if let Err(reason) = kept {
            findings.push(Finding::new(span.clone(), "the file is not an artifact").label(reason));
        }
    }
}

fn own_read(job: &str, read: &Read) -> Finding {
    let field = read.field.name();
    Finding::new(read.span.clone(), format!("job `{job}` reads its own {field}")).help(match read.field {
        JobField::Output => {
            "read the outputs of jobs that it needs; only these exist when it starts".to_owned()
        }
        JobField::Status
        | JobField::Error
        | JobField::ExitCode
        | JobField::Failures
        | JobField::Artifacts => {
            "read the fields of jobs that it needs; only these are over when it starts".to_owned()
        }
    })
}

fn late_read(job: &str, own: Option<RunHandler>, other: Option<RunHandler>, read: &Read) -> Finding {
    let phase = |handler: Option<RunHandler>| handler.map_or(0, RunHandler::phase);
    let label = match phase(own) == phase(other) {
        true => "no run executes both",
        false => "not over when this job starts",
    };
    let (own, other) = (table_name(own), table_name(other));
    let message = format!("job `{job}` of `{own}` reads a job of `{other}`");
    Finding::new(read.span.clone(), message)
        .label(label)
        .help("read jobs of `jobs`, and those that this job needs")
}

fn check_indirect(
    indirect: &[IndirectRead],
    jobs: &[UnresolvedJob<'_, '_>],
    graph: &Graph,
    findings: &mut Findings,
) {
    let mut read: Vec<usize> = indirect.iter().map(|indirect| indirect.read).collect();
    read.sort_unstable();
    read.dedup();
    if read.len() > limits::INDIRECT_OUTPUTS {
        let message =
            format!("outputs of {} jobs are read by jobs that need them only indirectly", read.len());
        let help = format!("the limit is {}; name these jobs in `needs`", limits::INDIRECT_OUTPUTS);
        findings.push(Finding::without_position(message).help(help));
        return;
    }
    let pairs: Vec<(usize, usize)> =
        indirect.iter().map(|indirect| (indirect.read, indirect.reader)).collect();
    for (indirect, is_ancestor) in indirect.iter().zip(graph.are_ancestors(&pairs)) {
        if !is_ancestor {
            let (reader, read) = (&jobs[indirect.reader].job.name, &jobs[indirect.read].job.name);
            let field = indirect.field.name();
            let message = format!("job `{reader}` reads the {field} of `{read}` but does not need it");
            findings.push(
                Finding::new(indirect.span.clone(), message)
                    .label("may not exist when this job starts")
                    .help(format!("add \"{read}\" to the `needs` of `{reader}`")),
            );
        }
    }
}
