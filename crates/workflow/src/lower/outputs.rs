//! Templates that read outputs of other jobs: each must be an ancestor, so that its output is there.

use super::job::Draft;
use super::top::Top;
use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::limits;
use crate::report::{Finding, Findings};
use crate::template::{self, Reader, Scope};
use crate::tree::Span;

/// One place where a job reads an output of a job that it does not need directly.
struct Indirect {
    reader: usize,
    read: usize,
    span: Span,
}

/// Checks all templates and fills the `uses` of all jobs.
///
/// Whether a job is an ancestor is looked up among its direct needs first. The rest is settled in
/// passes over the graph, each for 128 of the jobs that are read, so the cost is bounded by
/// [`limits::INDIRECT_OUTPUTS`] / 128 passes.
pub(super) fn resolve(
    text: &str,
    top: &Top<'_, '_>,
    drafts: &mut [Draft<'_, '_>],
    names: &JobNames<'_>,
    graph: Option<&Graph>,
    findings: &mut Findings,
) {
    let scope = Scope { text, params: &top.params, names, reader: Reader::Workflow };
    template::check(&top.templates, &scope, findings);
    let scope = Scope { reader: Reader::Job, ..scope };
    let mut indirect = Vec::new();
    for (reader, draft) in drafts.iter_mut().enumerate() {
        for used in template::check(&draft.templates, &scope, findings) {
            if used.job == reader {
                findings.push(
                    Finding::new(used.span, format!("job `{}` reads its own output", draft.job.name))
                        .help("only outputs of jobs that it needs are there when it starts"),
                );
                continue;
            }
            if draft.job.needs.binary_search(&used.job).is_err() {
                indirect.push(Indirect { reader, read: used.job, span: used.span });
            }
            draft.job.uses.push(used.job);
        }
        draft.job.uses.sort_unstable();
        draft.job.uses.dedup();
    }
    if let Some(graph) = graph {
        check_indirect(&indirect, drafts, graph, findings);
    }
}

fn check_indirect(indirect: &[Indirect], drafts: &[Draft<'_, '_>], graph: &Graph, findings: &mut Findings) {
    let mut read: Vec<usize> = indirect.iter().map(|one| one.read).collect();
    read.sort_unstable();
    read.dedup();
    if read.len() > limits::INDIRECT_OUTPUTS {
        let message =
            format!("outputs of {} jobs are read by jobs that need them only indirectly", read.len());
        let help = format!("the limit is {}; name these jobs in `needs`", limits::INDIRECT_OUTPUTS);
        findings.push(Finding::without_place(message).help(help));
        return;
    }
    let pairs: Vec<(usize, usize)> = indirect.iter().map(|one| (one.read, one.reader)).collect();
    for (one, is_ancestor) in indirect.iter().zip(graph.are_ancestors(&pairs)) {
        if !is_ancestor {
            let (reader, read) = (&drafts[one.reader].job.name, &drafts[one.read].job.name);
            let message = format!("job `{reader}` reads the output of `{read}` but does not need it");
            findings.push(
                Finding::new(one.span.clone(), message)
                    .label("may not exist when this job starts")
                    .help(format!("add \"{read}\" to the `needs` of `{reader}`")),
            );
        }
    }
}
