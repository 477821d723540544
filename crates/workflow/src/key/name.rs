//! The names of keys, and the error for a key that the table does not have.

use crate::report::{Finding, Findings};
use crate::tree::Entry;

/// The name of a key of a table in a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyName {
    pub(crate) name: &'static str,
    /// What other tools call this key, in small letters without `-` and `_`. Messages use it to suggest our key.
    pub(crate) elsewhere: &'static [&'static str],
}

impl KeyName {
    /// A key that other tools call the same, or do not have.
    pub(crate) const fn new(name: &'static str) -> KeyName {
        KeyName { name, elsewhere: &[] }
    }
}

/// Reports a key that the table does not have. `table` is the table's name for people, as in "a job". Returns the key
/// that was probably meant.
pub(crate) fn report_unknown(
    entry: &Entry<'_>,
    table: &str,
    keys: &[KeyName],
    findings: &mut Findings,
) -> Option<&'static str> {
    let suggestion = nearest(&entry.key, keys, findings);
    let finding = unknown(entry, table);
    findings.push(match suggestion {
        Some(near) => finding.label(format!("did you mean `{near}`?")),
        None => {
            let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
            finding.label("not a key of this table").help(format!("the keys are {}", names.join(", ")))
        }
    });
    suggestion
}

/// The error about an unknown key, without advice.
pub(crate) fn unknown(entry: &Entry<'_>, table: &str) -> Finding {
    Finding::new(entry.key_span.clone(), format!("unknown key `{}` in {table}", entry.key))
}

/// The key that the author most likely meant: the key for another tool's word, or a key that is spelled nearly so.
///
/// A misspelled word of another tool counts too: `retires` is nearer to `retries` than to `requires`.
pub(crate) fn nearest(written: &str, keys: &[KeyName], findings: &mut Findings) -> Option<&'static str> {
    if let Some(own) = by_synonym(written, keys) {
        return Some(own);
    }
    let names = keys.iter().map(|key| key.name);
    let synonyms = keys.iter().flat_map(|key| key.elsewhere.iter().copied());
    let near = findings.nearest(written, names.chain(synonyms))?;
    match keys.iter().find(|key| key.name == near) {
        Some(key) => Some(key.name),
        None => by_synonym(near, keys),
    }
}

/// The key of this table that another tool's word stands for.
pub(crate) fn by_synonym(word: &str, keys: &[KeyName]) -> Option<&'static str> {
    let folded = word.to_ascii_lowercase().replace(['-', '_'], "");
    keys.iter().find(|key| key.elsewhere.contains(&folded.as_str())).map(|key| key.name)
}
