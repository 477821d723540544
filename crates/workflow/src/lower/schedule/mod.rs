//! `schedules`: when the workflow runs by itself.

mod complete;
mod params;
mod parts;

use std::collections::HashMap;

use super::expect;
use super::top::Top;
use crate::job_names::JobNames;
use crate::limits;
use crate::model::{DEFAULT_SCHEDULE, Schedule};
use crate::report::{Finding, Findings};
use crate::template::{Reader, Scope};
use crate::tree::{Span, Value};

pub(super) fn read_all(
    text: &str,
    top: &Top<'_, '_>,
    names: &JobNames<'_>,
    findings: &mut Findings,
) -> Vec<Schedule> {
    let Some(entry) = top.schedules else { return Vec::new() };
    let scope = Scope { text, params: &top.params, names, reader: Reader::Schedule };
    if let Value::Table(_) = entry.node.value {
        let help = "begin each schedule with [[schedules]]; its name goes into it, as `name`";
        expect::wrong_type_help(&entry.node, "`schedules`", "a list of schedules", help, findings);
        return Vec::new();
    }
    let items = expect::list(entry, limits::SCHEDULES, "a list of schedules", findings).unwrap_or_default();
    let mut schedules = Vec::with_capacity(items.len());
    let mut seen: HashMap<String, Span> = HashMap::new();
    for item in items {
        let Some(parts) = parts::read(item, findings) else { continue };
        let place = parts.name.as_ref().map_or(item.span.clone(), |(_, span)| span.clone());
        let name = parts.name.as_ref().map_or(DEFAULT_SCHEDULE, |(name, _)| name).to_owned();
        match seen.get(&name) {
            _ if parts.name_is_broken => (),
            Some(first) => findings.push(twice(&name, place, first.clone())),
            None => {
                seen.insert(name.clone(), place);
            }
        }
        schedules.extend(complete::complete(name, item, parts, &scope, findings));
    }
    schedules
}

fn twice(name: &str, second: Span, first: Span) -> Finding {
    let finding = Finding::new(second, format!("two schedules have the name `{name}`"))
        .related(first, "the first one")
        .help("give each schedule a `name` of its own");
    match name {
        DEFAULT_SCHEDULE => finding.label(format!("without a `name` it is `{DEFAULT_SCHEDULE}`")),
        _ => finding,
    }
}
