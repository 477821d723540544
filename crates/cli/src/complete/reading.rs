//! Reads what can be completed from the database, and gives up soon.

use std::sync::mpsc;
use std::thread;

use clap_complete::CompletionCandidate;

use super::{OFFERED_MAX, wait, words};
use crate::config;
use crate::database::Database;
use crate::text::style::printable;

/// A value, and what it is in a few words. Some shells show the latter.
pub(super) type Candidate = (String, String);

/// A value that needs no explanation.
pub(super) fn plain(value: impl Into<String>) -> Candidate {
    (value.into(), String::new())
}

/// Calls `read` in a thread of its own, and offers what begins with `prefix`. Nothing if it takes too long or fails.
pub(super) fn offer(
    prefix: &str,
    read: impl FnOnce() -> Option<Vec<Candidate>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let _too_late = sender.send(read());
    };
    // At its end the process does not wait for this thread.
    let Ok(_thread) = thread::Builder::new().name("completion".to_owned()).spawn(read) else {
        return Vec::new();
    };
    let found = receiver.recv_timeout(wait()).ok().flatten().unwrap_or_default();
    candidates(prefix, found)
}

fn candidates(prefix: &str, found: Vec<Candidate>) -> Vec<CompletionCandidate> {
    let mut offered: Vec<Candidate> = Vec::new();
    for (value, about) in found {
        let is_new = offered.iter().all(|(other, _about)| *other != value);
        if is_new && value.starts_with(prefix) && is_harmless(&value) {
            offered.push((value, about));
        }
        if offered.len() == OFFERED_MAX {
            break;
        }
    }
    let with_help = |(value, about): Candidate| {
        let help = Some(printable(&about).into_owned().into()).filter(|_help| !about.is_empty());
        CompletionCandidate::new(value).help(help)
    };
    offered.into_iter().map(with_help).collect()
}

/// Whether the shell takes the text as it is. Bash inserts a value without quotes, and others have chosen the names in a
/// database: a name such as `$(reboot)` must not get to the prompt.
fn is_harmless(value: &str) -> bool {
    let is_taken = |character: char| character.is_alphanumeric() || "-_./~@%+,:=[]".contains(character);
    !value.starts_with(['-', '~', '=']) && value.chars().all(is_taken)
}

/// The database of the command line that is completed, if it exists. Jobs of dead workers stay as they are.
pub(super) fn database() -> Option<Database> {
    let global = words::global()?;
    let config = config::read_here(global.config().as_deref()).ok()?;
    Database::existing_without_rescue(&global.configured(config.global)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_shell_would_execute_are_not_offered() {
        for name in ["$(reboot)", "a b", "a;b", "`x`", "a'b", "~root", "-rf", "a\nb", "a\u{1b}[2J", "*"] {
            assert!(!is_harmless(name), "{name}");
        }
        for name in ["etl", "latest~1", "3/load[2]", "team/etl", "für_alle", "day=", "a.b-c"] {
            assert!(is_harmless(name), "{name}");
        }
    }

    #[test]
    fn so_many_are_offered_and_each_once() {
        let found = (0..200).map(|number| plain(format!("r{}", number % 100))).collect();
        assert_eq!(candidates("r", found).len(), OFFERED_MAX);
        assert_eq!(candidates("x", vec![plain("x1"), plain("x1"), plain("y")]).len(), 1);
    }

    #[test]
    fn who_is_too_slow_offers_nothing() {
        let (held, receiver) = mpsc::channel::<()>();
        let offered = offer("", move || receiver.recv().ok().map(|()| vec![plain("late")]));
        assert!(offered.is_empty());
        drop(held);
    }
}
