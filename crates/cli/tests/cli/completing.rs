//! Completion in a shell.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{BAD, Bench, GOOD, Running};

/// Long enough for a busy machine.
const PATIENCE_MS: &str = "30000";

/// What is offered for the last of these words, as bash asks. Nothing may be on standard error.
pub(crate) fn offered(bench: &Bench, words: &[&str]) -> Vec<String> {
    offered_within(bench, words, PATIENCE_MS)
}

/// What is offered if the database may take so long.
pub(crate) fn offered_within(bench: &Bench, words: &[&str], wait_ms: &str) -> Vec<String> {
    let mut command = bench.command();
    command.env("WINDLASS_COMPLETE_WAIT_MS", wait_ms);
    command.env("WINDLASS_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.args(["--", "windlass"]).args(words);
    let outcome = Running::start(command).wait();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{outcome:#?}");
    outcome.stdout.lines().map(str::to_owned).collect()
}

/// Two runs of `good` and one of `bad`, a job that stands alone, a queue, a schedule.
pub(crate) fn filled() -> Bench {
    let bench = Bench::new();
    bench.write("good.toml", &GOOD.replacen("name = \"good\"", "name = \"good\"\ntags = [\"daily\"]", 1));
    bench.write("bad.toml", BAD);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["run", "bad.toml"]).code(1);
    bench.windlass(&["run", "good.toml"]).code(0);
    bench.windlass(&["enqueue", "mail", "--queue", "letters"]).code(0);
    bench.windlass(&["apply", "good.toml"]).code(0);
    bench.windlass(&["schedule", "add", "nightly", "good", "--cron", "0 3 * * *"]).code(0);
    bench
}

#[test]
fn runs_and_their_jobs_are_offered() {
    let bench = filled();
    assert_eq!(offered(&bench, &["inspect", ""]), ["latest", "3", "2", "1", "good", "bad"]);
    assert_eq!(offered(&bench, &["watch", "b"]), ["bad"]);
    assert_eq!(offered(&bench, &["logs", "2", ""]), ["load", "after", "other"]);
    assert_eq!(offered(&bench, &["logs", "latest", "re"]), ["report"]);
    assert_eq!(offered(&bench, &["why", "bad/o"]), ["bad/other"]);
    assert_eq!(offered(&bench, &["retry", "2", "--from", "l"]), ["load"]);
    assert_eq!(offered(&bench, &["change", ""]), ["j8"]);
    assert_eq!(offered(&bench, &["inspect", "j"]), ["j8"]);
}

#[test]
fn names_and_states_are_offered() {
    let bench = filled();
    assert_eq!(offered(&bench, &["runs", "--status", "f"]), ["failed"]);
    assert_eq!(offered(&bench, &["jobs", "--status", "failed,can"]), ["failed,cancelled"]);
    assert_eq!(offered(&bench, &["runs", "--workflow", ""]), ["good", "bad"]);
    assert_eq!(offered(&bench, &["runs", "--tag", "d"]), ["daily"]);
    assert_eq!(offered(&bench, &["jobs", "--kind", "m"]), ["mail"]);
    assert_eq!(offered(&bench, &["queue", "pause", "l"]), ["letters"]);
    assert_eq!(offered(&bench, &["schedule", "pause", ""]), ["good/nightly"]);
}

#[test]
fn files_and_what_they_have_are_offered() {
    let bench = filled();
    bench.write("notes.txt", "");
    assert_eq!(offered(&bench, &["validate", ""]), ["bad.toml", "good.toml"]);
    assert_eq!(offered(&bench, &["run", "go"]), ["good.toml", "good"]);
    assert_eq!(offered(&bench, &["run", "bad.toml", "--only", "o"]), ["other"]);
    assert_eq!(offered(&bench, &["run", "good.toml", "-p", ""]), ["day=", "count="]);
}

#[test]
fn options_are_offered_when_one_is_begun() {
    let bench = Bench::new();
    let options = offered(&bench, &["runs", "--"]);
    assert!(
        ["--status", "--workflow", "--db"].iter().all(|option| options.iter().any(|found| found == option))
    );
    assert_eq!(offered(&bench, &["ins"]), ["inspect"]);
    assert_eq!(offered(&bench, &["schedule", "f"]), ["fire"]);
}

/// A TAB in any folder leaves the folder as it was.
#[test]
fn without_a_database_nothing_is_offered_and_nothing_is_made() {
    let bench = Bench::new();
    let here = ["--db", "none.db", "inspect", ""];
    let only_options = |words: &[&str]| offered(&bench, words).iter().all(|value| value.starts_with("--"));
    assert!(only_options(&here));
    bench.write("broken.db", "this is no database, and longer than a header needs to be for SQLite to look");
    assert!(only_options(&["--db", "broken.db", "inspect", ""]));
    assert!(only_options(&["--db", "postgres", ":", "//nobody@127.0.0.1", ":", "1/none", "logs", ""]));
    let left: Vec<_> =
        std::fs::read_dir(bench.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["broken.db"]);
}

#[test]
fn the_database_is_found_as_by_every_verb() {
    let bench = filled();
    let away = bench.path("away");
    std::fs::create_dir(&away).unwrap();
    let address = bench.database.address();
    std::fs::write(away.join("windlass.toml"), format!("database = '{address}'\n")).unwrap();
    // How many runs are offered.
    let ask = |words: &[&str], variable: Option<&str>| {
        let mut command = bench.command();
        command.env_remove("WINDLASS_DB").current_dir(&away).env("WINDLASS_COMPLETE", "fish");
        command.env("WINDLASS_COMPLETE_WAIT_MS", PATIENCE_MS);
        command.args(["--", "windlass"]).args(words);
        if let Some(database) = variable {
            command.env("WINDLASS_DB", database);
        }
        let offered = Running::start(command).wait().stdout;
        offered.lines().filter(|line| !line.starts_with('-')).count()
    };
    assert_eq!(ask(&["watch", ""], None), 6, "windlass.toml");
    assert_eq!(ask(&["watch", ""], Some("none.db")), 0, "the variable before the file");
    assert_eq!(ask(&["--db", &address, "watch", ""], Some("none.db")), 6, "the option before the variable");
    std::fs::remove_file(away.join("windlass.toml")).unwrap();
    assert_eq!(ask(&["watch", "", "--db"], None), 0, "an option that is not finished");
}

#[test]
fn a_name_that_a_shell_would_execute_is_not_offered() {
    let bench = Bench::new();
    bench.write("evil.toml", "name = 'x$(touch pwned)'\n[jobs.a]\nrun = 'true'\n");
    bench.windlass(&["run", "evil.toml"]);
    let found = offered(&bench, &["inspect", ""]);
    assert!(found.iter().all(|value| !value.contains('$')), "{found:?}");
}

/// The lines that a script printed, with `windlass` in `PATH`.
fn in_shell(bench: &Bench, shell: &str, arguments: &[&str], script: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = bench.prepared(Command::new(shell));
    command.args(arguments).arg(script).env("PATH", path).env("HOME", bench.folder()).stdin(Stdio::null());
    command.env("WINDLASS_COMPLETE_WAIT_MS", PATIENCE_MS);
    let output =
        command.output().unwrap_or_else(|error| panic!("{shell}: {error}; scripts/setup installs it"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes() {
    let bench = filled();
    // What bash does at TAB, without a terminal: it splits the line, and calls the function.
    let script = r#"
        source <(windlass completions bash)
        ask() {
            local IFS=$' \t\n'
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; COMPREPLY=()
            _clap_complete_windlass windlass "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>/dev/null
            IFS=,; echo "${COMPREPLY[*]}"
        }
        ask windlass inspect ''
        ask windlass logs 2 o
        ask windlass jobs --status = fa
        complete -p windlass | grep -c _clap_complete_windlass
    "#;
    let said = in_shell(&bench, "bash", &["--norc", "-c"], script);
    assert_eq!(said, "latest,3,2,1,good,bad\nother\nfailed\n1\n");
}

#[test]
fn fish_completes() {
    let bench = filled();
    let script = r#"
        windlass completions fish | source
        complete -C 'windlass inspect ' | string replace -r '\t.*' ''
        complete -C 'windlass logs bad o'
        complete -C 'windlass runs --status fa'
    "#;
    let said = in_shell(&bench, "fish", &["--no-config", "-c"], script);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[..6], ["latest", "3", "2", "1", "good", "bad"]);
    assert_eq!(said[6..], ["other\tSUCCESSFUL", "failed"]);
}

#[test]
fn zsh_completes() {
    let bench = filled();
    // The last part of the way, which needs a terminal, is zsh's own `_describe`.
    let script = r#"
        mkdir functions && windlass completions zsh > functions/_windlass
        fpath=($PWD/functions $fpath)
        autoload -Uz compinit && compinit -u -D
        _describe() { print -r -- ${(j:|:)${(P)@[-1]}%%:*} }
        ask() { words=("$@"); CURRENT=$#; $_comps[windlass] }
        ask windlass inspect ''
        ask windlass logs bad o
        ask windlass runs --status fa
    "#;
    let said = in_shell(&bench, "zsh", &["-f", "-c"], script);
    assert_eq!(said, "latest|3|2|1|good|bad\nother\nfailed\n");
}
