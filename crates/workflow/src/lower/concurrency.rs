//! Reads `concurrency`: how many jobs with the same key may run at a time, or how many runs may be active.

use crate::key::Key;
use crate::keys::{self, CONCURRENCY_KEY, RUN_CONCURRENCY_KEY, Table};
use crate::model::{Concurrency, OnFull};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;
use crate::{expect, limits};

const ON_FULL: [(&str, OnFull); 3] =
    [("wait", OnFull::Wait), ("skip", OnFull::Skip), ("cancel_oldest", OnFull::CancelOldest)];

/// What a `concurrency` limits.
struct Limited {
    table: Table,
    key: Key,
    expected: &'static str,
}

/// Reads `concurrency` of a job.
pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Concurrency> {
    let expected = "a table like { key = \"tenant-{{ params.tenant }}\", limit = 1 }";
    let jobs = Limited { table: Table::Concurrency, key: CONCURRENCY_KEY, expected };
    let Parts { key, limit, on_full } = read_parts(entry, &jobs, templates, findings)?;
    match key {
        WrittenKey::Text(key) => Some(Concurrency { key, limit, on_full }),
        WrittenKey::Wrong => None,
        WrittenKey::Missing => {
            let finding = Finding::new(entry.key_span.clone(), "`concurrency` has no `key`");
            findings
                .push(finding.help("add a `key`; jobs with the same key share the limit, in all workflows"));
            None
        }
    }
}

/// `concurrency` of a workflow.
#[derive(Debug, Clone)]
pub(super) struct RunConcurrency {
    /// None if the file does not name one. Then all runs of the workflow have the same one, and no others.
    key: Option<String>,
    limit: i64,
    on_full: OnFull,
}

impl RunConcurrency {
    /// The limit of a workflow. `own_key` is the key that the runs of this workflow share with no others.
    pub(super) fn of_workflow(self, own_key: String) -> Concurrency {
        let RunConcurrency { key, limit, on_full } = self;
        Concurrency { key: key.unwrap_or(own_key), limit, on_full }
    }
}

/// Reads `concurrency` of a workflow.
pub(super) fn read_of_runs<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<RunConcurrency> {
    let expected = "a table like { limit = 1, on_full = \"wait\" }";
    let runs = Limited { table: Table::RunConcurrency, key: RUN_CONCURRENCY_KEY, expected };
    let Parts { key, limit, on_full } = read_parts(entry, &runs, templates, findings)?;
    match key {
        WrittenKey::Text(key) => Some(RunConcurrency { key: Some(key), limit, on_full }),
        WrittenKey::Missing => Some(RunConcurrency { key: None, limit, on_full }),
        WrittenKey::Wrong => None,
    }
}

/// What the file says about the key.
enum WrittenKey {
    Text(String),
    Missing,
    /// It was reported, so it is not reported as missing.
    Wrong,
}

struct Parts {
    key: WrittenKey,
    limit: i64,
    on_full: OnFull,
}

fn read_parts<'t>(
    entry: &'t Entry<'_>,
    limited: &Limited,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Parts> {
    let mut parts = Parts { key: WrittenKey::Missing, limit: 1, on_full: OnFull::Wait };
    for part in expect::table(entry, usize::MAX, limited.expected, findings)? {
        let key_found = match keys::find(part, limited.table, findings) {
            Ok(key_found) => key_found,
            Err(unknown) => {
                if unknown.meant == Some("key") {
                    parts.key = WrittenKey::Wrong;
                }
                continue;
            }
        };
        match key_found.name() {
            "key" => {
                let text = expect::filled_text(&part.node, "`key`", findings);
                parts.key = text.map_or(WrittenKey::Wrong, |text| WrittenKey::Text(text.to_owned()));
                templates.add(&part.node, &limited.key);
            }
            // A wrong value was reported, so that the file is refused.
            "limit" => {
                let limit = expect::integer(part, 1..=limits::CONCURRENCY, findings);
                parts.limit = limit.unwrap_or(parts.limit);
            }
            "on_full" => parts.on_full = expect::word(part, &ON_FULL, findings).unwrap_or(parts.on_full),
            _ => (),
        }
    }
    Some(parts)
}
