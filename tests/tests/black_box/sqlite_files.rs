//! The database as a file: one that cannot be used means exit code 6, a message with the next step, and
//! nothing lost; one that can be named, and backed up while it is used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use rusqlite::Connection;
use windlass_tests::{Outcome, Sandbox, eventually};

use crate::support::{as_nobody, assert_says, trivial_chain};

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
    fs::set_permissions(sandbox.database().address(), closed).expect("it can be closed");
    assert_says(&as_nobody(&sandbox, &["run", &file]), 6, &["windlass.db"]);
}

#[test]
fn a_locked_database_is_waited_for() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 3);
    sandbox.run(&["run", &file]).exited(0);
    let locker = Connection::open(sandbox.database().address()).expect("it can be opened");
    locker.busy_timeout(Duration::from_secs(20)).expect("a timeout can be set");
    locker.execute_batch("BEGIN IMMEDIATE").expect("the write lock");
    let mut second = sandbox.spawn(&["run", &file]);
    // A writer does not disturb a reader.
    sandbox.run(&["runs"]).exited(0);
    assert!(second.is_running(), "it gave up at once: {}", second.stderr_so_far());
    locker.execute_batch("COMMIT").expect("an end");
    let outcome = second.wait().exited(0);
    assert!(!outcome.stderr.contains("locked"), "{}", outcome.stderr);
}

#[test]
fn the_flag_wins_over_the_environment() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 1);
    let other = sandbox.path("other.db");
    sandbox.run(&["--db", &other.to_string_lossy(), "submit", &file]).exited(0);
    assert!(other.exists() && !sandbox.database().exists());
}

#[test]
fn a_backup_is_a_whole_database_also_while_a_run_goes_on() {
    let sandbox = Sandbox::new();
    let file = sandbox
        .write("slow.toml", "name = \"slow\"\n[jobs.a]\nrun = 'until [ -e go ]; do sleep 0.02; done'\n");
    let mut engine = sandbox.spawn(&["run", &file]);
    eventually("the run's start", || {
        let there = sandbox.database().exists() && sandbox.run(&["runs"]).stdout.contains("RUNNING");
        there.then_some(())
    });
    let copy = sandbox.path("copy.db").to_string_lossy().into_owned();
    sandbox.run(&["db", "backup", &copy]).exited(0);
    sandbox.write("go", "");
    engine.wait().exited(0);
    let of_copy = sandbox.run(&["--db", &copy, "runs", "-o", "json"]).exited(0).json();
    assert_eq!(of_copy[0]["status"], "RUNNING");
    sandbox.run(&["--db", &copy, "db", "check"]).exited(0);
}
