//! Reads `schedules`: when the workflow runs by itself.

mod complete;
mod params;
mod table;

use std::collections::HashMap;

use super::top_level::TopLevel;
use crate::expression::{HasItems, HasWorkspace, Reader, Scope};
use crate::job_names::JobNames;
use crate::model::{DEFAULT_SCHEDULE, Schedule};
use crate::report::{Finding, Findings, Span};
use crate::tree::Value;
use crate::{expect, limits};

pub(super) fn read_all(
    file: &str,
    top: &TopLevel<'_, '_>,
    names: &JobNames<'_>,
    findings: &mut Findings,
) -> Vec<Schedule> {
    let Some(entry) = top.schedules else { return Vec::new() };
    let scope = Scope {
        file,
        params: &top.params,
        jobs: names,
        secrets: &[],
        reader: Reader::Workflow,
        has_items: HasItems::No,
        has_workspace: HasWorkspace::No,
    };
    if let Value::Table(_) = entry.node.value {
        let help = "begin each schedule with [[schedules]], and write its name as `name`";
        expect::wrong_type_help(&entry.node, "`schedules`", "a list of schedules", help, findings);
        return Vec::new();
    }
    let items = expect::list(entry, limits::SCHEDULES, "a list of schedules", findings).unwrap_or_default();
    let mut schedules = Vec::with_capacity(items.len());
    let mut seen: HashMap<String, Span> = HashMap::new();
    for item in items {
        let Some(table) = table::read(item, findings) else { continue };
        let span = table.name.as_ref().map_or(item.span.clone(), |(_, span)| span.clone());
        let name = table.name.as_ref().map_or(DEFAULT_SCHEDULE, |(name, _)| name).to_owned();
        match seen.get(&name) {
            _ if table.name_is_wrong => (),
            Some(first) => findings.push(duplicate_name(&name, span, first.clone())),
            None => {
                seen.insert(name.clone(), span);
            }
        }
        let is_disabled = table.is_disabled;
        let schedule = complete::complete(name, item, table, &scope, findings);
        schedules.extend(schedule.filter(|_| !is_disabled));
    }
    schedules
}

fn duplicate_name(name: &str, second: Span, first: Span) -> Finding {
    let finding = Finding::new(second, format!("two schedules have the name `{name}`"))
        .related(first, "the first one")
        .help("give each schedule a `name` of its own");
    match name {
        DEFAULT_SCHEDULE => {
            finding.label(format!("a schedule without `name` is called `{DEFAULT_SCHEDULE}`"))
        }
        _ => finding,
    }
}
