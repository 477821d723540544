//! Invalid input and faults: each has one clear message, a next step and an exit code.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use windlass_test_database::Access;

use crate::support::{Bench, GOOD, Running};

#[test]
fn a_missing_file() {
    let bench = Bench::new();
    for arguments in
        [["run", "none.toml"], ["submit", "none.toml"], ["validate", "none.toml"], ["graph", "none.toml"]]
    {
        bench
            .windlass(&arguments)
            .fails(2, &["the file none.toml does not exist", "help: check the spelling"]);
    }
    bench.write("good.toml", GOOD);
    let arguments = ["run", "good.toml", "--params-file", "none.json"];
    bench.windlass(&arguments).fails(2, &["the file none.json does not exist"]);
}

#[test]
fn an_unreadable_file() {
    let bench = Bench::new();
    let path = bench.write("secret.toml", GOOD);
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    bench
        .unprivileged(&["run", "secret.toml"])
        .fails(2, &["secret.toml cannot be read", "chmod u+r secret.toml"]);
}

#[test]
fn a_directory_instead_of_a_file() {
    let bench = Bench::new();
    fs::create_dir(bench.path("folder")).unwrap();
    bench.windlass(&["run", "folder"]).fails(2, &["folder is a directory", "name a file in it"]);
}

#[test]
fn a_file_that_is_not_text() {
    let bench = Bench::new();
    fs::write(bench.path("bytes.toml"), b"name = \"\xff\"\n").unwrap();
    bench.windlass(&["run", "bytes.toml"]).fails(2, &["UTF-8", "bytes.toml:1:"]);
}

#[test]
fn a_database_from_a_newer_version() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    bench.windlass(&["submit", "good.toml"]).code(0);
    let sql = "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'later', 0)";
    bench.database.sql(Access::Write).execute(sql);
    for arguments in [&["runs"][..], &["run", "good.toml"], &["resume"]] {
        bench.windlass(arguments).fails(6, &["newer windlass", "version 99", "help: use a newer windlass"]);
    }
}

#[test]
fn programs_that_cannot_be_started_fail_their_job_with_the_reason() {
    let bench = Bench::new();
    bench.write("script.sh", "echo never\n");
    bench.write(
        "start.toml",
        r#"
        name = "start"
        [jobs.missing]
        command = ["no-such-program-here"]
        [jobs.forbidden]
        command = ["./script.sh"]
        [jobs.nowhere]
        run = "true"
        dir = "no-such-folder"
        "#,
    );
    let outcome = bench.windlass(&["run", "start.toml"]);
    outcome.code(1).tells(&["✗ missing failed: the program `no-such-program-here` was not found"]);
    outcome.tells(&["✗ forbidden failed: the program `./script.sh` may not be executed", "chmod +x"]);
    outcome.tells(&["✗ nowhere failed: the folder ", "no-such-folder does not exist"]);
}

#[test]
fn invalid_settings() {
    let bench = Bench::new();
    bench.write("good.toml", GOOD);
    let with = |name: &str, value: &str| {
        let mut command = bench.command();
        command.env(name, value).args(["run", "good.toml"]);
        Running::start(command).wait()
    };
    with("WINDLASS_LEASE", "soon").fails(2, &["'soon'", "WINDLASS_LEASE", "30s"]);
    with("WINDLASS_LEASE", "1ms").fails(2, &["'1ms'", "between 100ms"]);
    with("WINDLASS_DURABILITY", "half").fails(2, &["'half'", "full, normal"]);
    bench.windlass(&["run", "good.toml", "--threads", "0"]).fails(2, &["0 is not in 1..=1024"]);
    bench.windlass(&["run", "good.toml", "--run-key", ""]).fails(2, &["--run-key"]);
    bench.windlass(&["runs", "-o", "yaml"]).fails(2, &["'yaml'", "text, json, jsonl"]);
    assert!(!bench.database.exists());
}
