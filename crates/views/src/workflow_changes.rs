//! The differences between two versions of a workflow, by names and fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use windlass_workflow::Workflow;

/// How many names a list in the summary shows; it counts the others.
const NAMES_SHOWN: usize = 8;

/// How two versions differ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct WorkflowChanges {
    /// The keys of the workflow itself that changed, such as `timeout`.
    pub settings: Vec<String>,
    /// The differences between the parameters.
    pub params: PartChanges,
    /// The differences between the schedules.
    pub schedules: PartChanges,
    /// The differences between the jobs.
    pub jobs: PartChanges,
}

/// How two lists of named parts differ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PartChanges {
    /// The names of parts that only the later version has.
    pub added: Vec<String>,
    /// The names of parts that only the earlier version has.
    pub removed: Vec<String>,
    /// The parts that both versions have, with different fields.
    pub changed: Vec<ChangedPart>,
}

/// A part that is different in the two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedPart {
    /// The name of the part.
    pub name: String,
    /// The fields that differ, with their names in a workflow file.
    pub fields: Vec<String>,
}

impl WorkflowChanges {
    /// Compares a version with the next one.
    pub fn between(before: &Workflow, after: &Workflow) -> WorkflowChanges {
        let (old, new) = (ComparableWorkflow::of(before), ComparableWorkflow::of(after));
        WorkflowChanges {
            settings: differing(&old.settings, &new.settings),
            params: PartChanges::between(&old.params, &new.params),
            schedules: PartChanges::between(&old.schedules, &new.schedules),
            jobs: PartChanges::between(&old.jobs, &new.jobs),
        }
    }

    /// The differences in one line: `jobs added c, changed b (run)`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        if !self.settings.is_empty() {
            parts.push(format!("{} changed", self.settings.join(", ")));
        }
        let kinds = [("jobs", &self.jobs), ("schedules", &self.schedules), ("params", &self.params)];
        parts.extend(kinds.iter().filter_map(|(kind, differences)| differences.summary(kind)));
        if parts.is_empty() { "only the order changed".to_owned() } else { parts.join("; ") }
    }
}

impl PartChanges {
    fn between(before: &NamedParts, after: &NamedParts) -> PartChanges {
        let missing_in = |one: &NamedParts, other: &NamedParts| -> Vec<String> {
            one.iter().filter(|(name, _)| !other.contains_key(*name)).map(|(name, _)| name.clone()).collect()
        };
        let changed = after.iter().filter_map(|(name, new)| {
            let fields = differing(before.get(name)?, new);
            (!fields.is_empty()).then(|| ChangedPart { name: name.clone(), fields })
        });
        PartChanges {
            added: missing_in(after, before),
            removed: missing_in(before, after),
            changed: changed.collect(),
        }
    }

    fn summary(&self, kind: &str) -> Option<String> {
        let changed: Vec<String> =
            self.changed.iter().map(|part| format!("{} ({})", part.name, part.fields.join(", "))).collect();
        let lists = [("added", &self.added), ("removed", &self.removed), ("changed", &changed)];
        let texts: Vec<String> = lists
            .iter()
            .filter(|(_verb, names)| !names.is_empty())
            .map(|(verb, names)| format!("{verb} {}", shortened(names)))
            .collect();
        (!texts.is_empty()).then(|| format!("{kind} {}", texts.join(", ")))
    }
}

fn shortened(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

type NamedParts = BTreeMap<String, Map<String, Value>>;

/// A workflow as JSON objects by name, so that their fields can be compared.
struct ComparableWorkflow {
    settings: Map<String, Value>,
    params: NamedParts,
    schedules: NamedParts,
    jobs: NamedParts,
}

impl ComparableWorkflow {
    fn of(workflow: &Workflow) -> ComparableWorkflow {
        let mut settings = object(workflow);
        let params = named(settings.remove("params"));
        let schedules = named(settings.remove("schedules"));
        settings.remove("jobs");
        let name_of = |index: &usize| Value::from(workflow.jobs[*index].name.as_str());
        let jobs = workflow.jobs.iter().map(|job| {
            let mut fields = object(job);
            // Needs by name: a job whose index moved has not changed.
            fields.insert("needs".to_owned(), job.needs.iter().map(name_of).collect());
            fields.remove("uses");
            fields.remove("name");
            // What the job executes has its keys in an object of its own.
            if let Some(Value::Object(action)) = fields.remove(job.action.kind()) {
                fields.extend(action);
            }
            (job.name.clone(), fields)
        });
        ComparableWorkflow { settings, params, schedules, jobs: jobs.collect() }
    }
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(object)) = serde_json::to_value(value) else { return Map::new() };
    object
}

fn named(list: Option<Value>) -> NamedParts {
    let Some(Value::Array(list)) = list else { return NamedParts::new() };
    let entries = list.into_iter().filter_map(|item| {
        let Value::Object(mut fields) = item else { return None };
        let name = fields.remove("name")?.as_str()?.to_owned();
        Some((name, fields))
    });
    entries.collect()
}

/// The fields that differ, with their names in a workflow file, in alphabetical order.
fn differing(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let name_in_file = |name: &String| name.strip_suffix("_ms").unwrap_or(name).to_owned();
    names.into_iter().filter(differs).map(name_in_file).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass_workflow::{Source, parse};

    fn workflow(text: &str) -> Workflow {
        parse(&Source::new("w.toml", text.into()).unwrap()).unwrap()
    }

    fn summary(before: &str, after: &str) -> String {
        WorkflowChanges::between(&workflow(before), &workflow(after)).summary()
    }

    #[test]
    fn a_summary_names_parts_and_their_fields() {
        let base = "timeout = '1h'\n[params]\nday = { type = 'date' }\n[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n";
        let cases = [
            (base.replace("'y'", "'z'"), "jobs changed b (run)"),
            (base.replace("run = 'y'", "run = 'y'\ndir = 'w'"), "jobs changed b (dir)"),
            (base.replace("needs = ['a']", "needs = []\nqueue = 'mail'"), "jobs changed b (needs, queue)"),
            (base.replace("1h", "2h"), "timeout changed"),
            (format!("{base}[jobs.c]\nrun = 'x'\n"), "jobs added c"),
            (base.replace("day = { type = 'date' }", "other = {}"), "params added other, removed day"),
            (base.replace("type = 'date'", "type = 'string'"), "params changed day (type)"),
            (
                base.replace("[jobs.a]\nrun = 'x'\n", "").replace("needs = ['a']", "timeout = '5s'"),
                "jobs removed a, changed b (needs, timeout)",
            ),
        ];
        for (after, expected) in cases {
            assert_eq!(summary(base, &after), expected, "{after}");
        }
    }

    #[test]
    fn a_job_that_only_moved_has_not_changed() {
        let before = "[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n";
        let after = "[jobs.b]\nrun = 'y'\nneeds = ['a']\n[jobs.a]\nrun = 'x'\n";
        assert_eq!(summary(before, after), "only the order changed");
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let jobs = |range: std::ops::Range<usize>| -> String {
            range.map(|number| format!("[jobs.j{number:02}]\nrun = 'x'\n")).collect()
        };
        let expected = "jobs added j01, j02, j03, j04, j05, j06, j07, j08 and 3 more";
        assert_eq!(summary(&jobs(0..1), &jobs(0..12)), expected);
    }
}
