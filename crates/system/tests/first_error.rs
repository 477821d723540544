//! The first error in real output of programs, which was recorded as they wrote it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use windlass_system::first_error::first_error;

/// The file, and the line at which a reader should begin.
const LOGS: [(&str, &str); 20] = [
    ("c_assert", "checks: assert.c:3: main: Assertion `2 + 2 == 5' failed."),
    ("curl", "curl: (7) Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server"),
    ("dash", "a.sh: 3: nosuchprogram: not found"),
    ("gcc", "main.c:4:20: error: ‘counter’ undeclared (first use in this function)"),
    ("git", "fatal: repository '/srv/nothing.git' does not exist"),
    ("go_build", "./bad.go:3:28: undefined: undefinedName"),
    ("go_panic", "panic: runtime error: invalid memory address or nil pointer dereference"),
    ("go_test", "--- FAIL: TestFind (0.00s)"),
    ("java", "Exception in thread \"main\" java.lang.IllegalStateException: the port can't be read"),
    ("javac", "Bad.java:1: error: incompatible types: String cannot be converted to int"),
    ("javascript", "TypeError: Cannot read properties of null (reading 'host')"),
    ("javascript_promise", "Error: page 2: status 503"),
    ("ld", "link.c:(.text+0x5): undefined reference to `missing'"),
    ("perl", "rows.csv: No such file or directory at rows.pl line 3."),
    ("php", "PHP Fatal error:  Uncaught DivisionByZeroError: Modulo by zero in /srv/app/import.php:3"),
    (
        "python",
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    ("ruby", "report.rb:3:in `block in total': undefined method `*' for nil:NilClass (NoMethodError)"),
    ("rust_panic", "thread 'main' (25874) panicked at main.rs:5:21:"),
    ("rustc", "error[E0308]: mismatched types"),
    ("shell", "deploy.sh: line 5: frobnicate: command not found"),
];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

#[test]
fn the_first_error_of_each_language_is_found() {
    let mut wrong = Vec::new();
    for (name, expected) in LOGS {
        let text = std::fs::read_to_string(folder().join(format!("{name}.txt"))).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let found = first_error(&lines).map(|found| lines[found.at]);
        if found != Some(expected) {
            wrong.push(format!("{name}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_recorded_output_is_in_the_list() {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, LOGS.map(|(name, _)| name.to_owned()));
}
