//! The words that are typed. Each shell has its own way to hand them over.

use std::env;
use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

use clap::{ArgMatches, FromArgMatches};

use crate::arguments::GlobalOptions;
use crate::cli;

/// The words of the command line that is completed. They are the same for all values.
static TYPED: OnceLock<Typed> = OnceLock::new();

/// The words of a command line, the first of which is the name of the program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Typed {
    pub(super) words: Vec<OsString>,
    /// The word that is completed. It may be one after the last.
    pub(super) index: usize,
    /// The beginning of this word that the shell keeps. It replaces only the rest.
    pub(super) kept: String,
}

/// Reads the words from the arguments of this process: those after `--`.
pub(super) fn remember(shell: &OsStr) {
    let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let index = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    let index = index.unwrap_or(words.len().saturating_sub(1));
    let typed = match shell.to_str().is_some_and(|shell| shell.ends_with("bash")) {
        true => joined(words, index),
        false => Typed { words, index, kept: String::new() },
    };
    let _first = TYPED.set(typed);
}

/// The words that are typed.
pub(super) fn typed() -> Typed {
    TYPED.get().cloned().unwrap_or_default()
}

/// The word that is completed.
pub(super) fn current() -> String {
    let typed = typed();
    typed.words.get(typed.index).map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The command line before the word that is completed, as far as it makes sense.
fn matches() -> Option<ArgMatches> {
    let typed = typed();
    let before = typed.words.into_iter().take(typed.index);
    cli::command().ignore_errors(true).try_get_matches_from(before).ok()
}

/// The global options before the word that is completed.
pub(super) fn global() -> Option<GlobalOptions> {
    let matches = matches()?;
    GlobalOptions::from_arg_matches(&innermost(&matches)).ok()
}

/// The value of an argument of the verb, before the word that is completed.
pub(super) fn value_of(argument: &str) -> Option<String> {
    let matches = matches()?;
    let matches = innermost(&matches);
    let value = matches.try_get_raw(argument).ok().flatten()?.next_back()?;
    value.to_str().map(str::to_owned)
}

/// The part of the verb that was named last: it has the global options too.
fn innermost(matches: &ArgMatches) -> ArgMatches {
    let mut innermost = matches;
    while let Some((_verb, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    innermost.clone()
}

/// Bash takes `=` and `:` for words of their own, and replaces only what stands behind them.
fn joined(words: Vec<OsString>, index: usize) -> Typed {
    let is_break = |word: &OsStr| {
        word.to_str()
            .is_some_and(|word| !word.is_empty() && word.bytes().all(|byte| matches!(byte, b'=' | b':')))
    };
    let mut typed = Typed::default();
    // A word that is not begun may be missing.
    let is_missing = index >= words.len();
    let mut continues = false;
    for (position, word) in words.into_iter().enumerate() {
        let is_joined = position > 0 && (continues || is_break(&word));
        continues = position > 0 && is_break(&word);
        match typed.words.last_mut().filter(|_last| is_joined) {
            Some(last) => {
                if position == index {
                    typed.kept = last.to_string_lossy().into_owned();
                }
                last.push(&word);
            }
            None => typed.words.push(word),
        }
        if position == index {
            typed.index = typed.words.len() - 1;
        }
    }
    if is_missing {
        typed.index = typed.words.len();
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(words: &[&str], index: usize) -> (Vec<String>, usize, String) {
        let typed = joined(words.iter().map(OsString::from).collect(), index);
        let words = typed.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (words, typed.index, typed.kept)
    }

    #[test]
    fn what_bash_takes_apart_is_one_word_again() {
        let address = ["windlass", "--db", "postgres", ":", "//u@h", ":", "5432/db", "logs", "la"];
        let words = ["windlass", "--db", "postgres://u@h:5432/db", "logs", "la"].map(str::to_owned).to_vec();
        assert_eq!(join(&address, 8), (words, 4, String::new()));
        let option = ["windlass", "jobs", "--status", "=", "fa", "-n", "3"];
        let words = ["windlass", "jobs", "--status=fa", "-n", "3"].map(str::to_owned).to_vec();
        assert_eq!(join(&option, 4), (words, 2, "--status=".to_owned()));
    }

    #[test]
    fn other_words_stay() {
        let cases = [
            (vec!["windlass", "logs", ""], 2),
            (vec!["windlass", "logs", "3", "-f"], 3),
            (vec!["windlass", "logs"], 2),
        ];
        for (words, index) in cases {
            let expected = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(join(&words, index), (expected, index, String::new()));
        }
    }
}
