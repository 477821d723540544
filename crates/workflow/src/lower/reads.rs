//! Finds the jobs that the templates and expressions of each job read. A job that is read must be an ancestor of the reader,
//! so that it is over when the reader starts.

use super::job::UnresolvedJob;
use super::top_level::TopLevel;
use crate::expression::{Form, JobField, Reader, Scope};
use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::limits;
use crate::report::{Finding, Findings, Span};
use crate::template;

/// A read of a job that the reader does not need directly. Both jobs are indices.
struct IndirectRead {
    reader: usize,
    read: usize,
    field: JobField,
    span: Span,
}

/// Checks all templates and expressions, and fills in the `uses` of all jobs.
///
/// Most jobs that are read are direct needs of the reader. For the others, each pass over the graph checks 128 of the jobs
/// that are read. So there are at most [`limits::INDIRECT_OUTPUTS`] / 128 passes.
pub(super) fn resolve(
    file: &str,
    top: &TopLevel<'_, '_>,
    jobs: &mut [UnresolvedJob<'_, '_>],
    names: &JobNames<'_>,
    graph: Option<&Graph>,
    findings: &mut Findings,
) {
    let scope = Scope { file, params: &top.params, jobs: names, secrets: &[], reader: Reader::Workflow };
    template::check(&top.templates, &scope, findings);
    let scope = Scope { reader: Reader::Job, ..scope };
    let mut indirect = Vec::new();
    for (reader, unresolved) in jobs.iter_mut().enumerate() {
        for read in template::check(&unresolved.templates, &scope, findings) {
            if read.job == reader {
                let field = read.field.name();
                let message = format!("job `{}` reads its own {field}", unresolved.job.name);
                findings.push(Finding::new(read.span, message).help(format!(
                    "read the {field}s of jobs that it needs; only these exist when it starts"
                )));
                continue;
            }
            if unresolved.job.needs.binary_search(&read.job).is_err() {
                indirect.push(IndirectRead { reader, read: read.job, field: read.field, span: read.span });
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
