//! `concurrency`: how many jobs with the same key may run at a time.

use super::expect;
use super::keys;
use crate::limits;
use crate::model::{Concurrency, OnFull};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;

const ON_FULL: [(&str, OnFull); 3] =
    [("wait", OnFull::Wait), ("skip", OnFull::Skip), ("cancel_oldest", OnFull::CancelOldest)];

/// What the table says.
struct Parts {
    key: Option<String>,
    limit: i64,
    on_full: OnFull,
    is_broken: bool,
}

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Concurrency> {
    let expected = "a table like { key = \"tenant-{{ params.tenant }}\", limit = 1 }";
    let mut parts = Parts { key: None, limit: 1, on_full: OnFull::Wait, is_broken: false };
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        match part.key.as_ref() {
            "key" => {
                parts.key = expect::filled_text(&part.node, "`key`", findings).map(str::to_owned);
                parts.is_broken |= parts.key.is_none();
                templates.add_key(&part.node);
            }
            "limit" => parts.limit = expect::integer(part, 1..=limits::CONCURRENCY, findings)?,
            "on_full" => parts.on_full = expect::word(part, &ON_FULL, findings)?,
            _ => {
                let meant = keys::unknown(part, "`concurrency`", &keys::CONCURRENCY, findings);
                parts.is_broken |= meant == Some("key");
            }
        }
    }
    let Parts { key, limit, on_full, is_broken } = parts;
    if key.is_none() && !is_broken {
        let finding = Finding::new(entry.key_span.clone(), "`concurrency` has no `key`");
        findings
            .push(finding.help("jobs with the same key share the limit, in all workflows: give it a name"));
    }
    Some(Concurrency { key: key?, limit, on_full })
}
