//! Reads of variables that no job has set before the first run.

use std::collections::HashMap;

use super::WorkflowInFile;
use crate::expression::IfAbsent;
use crate::graph::Graph;
use crate::report::{Finding, Findings};

/// Warns of each variable that is read without `default` and that a job of the same workflow sets, unless the reader needs
/// that job. The first run finds no value. Variables that no job of the workflow sets are set by somebody else.
pub(super) fn check(file: &WorkflowInFile<'_, '_>, findings: &mut Findings) {
    let mut setters: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, job) in file.workflow.jobs.iter().enumerate() {
        for name in job.set_variables.iter().flat_map(|variables| variables.keys()) {
            setters.entry(name).or_default().push(index);
        }
    }
    if setters.is_empty() {
        return;
    }
    let index: HashMap<&str, usize> =
        file.workflow.jobs.iter().enumerate().map(|(index, job)| (job.name.as_str(), index)).collect();
    let graph = Graph::new(file.workflow);
    let of_jobs = file.jobs.iter().flat_map(|job| job.reads.iter().map(move |read| (Some(job), read)));
    let shared = file.shared_reads.iter().map(|read| (None, read));
    for (reader, read) in of_jobs.chain(shared) {
        let Some(name) = read.name_after("variables") else { continue };
        let Some(setting) = setters.get(name).filter(|_| read.if_absent == IfAbsent::Fail) else { continue };
        let reader = reader.and_then(|reader| index.get(reader.job.name.as_str()).copied());
        let pairs: Vec<(usize, usize)> =
            reader.map(|reader| setting.iter().map(|setter| (*setter, reader)).collect()).unwrap_or_default();
        if graph.are_ancestors(&pairs).contains(&true) {
            continue;
        }
        let setter = &file.workflow.jobs[setting[0]].name;
        let message = format!("the first run has no variable `{name}`: job `{setter}` sets it at its end");
        findings.push(Finding::new(read.span.clone(), message).help(format!(
            "write variables.{name} | default(…), or set it before the first run: windlass variable set {name} VALUE"
        )));
    }
}
