//! Workflows from a file of Dagu: its YAML, with the keys of several of its versions.
//!
//! Dagu runs text in a shell after it has put values into it. Here a script gets its values from its environment, so names of
//! parameters and outputs become variables of the same name. What has no equivalent becomes a comment in its place.

mod actions;
mod conditions;
mod dag;
mod handlers;
mod notes;
mod params;
mod references;
mod schedules;
mod steps;
mod values;

use std::collections::BTreeSet;

use super::{Imported, ImportedWorkflow};
use crate::report::{Findings, Report, Severity};
use crate::source::{Format, Source};
use crate::{format_toml, parse, tree};
use dag::Dag;
use notes::Notes;

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
    let documents = documents(text);
    let mut notes = Notes::default();
    let mut names = BTreeSet::new();
    let mut dags = Vec::with_capacity(documents.len());
    for (index, (first_line, document)) in documents.iter().enumerate() {
        let source = Source::new(format!("{path}.yaml"), document.clone().into_bytes())?;
        let mut findings = Findings::default();
        let root = tree::read_text(&source.text, Format::Yaml, &mut findings);
        let Some(root) = root.filter(|_| findings.is_empty()) else {
            return Err(Report::of_source(&source, Severity::Error, findings));
        };
        notes.begin(document, *first_line);
        let name = if index == 0 { options.name.clone() } else { format!("{}-{}", options.name, index + 1) };
        dags.push(Dag::read(&root, document, &name, &mut names, &mut notes));
    }
    let (first, others) = dags.split_first().ok_or_else(|| refuse(path, "the file is empty"))?;
    if first.has_no_jobs() {
        return Err(refuse(path, "the file has no steps"));
    }
    let text = first.to_toml(others, options);
    let source = Source::new(format!("{}.toml", first.name), text.clone().into_bytes())?;
    let checked = parse(&source).and_then(|_workflow| format_toml(&source));
    let text = checked?;
    let workflow = ImportedWorkflow { name: first.name.clone(), text };
    Ok(Imported { workflows: vec![workflow], left_out: notes.into_lines() })
}

fn refuse(path: &str, message: &str) -> Report {
    Report::of_one(path, "", crate::report::Finding::without_position(message))
}

/// The documents of a file with the numbers of their first lines. Documents without content are left out.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents: Vec<(usize, String)> = vec![(1, String::new())];
    for (index, line) in text.lines().enumerate() {
        if line.trim_end() == "---" {
            documents.push((index + 2, String::new()));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let has_content = |document: &str| {
        document.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    documents.retain(|(_, document)| has_content(document));
    documents
}
