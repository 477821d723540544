//! The file that is written: the workflow, and those that its jobs call.

use std::collections::BTreeMap;

use super::DaguOptions;
use super::dag::Dag;
use super::params::Param;
use super::references::variable_of;
use super::steps::job_field;
use super::values::{name_of, quoted, quoted_list, toml_key};

/// The file, with these workflows for its jobs to call.
pub(super) fn workflow(dag: &Dag, others: &[Dag], options: &DaguOptions) -> String {
    let mut lines = vec!["# Made from a file of Dagu.".to_owned(), format!("name = {}", quoted(&dag.name))];
    lines.extend(comments_first(&dag.lines));
    if !dag.tags.is_empty() {
        lines.push(format!("tags = {}", quoted_list(&dag.tags)));
    }
    lines.extend(secrets(dag, others));
    tables(dag, "", &mut lines);
    for (index, schedule) in dag.schedules.iter().enumerate() {
        lines.extend(schedule.lines(index, &options.timezone));
    }
    let calls: BTreeMap<&str, &str> = others
        .iter()
        .filter_map(|other| Some((other.written_name.as_deref()?, other.name.as_str())))
        .collect();
    job_tables(dag, "", &calls, &mut lines);
    for other in others {
        let prefix = format!("workflows.{}.", toml_key(&other.name));
        lines.push(format!("[{}]", prefix.trim_end_matches('.')));
        lines.extend(comments_first(&other.lines));
        tables(other, &prefix, &mut lines);
        let outputs: Vec<String> = other
            .jobs
            .iter()
            .filter_map(|job| {
                let name = job.output.as_ref()?;
                Some(format!("{} = {}", variable_of(name), quoted(&job_field(&job.name, "output"))))
            })
            .collect();
        if !outputs.is_empty() {
            lines.push(format!("[{prefix}outputs]"));
            lines.extend(outputs);
        }
        job_tables(other, &prefix, &calls, &mut lines);
    }
    lines.join("\n")
}

/// The table of the secrets, which all workflows of the file share.
fn secrets(dag: &Dag, others: &[Dag]) -> Vec<String> {
    let mut sources: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, source) in std::iter::once(dag).chain(others).flat_map(|dag| &dag.secrets) {
        sources.entry(name.as_str()).or_insert(source.as_str());
    }
    let mut lines: Vec<String> = sources.iter().map(|(name, source)| format!("{name} = {source}")).collect();
    if !lines.is_empty() {
        lines.insert(0, "[secrets]".to_owned());
    }
    lines
}

fn tables(dag: &Dag, prefix: &str, lines: &mut Vec<String>) {
    if !dag.params.is_empty() {
        lines.push(format!("[{prefix}params]"));
        lines.extend(dag.params.iter().map(Param::line));
    }
    if !dag.env.is_empty() {
        lines.push(format!("[{prefix}env]"));
        lines.extend(dag.env.iter().map(|(name, value)| format!("{name} = {}", quoted(value))));
    }
    if !dag.defaults.is_empty() {
        lines.push(format!("[{prefix}defaults]"));
        lines.extend(dag.defaults.iter().cloned());
    }
}

fn job_tables(dag: &Dag, prefix: &str, calls: &BTreeMap<&str, &str>, lines: &mut Vec<String>) {
    for job in &dag.jobs {
        lines.push(format!("[{prefix}{}.{}]", job.table, toml_key(&job.name)));
        lines.extend(comments_first(&job.lines));
        if let Some(called) = job.calls.as_ref().map(|call| &call.workflow) {
            let ours =
                calls.get(called.as_str()).map_or_else(|| registered(called), |name| (*name).to_owned());
            lines.push(format!("workflow = {}", quoted(&ours)));
        }
    }
}

/// The lines of a table. At its end a comment would belong to the next table.
fn comments_first(lines: &[String]) -> impl Iterator<Item = String> {
    let (comments, others): (Vec<_>, Vec<_>) = lines.iter().cloned().partition(|line| line.starts_with('#'));
    comments.into_iter().chain(others)
}

/// The name under which a file of Dagu is registered after its import.
fn registered(called: &str) -> String {
    let file = called.rsplit('/').next().unwrap_or(called);
    name_of(file.trim_end_matches(".yaml").trim_end_matches(".yml"), "workflow")
}
