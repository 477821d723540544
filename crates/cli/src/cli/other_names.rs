//! The verbs of other programs, and what does the same here. They are hints in an error, and no second names.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words, and the commands that a person who types one of them may want.
const VERBS: &[(&[&str], &[&str])] = &[
    (
        &["ls", "list", "ps", "status", "history", "executions"],
        &[
            "`windlass runs` lists runs",
            "`windlass jobs` lists jobs",
            "`windlass inspect` shows the newest run",
        ],
    ),
    (
        &["show", "describe", "get", "info", "view", "details"],
        &[
            "`windlass inspect [RUN|JOB]` shows a run or a job",
            "`windlass workflows show NAME` shows a workflow",
        ],
    ),
    (
        &["exec", "execute", "do"],
        &["`windlass run FILE` runs a workflow", "`windlass enqueue shell` adds a single command as a job"],
    ),
    (
        &["start", "up", "daemon", "server", "scheduler"],
        &[
            "`windlass run FILE` runs a workflow here",
            "`windlass submit FILE` leaves it to a worker",
            "`windlass serve` executes runs and fires schedules",
        ],
    ),
    (&["stop", "kill", "abort", "terminate", "down"], &["`windlass cancel RUN|JOB` stops a run or a job"]),
    (&["log", "tail", "output", "follow"], &["`windlass logs [RUN [JOB]] -f` shows and follows output"]),
    (
        &["attach", "progress", "wait"],
        &["`windlass watch [RUN]` follows a run", "`windlass stats` counts everything"],
    ),
    (&["explain", "debug"], &["`windlass why [RUN|JOB]` gives the reasons"]),
    (
        &["continue", "unpause"],
        &["`windlass resume [RUN]` continues runs", "`windlass queue resume NAME` ends the pause of a queue"],
    ),
    (
        &["pause", "suspend"],
        &[
            "`windlass queue pause NAME`, `windlass schedule pause NAME` and `windlass workflows pause NAME` pause",
        ],
    ),
    (
        &["restart", "redo", "repeat", "again", "replay"],
        &["`windlass retry RUN` repeats the failed part", "`windlass rerun RUN` starts a new run like it"],
    ),
    (
        &["trigger", "fire", "emit", "send", "publish"],
        &[
            "`windlass schedule fire NAME` starts a run of a schedule",
            "`windlass signal EVENT` sends an event",
        ],
    ),
    (
        &["cron", "schedules", "next", "backfill"],
        &["`windlass schedule` lists schedules, and adds and changes them"],
    ),
    (&["check", "lint", "verify"], &["`windlass validate FILE` checks a file"]),
    (&["format"], &["`windlass fmt FILE` formats a file"]),
    (&["new", "create", "scaffold"], &["`windlass init` writes a first workflow file"]),
    (&["dag", "dot", "tree", "draw"], &["`windlass graph [FILE|NAME|RUN]` draws the graph"]),
    (
        &["dags", "flows", "flow", "workflow", "definitions"],
        &["`windlass workflows` lists registered workflows"],
    ),
    (&["register", "deploy", "load"], &["`windlass apply FILE` registers a workflow"]),
    (&["tasks", "task", "job", "dead", "failed"], &["`windlass jobs --status failed` lists jobs"]),
    (&["queues"], &["`windlass queue` lists queues"]),
    (&["workers", "nodes"], &["`windlass stats` counts workers", "`windlass worker` starts one"]),
    (&["add", "push"], &["`windlass enqueue KIND` adds a single job", "`windlass submit FILE` adds a run"]),
    (&["rm", "remove", "prune", "clean", "purge", "gc"], &["`windlass db prune` deletes old runs and jobs"]),
    (
        &["backup", "restore", "migrate", "vacuum", "copy"],
        &["`windlass db --help` lists what can be done with the database"],
    ),
    (&["dry-run", "dryrun", "preview"], &["`windlass plan FILE` shows what would run"]),
    (&["manual", "manpage", "manpages"], &["`windlass man FOLDER` writes the manual pages"]),
    (&["completion"], &["`windlass completions SHELL` prints the script"]),
    (&["version"], &["`windlass --version` prints the version"]),
];

/// Words below a verb that has verbs of its own, and the name there.
const BELOW: &[(&[&str], &str)] = &[
    (&["ls", "ps", "status"], "list"),
    (&["describe", "get", "info", "view", "inspect"], "show"),
    (&["rm", "delete", "del"], "remove"),
    (&["create", "new"], "add"),
    (&["stop", "suspend", "disable"], "pause"),
    (&["start", "unpause", "continue", "enable"], "resume"),
    (&["run", "start", "trigger", "now"], "fire"),
    (&["times", "upcoming"], "next"),
    (&["versions", "log"], "history"),
];

/// Adds hints to the error about an unknown verb, or about a run that is not named.
pub(super) fn add(mut error: clap::Error, root: &clap::Command, arguments: &[String]) -> clap::Error {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return add_latest(error);
    }
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return error;
    };
    let hints = match parent(root, arguments, &word) {
        Some(verb) => below(verb, &word),
        None => hints_of(VERBS, &word),
    };
    if hints.is_empty() {
        return error;
    }
    error.remove(ContextKind::SuggestedSubcommand);
    let hints = hints.into_iter().map(StyledStr::from).collect();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(hints));
    error
}

/// Verbs that change a run ask for its name. The newest one has a short name.
fn add_latest(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else { return error };
    if missing.iter().any(|argument| argument.starts_with("<RUN")) {
        let hint = "`latest` is the newest run, and `windlass runs` lists them";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    }
    error
}

fn hints_of(table: &[(&[&str], &[&str])], word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let found = table.iter().find(|(words, _hints)| words.contains(&word.as_str()));
    found.map(|(_words, hints)| hints.iter().map(|hint| (*hint).to_owned()).collect()).unwrap_or_default()
}

/// The verb with verbs of its own before the unknown word.
fn parent<'c>(root: &'c clap::Command, arguments: &[String], word: &str) -> Option<&'c clap::Command> {
    let before = arguments.iter().skip(1).take_while(|argument| *argument != word);
    before.filter_map(|argument| root.find_subcommand(argument)).find(|verb| verb.has_subcommands())
}

fn below(verb: &clap::Command, word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let names = BELOW.iter().filter(|(words, _name)| words.contains(&word.as_str()));
    names
        .filter(|(_words, name)| verb.find_subcommand(name).is_some())
        .map(|(_words, name)| format!("`windlass {} {name}`", verb.get_name()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_is_a_verb_and_every_hint_names_one() {
        let root = super::super::command();
        for (words, hints) in VERBS {
            for word in *words {
                assert!(root.find_subcommand(word).is_none(), "{word} is a verb");
            }
            for hint in *hints {
                for command in hint.split("`windlass ").skip(1) {
                    let verb = command.split([' ', '`']).next().unwrap_or_default();
                    assert!(verb.starts_with("--") || root.find_subcommand(verb).is_some(), "{hint}");
                }
            }
        }
    }

    #[test]
    fn no_word_stands_twice() {
        let mut words: Vec<&str> = VERBS.iter().flat_map(|(words, _hints)| *words).copied().collect();
        words.sort_unstable();
        let all = words.len();
        words.dedup();
        assert_eq!(words.len(), all);
    }
}
