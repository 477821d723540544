//! From names in `needs` to edges of the graph.

use super::expect;
use super::job::Draft;
use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::limits;
use crate::report::{Finding, Findings};
use crate::tree::{Node, Span, Value};

/// Fills the `needs` of all jobs. Wrong names, doubles and needing oneself are reported.
pub(super) fn resolve(drafts: &mut [Draft<'_, '_>], names: &JobNames<'_>, findings: &mut Findings) {
    let total: usize = drafts.iter().map(|draft| draft.needs.len()).sum();
    if total > limits::EDGES {
        let finding = Finding::without_place(format!("the jobs have {total} entries in `needs`"))
            .help(format!("the limit is {}; let groups of jobs meet in one job", limits::EDGES));
        findings.push(finding);
        return;
    }
    for (index, draft) in drafts.iter_mut().enumerate() {
        let mut needs: Vec<(usize, &Node<'_>)> = Vec::with_capacity(draft.needs.len());
        for node in draft.needs {
            if let Some(needed) = one(node, index, &draft.job.name, names, findings) {
                needs.push((needed, node));
            }
        }
        needs.sort_by_key(|(needed, node)| (*needed, node.span.start));
        for pair in needs.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            findings.push(
                Finding::new(pair[1].1.span.clone(), "the same job is needed twice")
                    .related(pair[0].1.span.clone(), "first here")
                    .help("remove one of them"),
            );
        }
        needs.dedup_by_key(|(needed, _)| *needed);
        draft.job.needs = needs.into_iter().map(|(needed, _)| needed).collect();
    }
}

fn one(
    node: &Node<'_>,
    index: usize,
    job: &str,
    names: &JobNames<'_>,
    findings: &mut Findings,
) -> Option<usize> {
    let name = expect::text(node, "an item of `needs`", findings)?;
    match names.index(name) {
        Some(needed) if needed == index => {
            let message = format!("job `{job}` needs itself");
            findings.push(Finding::new(node.span.clone(), message).help("remove it from `needs`"));
            None
        }
        Some(needed) => Some(needed),
        None => {
            let nearest = findings.nearest(name, names.iter());
            let finding = Finding::new(node.span.clone(), format!("there is no job `{}`", shorten(name)));
            findings.push(match nearest {
                Some(near) => finding.label(format!("did you mean `{near}`?")),
                None => finding.label("not defined in this file"),
            });
            None
        }
    }
}

/// Reports the cycles. Returns the graph when there is none.
pub(super) fn check_cycles(drafts: &[Draft<'_, '_>], findings: &mut Findings) -> Option<Graph> {
    let graph = Graph::from_needs(drafts.iter().map(|draft| draft.job.needs.as_slice()));
    let cycles = graph.cycles(limits::CYCLES_SHOWN);
    for cycle in &cycles {
        findings.push(describe_cycle(cycle, drafts));
    }
    cycles.is_empty().then_some(graph)
}

/// Names of a cycle that are shown; a longer one is cut in the middle.
const CYCLE_NAMES: usize = 12;

fn describe_cycle(cycle: &[usize], drafts: &[Draft<'_, '_>]) -> Finding {
    let name = |index: &usize| drafts[*index].job.name.as_str();
    let mut path: Vec<String> = cycle.iter().take(CYCLE_NAMES).map(|index| name(index).to_owned()).collect();
    if cycle.len() > CYCLE_NAMES {
        path.push(format!("({} more)", cycle.len() - CYCLE_NAMES));
    }
    path.extend(cycle.first().map(|index| name(index).to_owned()));
    let (first, next) = (cycle[0], cycle[1 % cycle.len()]);
    let span = need_span(&drafts[first], name(&next));
    Finding::new(span, format!("these jobs need each other in a circle: {}", path.join(" -> ")))
        .label(format!("`{}` needs `{}`", name(&first), name(&next)))
        .help("remove one of these needs; a job starts when all that it needs have finished")
}

fn need_span(draft: &Draft<'_, '_>, needed: &str) -> Span {
    let found = draft.needs.iter().find(|node| matches!(&node.value, Value::Text(name) if name == needed));
    found.map_or(0..0, |node| node.span.clone())
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= limits::NAME_CHARS {
        return name.escape_debug().to_string();
    }
    let start: String = name.chars().take(40).collect();
    format!("{}…", start.escape_debug())
}
