//! The differences between two versions of a workflow, by names and fields.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use windlass_workflow::{Job, Workflow};

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
            jobs: PartChanges::of_jobs(before, after),
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
    /// Fields are compared only of jobs that are not the same: a workflow may have 10,000.
    fn of_jobs(before: &Workflow, after: &Workflow) -> PartChanges {
        let by_name = |workflow: &'_ Workflow| -> BTreeMap<String, usize> {
            workflow.jobs.iter().enumerate().map(|(place, job)| (job.name.clone(), place)).collect()
        };
        let (old, new) = (by_name(before), by_name(after));
        let missing_in = |one: &BTreeMap<String, usize>, other: &BTreeMap<String, usize>| -> Vec<String> {
            one.keys().filter(|name| !other.contains_key(*name)).cloned().collect()
        };
        let changed = new.iter().filter_map(|(name, place)| {
            let (earlier, later) = (&before.jobs[*old.get(name)?], &after.jobs[*place]);
            let is_needed_same = names(before, &earlier.needs).eq(names(after, &later.needs));
            if earlier == later && is_needed_same {
                return None;
            }
            let fields = differing(&fields_of_job(before, earlier), &fields_of_job(after, later));
            (!fields.is_empty()).then(|| ChangedPart { name: name.clone(), fields })
        });
        PartChanges {
            changed: changed.collect(),
            added: missing_in(&new, &old),
            removed: missing_in(&old, &new),
        }
    }

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

/// A workflow without its jobs as JSON objects by name, so that their fields can be compared.
struct ComparableWorkflow {
    settings: Map<String, Value>,
    params: NamedParts,
    schedules: NamedParts,
}

impl ComparableWorkflow {
    fn of(workflow: &Workflow) -> ComparableWorkflow {
        let mut without_jobs = workflow.clone();
        without_jobs.jobs.clear();
        let mut settings = object(&without_jobs);
        let params = named(settings.remove("params"));
        let schedules = named(settings.remove("schedules"));
        settings.remove("jobs");
        ComparableWorkflow { settings, params, schedules }
    }
}

/// The names of jobs at these places.
fn names<'w>(workflow: &'w Workflow, places: &'w [usize]) -> impl Iterator<Item = &'w str> {
    places.iter().map(|place| workflow.jobs[*place].name.as_str())
}

/// The fields of a job as they are in a file.
fn fields_of_job(workflow: &Workflow, job: &Job) -> Map<String, Value> {
    let mut fields = object(job);
    // Needs by name: a job whose index moved has not changed.
    fields.insert("needs".to_owned(), names(workflow, &job.needs).map(Value::from).collect());
    fields.remove("uses");
    fields.remove("name");
    // What the job executes has its keys in an object of its own.
    if let Some(Value::Object(action)) = fields.remove(job.action.kind()) {
        fields.extend(action);
    }
    fields
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

    /// The two jobs `c` are equal but for what their places mean.
    #[test]
    fn a_job_that_needs_another_one_at_the_same_place_has_changed() {
        let after =
            |name: &str| format!("[jobs.{name}]\nrun = 'x'\n[jobs.c]\nrun = 'y'\nneeds = ['{name}']\n");
        assert_eq!(summary(&after("a"), &after("b")), "jobs added b, removed a, changed c (needs)");
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
