//! Databases that cannot be used: exit code 6, a message with the next step, and nothing lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use rusqlite::Connection;
use windlass_tests::binary::windlass;
use windlass_tests::{Outcome, Sandbox};

use crate::support::{assert_says, trivial_chain};

/// A user without rights on any Linux machine.
const NOBODY: &str = "65534";

fn with_database(sandbox: &Sandbox, database: &str, verb: &[&str]) -> Outcome {
    let mut arguments = vec!["--db", database];
    arguments.extend(verb);
    sandbox.run(&arguments)
}

#[test]
fn a_file_that_is_not_a_database() {
    let sandbox = Sandbox::new();
    let text = "this is a letter, not a database\n".repeat(100);
    let path = sandbox.write("letter.db", &text);
    let file = trivial_chain(&sandbox, 1);
    for verb in [&["runs"][..], &["run", &file], &["worker", "--until-idle"], &["stats"]] {
        assert_says(&with_database(&sandbox, &path, verb), 6, &["letter.db", "not a sqlite database"]);
    }
    assert_eq!(sandbox.read("letter.db"), text, "the file was changed");
}

#[test]
fn a_database_of_another_program() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("other.db");
    let other = Connection::open(&path).expect("a database can be made");
    other.execute_batch("CREATE TABLE jobs (title TEXT); INSERT INTO jobs VALUES ('baker')").expect("SQL");
    drop(other);
    assert_says(&with_database(&sandbox, &path.to_string_lossy(), &["runs"]), 6, &["other.db"]);
    let other = Connection::open(&path).expect("it is still a database");
    let title: String =
        other.query_row("SELECT title FROM jobs", [], |row| row.get(0)).expect("its row is there");
    assert_eq!(title, "baker");
}

#[test]
fn a_folder_and_a_missing_folder() {
    let sandbox = Sandbox::new();
    assert_says(&with_database(&sandbox, "tmp", &["runs"]), 6, &["tmp"]);
    assert_says(&with_database(&sandbox, "no/such/folder.db", &["stats"]), 6, &["no/such"]);
}

#[test]
fn a_database_from_a_newer_version() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    sandbox.run(&["run", &file]).exited(0);
    let connection = Connection::open(sandbox.database()).expect("it can be opened");
    connection
        .execute("INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'later', 0)", [])
        .expect("a row can be inserted");
    drop(connection);
    for verb in [&["runs"][..], &["run", &file], &["db", "migrate"]] {
        assert_says(&sandbox.run(verb), 6, &["9999", "newer"]);
    }
    let runs: i64 = sandbox.tables().value("SELECT count(*) FROM runs");
    assert_eq!(runs, 1);
}

/// `windlass` as a user who may not do everything, also when the tests run as root.
fn as_nobody(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return sandbox.run(arguments);
    }
    // That user must be able to reach the program and the folder.
    let program = sandbox.path("windlass");
    if !program.exists() {
        fs::copy(windlass(), &program).expect("the program can be copied");
    }
    fs::set_permissions(sandbox.root(), fs::Permissions::from_mode(0o755))
        .expect("a folder can be opened up");
    let program = program.to_string_lossy().into_owned();
    let mut all = vec!["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", &program];
    all.extend(arguments);
    sandbox.start(sandbox.prepared(Command::new("setpriv"), &all)).wait()
}

#[test]
fn a_read_only_folder() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    let folder = sandbox.path("closed");
    fs::create_dir(&folder).expect("a folder can be made");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).expect("it can be closed");
    let database = folder.join("windlass.db").to_string_lossy().into_owned();
    let outcome = as_nobody(&sandbox, &["--db", &database, "run", &file]);
    assert_says(&outcome, 6, &["closed", "folder", "write"]);
    assert!(!folder.join("windlass.db").exists());
}

#[test]
fn a_read_only_database() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    sandbox.run(&["run", &file]).exited(0);
    let closed = fs::Permissions::from_mode(0o444);
    fs::set_permissions(sandbox.database(), closed).expect("it can be closed");
    assert_says(&as_nobody(&sandbox, &["run", &file]), 6, &["windlass.db"]);
}

#[test]
fn an_unreadable_workflow_file() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("it can be closed");
    let outcome = as_nobody(&sandbox, &["validate", &file]);
    assert_says(&outcome, 2, &["trivial.json", "permission"]);
}

#[test]
fn a_locked_database_is_waited_for() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 3);
    sandbox.run(&["run", &file]).exited(0);
    let locker = Connection::open(sandbox.database()).expect("it can be opened");
    locker.busy_timeout(Duration::from_secs(20)).expect("a timeout can be set");
    locker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let mut second = sandbox.spawn(&["run", &file]);
    // Reading is not disturbed by somebody who writes.
    sandbox.run(&["runs"]).exited(0);
    assert!(second.is_running(), "it gave up at once: {}", second.stderr_so_far());
    locker.execute_batch("COMMIT").expect("an end");
    let outcome = second.wait().exited(0);
    assert!(!outcome.stderr.contains("locked"), "{}", outcome.stderr);
}
