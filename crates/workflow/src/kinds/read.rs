//! Lists the keys of all kinds, and reads what a job executes.

use std::sync::OnceLock;

use super::{Action, ActionKey, Defaults, KINDS, Kind};
use crate::key::Key;
use crate::report::{Finding, Findings};
use crate::template::Templates;
use crate::tree::Entry;

/// The keys that choose what a job executes, each with its kind.
pub(super) fn action_keys() -> impl Iterator<Item = (&'static Kind, &'static ActionKey)> {
    KINDS.iter().copied().flat_map(|kind| kind.action_keys.iter().map(move |key| (kind, key)))
}

/// The keys of all kinds, each once. Two kinds may have the same key.
pub(crate) fn keys() -> &'static [&'static Key] {
    static KEYS: OnceLock<Vec<&'static Key>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let of_kind =
            |kind: &'static Kind| kind.action_keys.iter().map(|action| &action.key).chain(kind.other_keys);
        let mut unique: Vec<&'static Key> = Vec::new();
        for key in KINDS.iter().copied().flat_map(of_kind) {
            if unique.iter().all(|known| known.name() != key.name()) {
                unique.push(key);
            }
        }
        unique
    })
}

/// Whether the key belongs to a kind.
pub(crate) fn is_key(name: &str) -> bool {
    keys().iter().any(|key| key.name() == name)
}

/// Whether the key chooses what a job executes.
pub(crate) fn is_action_key(name: &str) -> bool {
    action_keys().any(|(_kind, action)| action.key.name() == name)
}

/// The names of the keys that choose what a job executes.
pub(crate) fn action_key_names() -> Vec<&'static str> {
    action_keys().map(|(_kind, action)| action.key.name()).collect()
}

/// The keys that choose what a job executes, for messages: "`run` or `command`".
pub(crate) fn action_keys_text() -> String {
    listed(action_keys().map(|(_kind, action)| format!("`{}`", action.key.name())).collect())
}

/// Reads what a job executes. `keys` are the entries of the job that [`is_key`] accepts. Gives nothing when the job
/// has no action or a wrong one.
pub(crate) fn read<'t>(
    job: &Entry<'_>,
    keys: &[&'t Entry<'_>],
    defaults: &Defaults,
    templates: &mut Templates<'t>,
    findings: &mut Findings,
) -> Option<Action> {
    let find = |entry: &Entry<'_>| action_keys().find(|(_kind, action)| action.key.name() == entry.key);
    let mut actions =
        keys.iter().filter_map(|entry| find(entry).map(|(kind, action)| (*entry, kind, action)));
    let (first, kind, action) = actions.next()?;
    // The same key twice is an error of the syntax, which was reported.
    if let Some((second, _kind, other)) = actions.find(|(entry, _kind, _action)| entry.key != first.key) {
        let message = format!("job `{}` has both `{}` and `{}`", job.key, first.key, second.key);
        let help = format!(
            "a job executes one thing; keep `{}` ({}) or `{}` ({})",
            first.key, action.holds, second.key, other.holds
        );
        let related = format!("`{}` is here", first.key);
        findings.push(
            Finding::new(second.key_span.clone(), message)
                .related(first.key_span.clone(), related)
                .help(help),
        );
    }
    let belongs = |entry: &Entry<'_>| {
        let is_of_kind = |key: &Key| key.name() == entry.key;
        kind.other_keys.iter().any(is_of_kind) || is_action_key(&entry.key)
    };
    for entry in keys.iter().filter(|entry| !belongs(entry)) {
        findings.push(useless_beside(entry, first).help(format!("remove `{}`", entry.key)));
    }
    (kind.read)(keys, defaults, templates, findings)
}

/// The error about a job without an action.
pub(crate) fn nothing_to_execute(job: &Entry<'_>) -> Finding {
    let choices = action_keys()
        .map(|(_kind, action)| format!("`{}` with {}", action.key.name(), action.holds))
        .collect();
    Finding::new(job.key_span.clone(), format!("job `{}` has nothing to execute", job.key))
        .label(format!("needs {}", action_keys_text()))
        .help(format!("add {}", listed(choices)))
}

/// The error about a key that has no effect because of what the job executes.
pub(crate) fn useless_beside(entry: &Entry<'_>, action: &Entry<'_>) -> Finding {
    Finding::new(entry.key_span.clone(), format!("`{}` has no effect beside `{}`", entry.key, action.key))
        .related(action.key_span.clone(), format!("`{}` is here", action.key))
}

/// "a", "a or b", "a, b or c".
fn listed(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    match words.is_empty() {
        true => last,
        false => format!("{} or {last}", words.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_are_listed_with_or() {
        let list = |words: &[&str]| listed(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b"]), "a or b");
        assert_eq!(list(&["a", "b", "c"]), "a, b or c");
    }
}
