//! From the names in `needs` to the edges of the graph.

use super::job::UnresolvedJob;
use super::tables::table_name;
use crate::graph::Graph;
use crate::job_names::JobNames;
use crate::model::RunHandler;
use crate::report::{Finding, Findings, Span};
use crate::tree::{Node, Value};
use crate::{expect, limits};

/// Fills in the `needs` of all jobs. Reports unknown names, duplicates, and jobs that need themselves.
pub(super) fn resolve(jobs: &mut [UnresolvedJob<'_, '_>], names: &JobNames<'_>, findings: &mut Findings) {
    let total: usize = jobs.iter().map(|unresolved| unresolved.needs.len()).sum();
    if total > limits::EDGES {
        let finding = Finding::without_position(format!("the jobs have {total} entries in `needs`"))
            .help(format!("the limit is {}; let groups of jobs meet in one job", limits::EDGES));
        findings.push(finding);
        return;
    }
    let handlers: Vec<Option<RunHandler>> = jobs.iter().map(|unresolved| unresolved.job.handler).collect();
    for (index, unresolved) in jobs.iter_mut().enumerate() {
        let mut needs: Vec<(usize, &Node<'_>)> = Vec::with_capacity(unresolved.needs.len());
        for node in unresolved.needs {
            let Some(needed) = resolve_name(node, index, &unresolved.job.name, names, findings) else {
                continue;
            };
            match handlers[needed] == handlers[index] {
                true => needs.push((needed, node)),
                false => findings.push(other_table(node, handlers[index], handlers[needed])),
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
        unresolved.job.needs = needs.into_iter().map(|(needed, _)| needed).collect();
    }
}

/// The index of the job that an item of `needs` names. `index` and `job` are the job that has the item.
fn resolve_name(
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

/// The error about a job that is needed by a job of another table.
fn other_table(node: &Node<'_>, own: Option<RunHandler>, other: Option<RunHandler>) -> Finding {
    let message = format!("a job of `{}` can't need a job of `{}`", table_name(own), table_name(other));
    let finding = Finding::new(node.span.clone(), message);
    finding.help(match (own, other) {
        (Some(_), None) => "remove it; these jobs start when all jobs of `jobs` are over".to_owned(),
        (None, Some(other)) => {
            format!("remove it; the jobs of `{}` start when this job is over", other.key())
        }
        (Some(_), Some(_)) | (None, None) => {
            format!("a job of `{}` needs jobs of the same table", table_name(own))
        }
    })
}

/// Reports the cycles. Returns the graph if it has none.
pub(super) fn check_cycles(jobs: &[UnresolvedJob<'_, '_>], findings: &mut Findings) -> Option<Graph> {
    let graph = Graph::from_needs(jobs.iter().map(|unresolved| unresolved.job.needs.as_slice()));
    let cycles = graph.cycles(limits::CYCLES_SHOWN);
    for cycle in &cycles {
        findings.push(describe_cycle(cycle, jobs));
    }
    cycles.is_empty().then_some(graph)
}

/// Names of a cycle that a message shows. The middle of a longer cycle is left out.
const CYCLE_NAMES: usize = 12;

fn describe_cycle(cycle: &[usize], jobs: &[UnresolvedJob<'_, '_>]) -> Finding {
    let name = |index: &usize| jobs[*index].job.name.as_str();
    let mut path: Vec<String> = cycle.iter().take(CYCLE_NAMES).map(|index| name(index).to_owned()).collect();
    if cycle.len() > CYCLE_NAMES {
        path.push(format!("({} more)", cycle.len() - CYCLE_NAMES));
    }
    path.extend(cycle.first().map(|index| name(index).to_owned()));
    let (first, next) = (cycle[0], cycle[1 % cycle.len()]);
    let span = span_of_need(&jobs[first], name(&next));
    Finding::new(span, format!("these jobs need each other in a cycle: {}", path.join(" -> ")))
        .label(format!("`{}` needs `{}`", name(&first), name(&next)))
        .help("remove one of these needs; a job starts after all jobs that it needs")
}

fn span_of_need(unresolved: &UnresolvedJob<'_, '_>, needed: &str) -> Span {
    let is_needed = |node: &&Node<'_>| matches!(&node.value, Value::Text(name) if name == needed);
    unresolved.needs.iter().find(is_needed).map_or(0..0, |node| node.span.clone())
}

fn shorten(name: &str) -> String {
    if name.chars().count() <= limits::NAME_CHARS {
        return name.escape_debug().to_string();
    }
    let start: String = name.chars().take(40).collect();
    format!("{}…", start.escape_debug())
}
