//! Workflows from a file of Dagu: its YAML, with the keys of several of its versions.
//!
//! Dagu runs text in a shell after it has put values into it. Here a script gets its values from its environment, so names of
//! parameters and outputs become variables of the same name. What has no equivalent becomes a comment in its place.

mod actions;
mod calls;
mod conditions;
mod container;
mod dag;
mod environment;
mod handlers;
mod http;
mod job;
mod notes;
mod params;
mod programs;
mod references;
mod repeat;
mod schedules;
mod script;
mod settings;
mod steps;
mod values;
mod write;

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Imported, ImportedWorkflow};
use crate::report::{Finding, Findings, Report};
use crate::source::{Format, Source};
use crate::{format_toml, parse, tree};
use dag::Dag;
use notes::Notes;

/// The most documents that a file can have.
const DOCUMENTS: usize = 100;

/// What a file of Dagu does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaguOptions {
    /// The name of a workflow that has none in the file.
    pub name: String,
    /// The IANA name of the zone in which schedules without one are read.
    pub timezone: String,
}

/// Makes a workflow of a file of Dagu. The further documents of the file become workflows that its jobs can call.
///
/// # Errors
/// The file is no YAML, or has no steps, or what was made of it is not valid.
pub fn dagu(path: &str, text: &str, options: &DaguOptions) -> Result<Imported, Report> {
    let mut notes = Notes::new(text);
    let mut names = BTreeSet::new();
    let mut dags: Vec<Dag> = Vec::new();
    for (index, document) in documents(path, text)?.iter().enumerate() {
        let mut findings = Findings::default();
        let root = tree::read_text(document, Format::Yaml, &mut findings);
        let Some(root) = root.filter(|_| findings.is_empty()) else {
            return Err(Report::new(path, document, findings));
        };
        if values::find(&root, &["steps"]).is_none_or(|steps| values::items(&steps.node).is_empty()) {
            return Err(without_steps(path, document, &root));
        }
        let name = if index == 0 { options.name.clone() } else { format!("{}-{}", options.name, index + 1) };
        let calls =
            dags.iter().flat_map(|dag| &dag.jobs).filter_map(|job| job.calls.clone()).collect::<Vec<_>>();
        let mut dag = Dag::read(&root, document, &name, &calls, &mut names, &mut notes);
        if index > 0 {
            dag.become_called(&root, &mut notes);
        }
        dags.push(dag);
    }
    let (first, others) = dags.split_first().ok_or_else(|| refuse(path, "the file is empty"))?;
    let text = write::workflow(first, others, options);
    let source = Source::new(format!("{}.toml", first.name), text.into_bytes())?;
    let text = parse(&source).and_then(|_workflow| format_toml(&source))?;
    let workflow = ImportedWorkflow { name: first.name.clone(), text };
    Ok(Imported { workflows: vec![workflow], left_out: notes.into_lines() })
}

const EXPECTED: &str = "name a file of Dagu: YAML with a list `steps`";

fn refuse(path: &str, message: &str) -> Report {
    Report::of_one(path, "", Finding::without_position(message).help(EXPECTED))
}

/// The error is at the first key.
fn without_steps(path: &str, document: &str, root: &[tree::Entry<'_>]) -> Report {
    let span = root.first().map_or(0..0, |entry| entry.key_span.clone());
    Report::of_one(path, document, Finding::new(span, "the file has no steps").help(EXPECTED))
}

/// The documents of a file, without those that have no content. In each, everything before it is blank, so that its
/// positions are those of the file.
fn documents(path: &str, text: &str) -> Result<Vec<String>, Report> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.trim_end() == "---" {
            ranges.push(start..at);
            start = end;
        }
        at = end;
    }
    ranges.push(start..at);
    let is_content = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    ranges.retain(|range| text[range.clone()].lines().any(is_content));
    if ranges.len() > DOCUMENTS {
        let message = format!("the file has {} documents; the limit is {DOCUMENTS}", ranges.len());
        return Err(refuse(path, &message));
    }
    let blank =
        |text: &str| text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect::<String>();
    Ok(ranges.into_iter().map(|range| blank(&text[..range.start]) + &text[range]).collect())
}
