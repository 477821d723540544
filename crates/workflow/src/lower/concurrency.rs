//! Reads `concurrency`: how many jobs with the same key may run at a time.

use crate::keys::{self, CONCURRENCY_KEY, Table};
use crate::model::{Concurrency, OnFull};
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;
use crate::{expect, limits};

const ON_FULL: [(&str, OnFull); 3] =
    [("wait", OnFull::Wait), ("skip", OnFull::Skip), ("cancel_oldest", OnFull::CancelOldest)];

pub(super) fn read<'t>(
    entry: &'t Entry<'_>,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Concurrency> {
    let expected = "a table like { key = \"tenant-{{ params.tenant }}\", limit = 1 }";
    let (mut key, mut limit, mut on_full) = (None, 1, OnFull::Wait);
    // A wrong key was reported, so it is not reported as missing.
    let mut key_is_wrong = false;
    for part in expect::table(entry, usize::MAX, expected, findings)? {
        let key_found = match keys::find(part, Table::Concurrency, findings) {
            Ok(key_found) => key_found,
            Err(unknown) => {
                key_is_wrong |= unknown.meant == Some("key");
                continue;
            }
        };
        match key_found.name() {
            "key" => {
                key = expect::filled_text(&part.node, "`key`", findings).map(str::to_owned);
                key_is_wrong |= key.is_none();
                templates.add(&part.node, &CONCURRENCY_KEY);
            }
            "limit" => limit = expect::integer(part, 1..=limits::CONCURRENCY, findings)?,
            "on_full" => on_full = expect::word(part, &ON_FULL, findings)?,
            _ => (),
        }
    }
    if key.is_none() && !key_is_wrong {
        let finding = Finding::new(entry.key_span.clone(), "`concurrency` has no `key`");
        findings.push(finding.help("add a `key`; jobs with the same key share the limit, in all workflows"));
    }
    Some(Concurrency { key: key?, limit, on_full })
}
