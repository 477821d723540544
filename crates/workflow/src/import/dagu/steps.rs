//! `steps` of Dagu: their order, their names, and what each becomes.

use std::collections::{BTreeMap, BTreeSet};

use super::actions;
use super::dag::Reader;
use super::job::{Job, job};
use super::references::{Reference, variable_of};
use super::values::{find, items, list, name_of, scalar, table};
use crate::tree::{Entry, Node, Value};

/// A field of a job in an expression.
pub(super) fn job_field(name: &str, field: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match is_plain {
        true => format!("jobs.{name}.{field}"),
        false => format!("jobs['{name}'].{field}"),
    }
}

/// A step before it becomes a job.
pub(super) struct Step<'t, 's> {
    pub(super) node: &'t Node<'s>,
    /// Its name here.
    pub(super) name: String,
    /// The names that other steps know it by.
    names: Vec<String>,
    /// Its place in a chain. Steps with the same place run side by side.
    place: usize,
    needs: Vec<usize>,
    pub(super) output: Option<String>,
}

/// What a step can know of the others.
pub(super) struct Others<'a> {
    /// The outputs of earlier steps: the variable, and the job.
    outputs: BTreeMap<String, String>,
    /// The names of earlier steps, and their jobs.
    names: BTreeMap<String, String>,
    /// The jobs that call workflows or send requests, whose outputs have parts.
    with_parts: &'a BTreeMap<String, &'static str>,
}

impl Others<'_> {
    /// The value of a name that stands for something of an earlier step, as an expression.
    pub(super) fn value(&self, reference: &Reference) -> Option<String> {
        let (job, field) = match self.outputs.get(&reference.name) {
            Some(job) => (job, "output"),
            None => {
                let job = self.names.get(&reference.name)?;
                match reference.path.first().map(String::as_str) {
                    Some("exit_code" | "exitCode") => return Some(job_field(job, "exit_code")),
                    Some("output" | "outputs") => (job, "output"),
                    Some(_) | None => return None,
                }
            }
        };
        let mut path: Vec<&str> = reference.path.iter().map(String::as_str).collect();
        match self.with_parts.get(job) {
            Some(&"outputs") if path.first() == Some(&"outputs") => drop(path.remove(0)),
            Some(&"body") => path.insert(0, "body"),
            Some(_) | None if !self.outputs.contains_key(&reference.name) => drop(path.remove(0)),
            Some(_) | None => (),
        }
        let mut value = job_field(job, field);
        for part in path {
            value.push_str(&format!("['{part}']"));
        }
        Some(value)
    }
}

/// Reads the steps of a document.
pub(super) fn read(root: &[Entry<'_>], reader: &mut Reader<'_>) -> Vec<Job> {
    let Some(entry) = find(root, &["steps"]) else { return Vec::new() };
    let mut steps = collect(&entry.node, reader);
    let written_type = find(root, &["type"]).and_then(|entry| scalar(&entry.node, reader.document));
    let depends = |step: &Step<'_, '_>| find(table(step.node), &["depends", "dependson", "needs"]).is_some();
    let is_chain = match written_type.as_deref() {
        Some(text) => text == "chain",
        None => !steps.iter().any(depends),
    };
    resolve_needs(&mut steps, is_chain, reader);
    let with_parts: BTreeMap<String, &'static str> = steps
        .iter()
        .filter_map(|step| {
            Some((step.name.clone(), actions::output_part(table(step.node), reader.document)?))
        })
        .collect();
    let mut jobs: Vec<Job> = Vec::with_capacity(steps.len());
    for index in 0..steps.len() {
        let ancestors = ancestors(&steps, index);
        let of = |step: &Step<'_, '_>| step.output.clone().map(|output| (output, step.name.clone()));
        let others = Others {
            outputs: ancestors.iter().filter_map(|ancestor| of(&steps[*ancestor])).collect(),
            names: ancestors
                .iter()
                .flat_map(|ancestor| {
                    steps[*ancestor].names.iter().map(|name| (name.clone(), steps[*ancestor].name.clone()))
                })
                .collect(),
            with_parts: &with_parts,
        };
        let step = &steps[index];
        let needs: Vec<&str> = step.needs.iter().map(|need| steps[*need].name.as_str()).collect();
        jobs.push(job("jobs", step, &needs, &others, reader));
    }
    jobs
}

/// Reads a handler, which is a step that reads all the others.
pub(super) fn read_handler(
    node: &Node<'_>,
    table: &'static str,
    name: &str,
    jobs: &mut Vec<Job>,
    reader: &mut Reader<'_>,
) {
    let with_parts = BTreeMap::new();
    let others = Others {
        outputs: jobs.iter().filter_map(|job| Some((job.output.clone()?, job.name.clone()))).collect(),
        names: jobs.iter().map(|job| (job.name.clone(), job.name.clone())).collect(),
        with_parts: &with_parts,
    };
    let guard = std::mem::take(&mut reader.guard);
    let step =
        Step { node, name: name.to_owned(), names: Vec::new(), place: 0, needs: Vec::new(), output: None };
    let handler = job(table, &step, &[], &others, reader);
    reader.guard = guard;
    jobs.push(handler);
}

fn collect<'t, 's>(node: &'t Node<'s>, reader: &mut Reader<'_>) -> Vec<Step<'t, 's>> {
    let mut written: Vec<(Option<&str>, usize, &'t Node<'s>)> = Vec::new();
    if let Value::Table(entries) = &node.value {
        let entries = entries.iter().enumerate();
        written.extend(entries.map(|(place, entry)| (Some(entry.key.as_ref()), place, &entry.node)));
    } else {
        for (place, item) in items(node).into_iter().enumerate() {
            match list(item) {
                // A list in the list runs side by side.
                Some(group) => written.extend(group.iter().map(|step| (None, place, step))),
                None => written.push((None, place, item)),
            }
        }
    }
    let mut taken = BTreeSet::new();
    let mut steps: Vec<Step<'t, 's>> = Vec::with_capacity(written.len());
    for (index, (key, place, node)) in written.into_iter().enumerate() {
        let text =
            |keys: &[&str]| find(table(node), keys).and_then(|entry| scalar(&entry.node, reader.document));
        let names: Vec<String> =
            key.map(str::to_owned).into_iter().chain(text(&["name"])).chain(text(&["id"])).collect();
        let otherwise = format!("step-{}", index + 1);
        let base = names.first().map_or(otherwise.clone(), |name| name_of(name, "step"));
        let base = if base == "step" { otherwise } else { base };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let free = std::iter::once(base.clone()).chain(numbered).find(|name| !taken.contains(name));
        let name = free.unwrap_or(base);
        taken.insert(name.clone());
        steps.push(Step {
            node,
            name,
            names,
            place,
            needs: Vec::new(),
            output: output_of(node, reader.document),
        });
    }
    steps
}

/// The variable in `output`.
fn output_of(node: &Node<'_>, document: &str) -> Option<String> {
    let entry = find(table(node), &["output"])?;
    let name = match find(table(&entry.node), &["name"]) {
        Some(name) => scalar(&name.node, document)?,
        None => scalar(&entry.node, document)?,
    };
    let name = name.trim_start_matches('$').trim_matches(['{', '}']).to_owned();
    (variable_of(&name) == name && !name.is_empty()).then_some(name)
}

fn resolve_needs(steps: &mut [Step<'_, '_>], is_chain: bool, reader: &mut Reader<'_>) {
    let index: BTreeMap<String, usize> = steps
        .iter()
        .enumerate()
        .flat_map(|(index, step)| step.names.iter().map(move |name| (name.clone(), index)))
        .collect();
    let places: Vec<usize> = steps.iter().map(|step| step.place).collect();
    for (own, step) in steps.iter_mut().enumerate() {
        match find(table(step.node), &["depends", "dependson", "needs"]) {
            Some(depends) => {
                for item in items(&depends.node) {
                    let Some(name) = scalar(item, reader.document) else { continue };
                    match index.get(&name) {
                        Some(needed) if *needed != own => step.needs.push(*needed),
                        Some(_) | None => {
                            let what = format!("`depends` on `{name}`; there is no such step");
                            let comment = reader.notes.leave_out(&item.span, what);
                            reader.top.push(comment);
                        }
                    }
                }
            }
            None if is_chain => {
                let before = places.iter().filter(|place| **place < step.place).max().copied();
                step.needs = (0..places.len()).filter(|other| Some(places[*other]) == before).collect();
            }
            None => (),
        }
        step.needs.sort_unstable();
        step.needs.dedup();
    }
}

/// All steps that are over before this one.
fn ancestors(steps: &[Step<'_, '_>], index: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut pending = steps[index].needs.clone();
    while let Some(next) = pending.pop() {
        if found.insert(next) {
            pending.extend(&steps[next].needs);
        }
    }
    found
}
