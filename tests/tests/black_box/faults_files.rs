//! Invalid workflow files and parameters: one clear message with a next step, exit code 2, and no change of the
//! database.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use windlass_tests::Sandbox;

use crate::support::{as_nobody, assert_says, trivial_chain};

const VALID: &str = "name = \"valid\"\n[params]\nrows = { type = \"integer\", required = true }\n\
                     [jobs.a]\nrun = 'true'\n";

/// `run` fails and creates no run.
fn assert_refused(sandbox: &Sandbox, arguments: &[&str], words: &[&str]) {
    assert_says(&sandbox.run(arguments), 2, words);
    if sandbox.database().exists() {
        let runs: i64 = sandbox.tables().value("SELECT count(*) FROM runs");
        assert_eq!(runs, 0, "a run was made of {arguments:?}");
    }
}

#[test]
fn a_missing_file() {
    let sandbox = Sandbox::new();
    sandbox.write("nightly.toml", VALID);
    assert_refused(&sandbox, &["run", "nigthly.toml"], &["nigthly.toml", "does not exist"]);
    assert_says(&sandbox.run(&["validate", "nigthly.toml"]), 2, &["nigthly.toml"]);
}

#[test]
fn a_folder_instead_of_a_file() {
    let sandbox = Sandbox::new();
    assert_refused(&sandbox, &["run", "tmp"], &["tmp", "director"]);
}

#[test]
fn a_file_that_is_not_text() {
    let sandbox = Sandbox::new();
    sandbox.write("binary.toml", [0xff, 0xfe, 0x00, 0x80]);
    assert_refused(&sandbox, &["run", "binary.toml"], &["binary.toml", "utf-8"]);
    sandbox.write("empty.toml", "");
    assert_refused(&sandbox, &["run", "empty.toml"], &["empty.toml", "name"]);
}

#[test]
fn a_syntax_error_is_shown_with_its_line() {
    let sandbox = Sandbox::new();
    sandbox.write("syntax.toml", "name = \"syntax\"\n[jobs.a]\nrun = 'not closed\n");
    assert_refused(&sandbox, &["run", "syntax.toml"], &["syntax.toml:3"]);
    sandbox.write("syntax.json", "{\"name\": \"syntax\",\n \"jobs\": {\"a\": {\"run\": }}}");
    assert_refused(&sandbox, &["run", "syntax.json"], &["syntax.json:2"]);
}

#[test]
fn all_errors_of_a_file_are_shown_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "wrong.toml",
        "name = \"wrong\"\n[jobs.fetch]\nrun = 'true'\nretires = 3\n[jobs.count]\nneeds = [\"fetsh\"]\nrun = 'true'\n",
    );
    let words = ["wrong.toml:4", "retires", "retry", "wrong.toml:6", "fetsh", "fetch"];
    assert_refused(&sandbox, &["run", "wrong.toml"], &words);
    let outcome = sandbox.run(&["validate", "wrong.toml", "-o", "json"]).exited(2);
    let errors = outcome.json()[0]["errors"].as_array().cloned().unwrap_or_default();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[0]["place"]["line"], 4);
    assert_eq!(errors[1]["place"]["line"], 6);
}

#[test]
fn a_cycle_is_shown_as_its_path() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "cycle.toml",
        "name = \"cycle\"\n[jobs.a]\nneeds = [\"c\"]\nrun = 'true'\n[jobs.b]\nneeds = [\"a\"]\nrun = 'true'\n\
         [jobs.c]\nneeds = [\"b\"]\nrun = 'true'\n",
    );
    let outcome = sandbox.run(&["run", "cycle.toml"]);
    assert_says(&outcome, 2, &["cycle"]);
    let shown = [
        "a -> b -> c -> a",
        "b -> c -> a -> b",
        "c -> a -> b -> c",
        "a -> c -> b -> a",
        "b -> a -> c -> b",
        "c -> b -> a -> c",
    ];
    assert!(shown.iter().any(|path| outcome.stderr.contains(path)), "{}", outcome.stderr);
}

#[test]
fn parameters_of_the_wrong_type() {
    let sandbox = Sandbox::new();
    sandbox.write("valid.toml", VALID);
    assert_refused(&sandbox, &["run", "valid.toml", "-p", "rows=many"], &["rows", "integer"]);
    assert_refused(&sandbox, &["run", "valid.toml", "-p", "rwos=1"], &["rwos", "rows"]);
    assert_refused(&sandbox, &["run", "valid.toml"], &["rows", "-p rows="]);
    assert_refused(&sandbox, &["run", "valid.toml", "-p", "rows"], &["rows"]);
    sandbox.write("params.json", "{\"rows\": \"three\"}");
    assert_refused(&sandbox, &["run", "valid.toml", "--params-file", "params.json"], &["rows", "integer"]);
    assert_refused(&sandbox, &["run", "valid.toml", "--params-file", "none.json"], &["none.json"]);
}

#[test]
fn a_params_file_gives_values_and_the_command_line_wins() {
    let sandbox = Sandbox::new();
    sandbox.write("valid.toml", VALID);
    sandbox.write("params.json", "{\"rows\": 3}");
    sandbox.run(&["run", "valid.toml", "--params-file", "params.json"]).exited(0);
    sandbox.run(&["run", "valid.toml", "--params-file", "params.json", "-p", "rows=4"]).exited(0);
    let params = sandbox.tables().rows("SELECT params FROM runs ORDER BY id", |row| row.get::<_, String>(0));
    assert_eq!(params, ["{\"rows\":3}", "{\"rows\":4}"]);
}

#[test]
fn an_unknown_option_or_verb() {
    let sandbox = Sandbox::new();
    assert_says(&sandbox.run(&["runn", "x.toml"]), 2, &["runn", "run"]);
    assert_says(&sandbox.run(&["run", "x.toml", "--detatch"]), 2, &["--detatch", "--detach"]);
    assert_says(&sandbox.run(&["enqueue", "shell", "--payload", "{not json"]), 2, &["payload", "json"]);
}

#[test]
fn an_unreadable_workflow_file() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("it can be closed");
    let outcome = as_nobody(&sandbox, &["validate", &file]);
    assert_says(&outcome, 2, &["trivial.json", "permission"]);
}
