//! What another version of a workflow changes, by names and fields.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use windlass::workflow::Workflow;

/// Names that one list of the text shows; the others are counted.
const NAMES_SHOWN: usize = 8;

/// How two versions differ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Changes {
    /// Of the workflow itself, such as `timeout`.
    pub(crate) settings: Vec<String>,
    pub(crate) params: Parts,
    pub(crate) schedules: Parts,
    pub(crate) jobs: Parts,
}

/// How lists of named parts differ.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(crate) struct Parts {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) changed: Vec<ChangedPart>,
}

/// A part that is in both versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ChangedPart {
    pub(crate) name: String,
    /// As they are called in a file.
    pub(crate) fields: Vec<String>,
}

impl Changes {
    /// From one version to the next.
    pub(crate) fn between(before: &Workflow, after: &Workflow) -> Changes {
        let (old, new) = (Form::of(before), Form::of(after));
        Changes {
            settings: differing(&old.settings, &new.settings),
            params: Parts::between(&old.params, &new.params),
            schedules: Parts::between(&old.schedules, &new.schedules),
            jobs: Parts::between(&old.jobs, &new.jobs),
        }
    }

    /// In one line.
    pub(crate) fn text(&self) -> String {
        let mut parts = Vec::new();
        if !self.settings.is_empty() {
            parts.push(format!("{} changed", self.settings.join(", ")));
        }
        let kinds = [("jobs", &self.jobs), ("schedules", &self.schedules), ("params", &self.params)];
        parts.extend(kinds.iter().filter_map(|(kind, differences)| differences.text(kind)));
        if parts.is_empty() { "only the order changed".to_owned() } else { parts.join("; ") }
    }
}

impl Parts {
    fn between(before: &Named, after: &Named) -> Parts {
        let missing_in = |one: &Named, other: &Named| -> Vec<String> {
            one.iter().filter(|(name, _)| !other.contains_key(*name)).map(|(name, _)| name.clone()).collect()
        };
        let changed = after.iter().filter_map(|(name, new)| {
            let fields = differing(before.get(name)?, new);
            (!fields.is_empty()).then(|| ChangedPart { name: name.clone(), fields })
        });
        Parts {
            added: missing_in(after, before),
            removed: missing_in(before, after),
            changed: changed.collect(),
        }
    }

    fn text(&self, kind: &str) -> Option<String> {
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

type Named = BTreeMap<String, Map<String, Value>>;

/// A workflow as parts with fields that can be compared.
struct Form {
    settings: Map<String, Value>,
    params: Named,
    schedules: Named,
    jobs: Named,
}

impl Form {
    fn of(workflow: &Workflow) -> Form {
        let mut settings = object(workflow);
        let params = named(settings.remove("params"));
        let schedules = named(settings.remove("schedules"));
        settings.remove("jobs");
        let name_of = |index: &usize| Value::from(workflow.jobs[*index].name.as_str());
        let jobs = workflow.jobs.iter().map(|job| {
            let mut fields = object(job);
            // The same jobs under other numbers are no change.
            fields.insert("needs".to_owned(), job.needs.iter().map(name_of).collect());
            fields.remove("uses");
            fields.remove("name");
            (job.name.clone(), fields)
        });
        Form { settings, params, schedules, jobs: jobs.collect() }
    }
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    let Ok(Value::Object(object)) = serde_json::to_value(value) else { return Map::new() };
    object
}

fn named(list: Option<Value>) -> Named {
    let Some(Value::Array(list)) = list else { return Named::new() };
    let entries = list.into_iter().filter_map(|item| {
        let Value::Object(mut fields) = item else { return None };
        let name = fields.remove("name")?.as_str()?.to_owned();
        Some((name, fields))
    });
    entries.collect()
}

/// The fields that are not the same, as a file calls them, in alphabetical order.
fn differing(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let in_a_file = |name: &String| name.strip_suffix("_ms").unwrap_or(name).to_owned();
    names.into_iter().filter(differs).map(in_a_file).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use windlass::workflow::{Source, parse};

    fn workflow(text: &str) -> Workflow {
        parse(&Source::new("w.toml", text.into()).unwrap()).unwrap()
    }

    fn text(before: &str, after: &str) -> String {
        Changes::between(&workflow(before), &workflow(after)).text()
    }

    #[test]
    fn changes_are_told_by_names_and_fields() {
        let base = "timeout = '1h'\n[params]\nday = { type = 'date' }\n[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n";
        let cases = [
            (base.replace("'y'", "'z'"), "jobs changed b (run)"),
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
            assert_eq!(text(base, &after), expected, "{after}");
        }
    }

    #[test]
    fn a_job_that_moved_is_told_apart_from_one_that_changed() {
        let before = "[jobs.a]\nrun = 'x'\n[jobs.b]\nrun = 'y'\nneeds = ['a']\n";
        let after = "[jobs.b]\nrun = 'y'\nneeds = ['a']\n[jobs.a]\nrun = 'x'\n";
        assert_eq!(text(before, after), "only the order changed");
    }

    #[test]
    fn long_lists_are_counted() {
        let jobs = |range: std::ops::Range<usize>| -> String {
            range.map(|number| format!("[jobs.j{number:02}]\nrun = 'x'\n")).collect()
        };
        let expected = "jobs added j01, j02, j03, j04, j05, j06, j07, j08 and 3 more";
        assert_eq!(text(&jobs(0..1), &jobs(0..12)), expected);
    }
}
