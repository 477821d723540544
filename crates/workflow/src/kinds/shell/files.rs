//! Reads `artifacts` and `inputs`.

use super::read::{ARTIFACTS, GLOB, INPUTS};
use crate::files::{Artifact, Input, NoMatch, check_glob};
use crate::keys::{self, Table};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::{Entry, Node, Value};
use crate::{expect, limits};

/// Reads `"out/*.csv"`, or a list of patterns and of tables like `{ glob = "out/*.csv", required = true }`.
pub(super) fn read_artifacts<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Vec<Artifact> {
    let items = if let Value::Text(_) = &entry.node.value {
        Some(std::slice::from_ref(&entry.node))
    } else {
        let expected = "a list of patterns like [\"out/*.csv\"]";
        expect::list(entry, limits::ARTIFACT_PATTERNS, expected, findings)
    };
    items
        .unwrap_or_default()
        .iter()
        .filter_map(|item| match &item.value {
            Value::Table(parts) => read_table(item, parts, templates, findings),
            Value::Text(_)
            | Value::Integer(_)
            | Value::Number(_)
            | Value::Boolean(_)
            | Value::Date(_)
            | Value::Null
            | Value::Broken
            | Value::List(_) => {
                templates.add(item, &ARTIFACTS);
                let glob = read_glob(item, "an item of `artifacts`", findings)?;
                Some(Artifact { glob, no_match: NoMatch::default() })
            }
        })
        .collect()
}

fn read_table<'t>(
    item: &Node<'_>,
    parts: &'t [Entry<'_>],
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Artifact> {
    let (mut glob, mut has_glob, mut no_match) = (None, false, NoMatch::default());
    for part in parts {
        let Ok(key) = keys::find(part, Table::Artifact, findings) else { continue };
        if key.name() == GLOB.name() {
            has_glob = true;
            templates.add(&part.node, &GLOB);
            glob = read_glob(&part.node, "`glob`", findings);
        } else if expect::boolean(part, findings) == Some(true) {
            no_match = NoMatch::Fail;
        }
    }
    if !has_glob {
        let help = "write { glob = \"out/*.csv\", required = true }";
        findings.push(Finding::new(item.span.clone(), "an item of `artifacts` has no `glob`").help(help));
    }
    Some(Artifact { glob: glob?, no_match })
}

fn read_glob(node: &Node<'_>, what: &str, findings: &mut Findings) -> Option<String> {
    let glob = expect::filled_text(node, what, findings)?;
    if let Err(reason) = check_glob(glob) {
        findings
            .push(Finding::new(node.span.clone(), format!("{what} is not a pattern of files")).label(reason));
        return None;
    }
    Some(glob.to_owned())
}

/// Reads `{ "data.csv" = "jobs.fetch/out/data.csv" }`.
pub(super) fn read_inputs<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Vec<Input> {
    let expected = "a table like { \"data.csv\" = \"jobs.fetch/out/data.csv\" }";
    let parts = expect::table(entry, limits::INPUTS, expected, findings).unwrap_or_default();
    let mut inputs = Vec::new();
    for part in parts {
        templates.add(&part.node, &INPUTS);
        let Some(source) = expect::filled_text(&part.node, &expect::quoted(part), findings) else { continue };
        match Input::parse(&part.key, source) {
            Ok(input) => {
                templates.add_input(input.clone(), part.node.span.clone());
                inputs.push(input);
            }
            Err(reason) => {
                let message = format!("the input `{}` can't be used", part.key);
                let help = format!("write {expected}");
                findings.push(Finding::new(part.node.span.clone(), message).label(reason).help(help));
            }
        }
    }
    inputs
}
