//! Registered workflows: `apply`, `workflows`, and starting them by name.

use std::fs;

use crate::support::{Bench, GOOD};

const NIGHTLY: &str = "\
name = \"nightly\"
[params]
day = { type = \"date\", default = \"2026-11-20\" }
[jobs.fetch]
run = \"cat data\"
[jobs.report]
needs = [\"fetch\"]
run = \"echo done\"
";

fn bench() -> Bench {
    let bench = Bench::new();
    fs::create_dir(bench.path("flows")).unwrap();
    bench.write("flows/nightly.toml", NIGHTLY);
    bench
}

#[test]
fn only_changed_content_makes_a_version() {
    let bench = bench();
    bench.windlass(&["apply", "flows"]).code(0).says(&["nightly: created version 1\n"]);
    let listed = bench.windlass(&["workflows"]).code(0).stdout.clone();
    assert_eq!(bench.windlass(&["workflows", "list"]).code(0).stdout, listed);
    bench.windlass(&["apply", "flows/nightly.toml"]).code(0).says(&["nightly: unchanged, version 1\n"]);
    let changed = NIGHTLY.replace("cat data", "cat other").replace("[params]", "timeout = \"1h\"\n[params]");
    bench.write("flows/nightly.toml", &format!("{changed}[jobs.mail]\nrun = \"true\"\n"));
    let expected = "nightly: version 2: timeout changed; jobs added mail, changed fetch (run)\n";
    bench
        .windlass(&["apply", "flows", "--dry-run"])
        .code(0)
        .says(&[expected])
        .tells(&["nothing was registered"]);
    bench.windlass(&["apply", "flows"]).code(0).says(&[expected]);
    let versions = bench.json(&["workflows", "history", "nightly"]);
    assert_eq!((&versions[0]["version"], &versions[0]["active"]), (&2.into(), &true.into()));
    assert_eq!(versions[0]["changes"]["jobs"]["changed"][0]["fields"][0], "run");
    assert_eq!((&versions[1]["version"], &versions[1]["changes"]), (&1.into(), &().into()));
}

#[test]
fn a_dry_run_makes_no_database() {
    let bench = bench();
    bench.windlass(&["apply", "flows", "--dry-run"]).code(0).says(&["nightly: created version 1\n"]);
    let applied = bench.json(&["apply", "flows", "--dry-run"]);
    assert_eq!((&applied[0]["change"], &applied[0]["version"]), (&"created".into(), &1.into()));
    assert!(!bench.path("windlass.db").exists());
}

#[test]
fn one_invalid_file_stops_apply_and_all_errors_are_shown() {
    let bench = bench();
    bench.write("flows/one.toml", "[jobs.a]\nrnu = 'x'\n");
    bench.write("flows/two.toml", "name = \n");
    bench.windlass(&["apply", "flows"]).code(2).tells(&[
        "unknown key `rnu`",
        "flows/two.toml:1:8",
        "2 of 3 files are invalid; nothing was registered",
    ]);
    bench.windlass(&["apply", "flows/nightly.toml"]).code(0).says(&["created version 1"]);
}

#[test]
fn two_files_with_the_same_name_are_an_error() {
    let bench = bench();
    bench.write("flows/copy.toml", NIGHTLY);
    let outcome = bench.windlass(&["apply", "flows"]);
    let message = "flows/copy.toml and flows/nightly.toml both define the workflow `nightly`";
    outcome.code(2).tells(&[message, "give each workflow its own `name`", "nothing was registered"]);
    assert_eq!(outcome.stderr.matches(message).count(), 1, "it is said once: {outcome:#?}");
}

#[test]
fn a_folder_without_workflows_is_an_error() {
    let bench = Bench::new();
    fs::create_dir(bench.path("empty")).unwrap();
    bench
        .windlass(&["apply", "empty"])
        .fails(2, &["there are no workflow files", "ends in .toml, .json, .yaml or .yml"]);
    bench.windlass(&["apply", "missing"]).code(2).tells(&["missing does not exist"]);
}

#[test]
fn a_registered_workflow_runs_by_its_name_from_any_folder() {
    let bench = bench();
    bench.write("flows/data", "from the folder of the file");
    bench.windlass(&["apply", "flows"]).code(0);
    bench.windlass(&["run", "nightly", "-p", "day=2026-01-02"]).code(0).tells(&["run 1 successful"]);
    bench.windlass(&["logs", "1", "fetch"]).code(0).says(&["from the folder of the file"]);
    // The registered version counts, not the current content of the file.
    bench.write("flows/nightly.toml", "name = \"nightly\"\n[jobs.other]\nrun = \"true\"\n");
    bench.windlass(&["submit", "nightly"]).code(0).tells(&["run 2 of workflow `nightly`"]);
    assert_eq!(bench.json(&["inspect", "2"])["jobs"][0]["job"], "fetch");
}

#[test]
fn a_file_comes_before_a_name() {
    let bench = bench();
    bench.windlass(&["apply", "flows"]).code(0);
    bench.write("nightly", GOOD);
    bench.windlass(&["submit", "nightly"]).code(0).tells(&["run 1 of workflow `good`"]);
}

#[test]
fn an_unknown_name_is_neither_a_file_nor_a_workflow() {
    let bench = bench();
    bench
        .windlass(&["run", "nigthly"])
        .fails(5, &["there is no file `nigthly`", "no database with registered workflows"]);
    bench.windlass(&["apply", "flows"]).code(0);
    bench.windlass(&["run", "nigthly"]).fails(
        5,
        &[
            "there is no such file, and no workflow is registered under the name `nigthly`",
            "did you mean `nightly`?",
            "windlass workflows",
        ],
    );
    bench.windlass(&["run", "nigthly.toml"]).fails(2, &["the file nigthly.toml does not exist"]);
}

#[test]
fn workflows_are_listed_shown_paused_and_removed() {
    let bench = bench();
    bench.windlass(&["apply", "flows"]).code(0);
    bench.windlass(&["workflows"]).code(0).says(&[
        "WORKFLOW",
        "VERSION",
        "nightly",
        "1",
        "flows/nightly.toml",
    ]);
    bench.windlass(&["workflows", "show", "nightly"]).code(0).says(&[
        "nightly  version 1",
        "flows/nightly.toml",
        "day=YYYY-MM-DD  (default 2026-11-20)",
        "fetch",
        "report  fetch",
    ]);
    let shown = bench.json(&["workflows", "show", "nightly"]);
    assert_eq!(shown["definition"]["jobs"][1]["name"], "report");
    bench.windlass(&["workflows", "pause", "nightly"]).code(0).tells(&["is paused"]);
    bench.windlass(&["workflows", "pause", "nightly"]).code(0).tells(&["was already paused"]);
    assert!(bench.json(&["workflows"])[0]["paused_at"].is_string());
    bench.windlass(&["workflows", "resume", "nightly"]).code(0).tells(&["is no longer paused"]);
    bench.windlass(&["workflows", "resume", "nightly"]).code(0).tells(&["was not paused"]);
    bench.windlass(&["workflows", "remove", "nightly"]).code(0).tells(&["inactive", "windlass apply"]);
    bench.windlass(&["workflows"]).code(0).tells(&["no workflow is registered yet"]);
    bench.windlass(&["workflows", "show", "nightly"]).fails(5, &["no workflow is registered"]);
    bench.windlass(&["workflows", "show", "nightly", "--version", "1"]).code(0).says(&["(removed)"]);
    bench.windlass(&["workflows", "show", "nightly", "--version", "4"]).fails(5, &["the newest is 1"]);
    bench.windlass(&["workflows", "history", "nightly"]).code(0).says(&["VERSION", "1"]);
    bench.windlass(&["workflows", "history", "other"]).fails(5, &["no workflow was ever registered"]);
    bench.windlass(&["apply", "flows"]).code(0).says(&["nightly: created version 1"]);
}

/// A folder may contain special files.
#[test]
fn special_files_in_a_folder_are_reported_and_do_not_block() {
    let bench = bench();
    bench.fifo("flows/pipe.toml");
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("flows/socket.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", bench.path("flows/endless.toml")).unwrap();
    let refused = bench.windlass(&["apply", "flows"]);
    refused.code(2).tells(&["endless.toml is a device", "pipe.toml is a FIFO", "socket.json is a socket"]);
    bench.windlass(&["serve", "--workflows", "flows", "--check"]).code(2).tells(&["pipe.toml is a FIFO"]);
    let mut serving = bench.start(&["serve", "--workflows", "flows"]);
    serving.wait_until_it_tells(&bench, "pipe.toml is a FIFO");
    bench.wait_for("the sound file being registered", || {
        let listed = bench.json(&["workflows"]);
        (listed[0]["workflow"] == "nightly").then_some(())
    });
    serving.signal(rustix::process::Signal::TERM);
    bench.wait_for("the end", || serving.child.try_wait().unwrap());
}

#[test]
fn a_pipe_instead_of_the_configuration_is_refused_unless_it_is_named() {
    let bench = bench();
    bench.fifo("windlass.toml");
    bench
        .windlass(&["serve", "--check"])
        .fails(2, &["windlass.toml is a FIFO (named pipe), not a regular file"]);
    let mut shell = bench.prepared(std::process::Command::new("bash"));
    let script = "\"$0\" serve --check --config <(echo 'threads = 3')";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_windlass")]);
    crate::support::Running::start(shell).wait().code(0).says(&["threads      3"]);
}
