//! The pages in a browser. The tests are Python, in `tests/browser`; each of them has a server and a database of its own.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use windlass_test_database::{DatabaseKind, TestDatabase, chosen_kind};
use windlass_tests::binary::{BINARY_VARIABLE, repository, windlass};
use windlass_tests::{Sandbox, within};

/// How long the tests of a file may take on a machine that is busy with other things.
const FILE_MAX: Duration = Duration::from_secs(540);

/// At least as many as a file has tests.
const DATABASES_OF_A_FILE: usize = 20;

/// The Python with the packages of the tests.
fn python() -> &'static str {
    static PYTHON: OnceLock<String> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let found = Command::new(repository().join("scripts/test-python")).output();
        let found = found.expect("scripts/test-python can be called");
        let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        assert!(std::path::Path::new(&path).exists(), "{path} is missing: call scripts/setup");
        path
    })
}

/// Runs the tests of a file.
#[track_caller]
pub(super) fn passes(file: &str) {
    let sandbox = Sandbox::new();
    let databases: Vec<TestDatabase> = match chosen_kind() {
        // Each test makes a file in its folder.
        DatabaseKind::Sqlite => Vec::new(),
        DatabaseKind::Postgres => {
            (0..DATABASES_OF_A_FILE).map(|_| TestDatabase::in_folder(sandbox.root())).collect()
        }
    };
    let addresses: Vec<String> = databases.iter().map(TestDatabase::address).collect();
    let arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb", "short", file];
    let mut command = sandbox.prepared(Command::new(python()), &arguments);
    command
        .current_dir(repository().join("tests/browser"))
        .env(BINARY_VARIABLE, windlass())
        .env("DATABASES", addresses.join("\n"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("WINDLASS_DB")
        .env_remove("WINDLASS_FILES");
    let mut tests = sandbox.start(command);
    let ended = within(FILE_MAX, || (!tests.is_running()).then_some(()));
    assert!(ended.is_some(), "{file} took longer than {FILE_MAX:?}\n{}", tests.stdout_so_far());
    tests.wait().exited(0);
}

#[test]
fn runs_are_started_watched_cancelled_and_retried() {
    passes("test_operation.py");
}

#[test]
fn pages_work_without_a_script() {
    passes("test_without_script.py");
}

#[test]
fn sessions_begin_and_end() {
    passes("test_sessions.py");
}

#[test]
fn what_is_being_written_stays() {
    passes("test_live_forms.py");
}

#[test]
fn runs_are_read_and_changed_from_a_telephone() {
    passes("test_narrow.py");
}

#[test]
fn the_page_of_a_run_is_read() {
    passes("test_run_page.py");
}

#[test]
fn the_page_of_a_job_without_a_run_is_read() {
    passes("test_job_page.py");
}

#[test]
fn lists_are_live() {
    passes("test_lists.py");
}

#[test]
fn with_the_network_cut_all_pages_are_complete() {
    passes("test_offline.py");
}

/// A file of tests that nothing here runs would never fail.
#[test]
fn each_file_of_tests_is_run() {
    let sources = concat!(
        include_str!("browser.rs"),
        include_str!("accessibility.rs"),
        include_str!("web_document.rs")
    );
    let files =
        std::fs::read_dir(repository().join("tests/browser")).expect("the folder of the tests can be read");
    let names =
        files.map(|file| file.expect("an entry can be read").file_name().to_string_lossy().into_owned());
    let tests: Vec<String> =
        names.filter(|name| name.starts_with("test_") && name.ends_with(".py")).collect();
    assert!(!tests.is_empty());
    for name in tests {
        assert!(sources.contains(&format!("passes(\"{name}\")")), "{name} is run by no test");
    }
}
