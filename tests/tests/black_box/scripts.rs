//! The scripts that the documentation names work as described.

use std::process::Command;

use windlass_tests::Sandbox;
use windlass_tests::binary::{BINARY_VARIABLE, repository, windlass};

#[test]
fn the_crash_demo_proves_what_it_claims() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.prepared(Command::new(repository().join("scripts/crash-demo")), &["2"]);
    command.env(BINARY_VARIABLE, windlass());
    let outcome = sandbox.start(command).wait().exited(0);
    assert!(outcome.stdout.contains("40 of 40 jobs finished, each exactly once"), "{outcome:?}");
    assert_eq!(sandbox.leftovers(), []);
}

#[test]
fn the_soak_wants_a_seed_and_rounds() {
    let sandbox = Sandbox::new();
    let command = sandbox.prepared(Command::new(repository().join("scripts/soak")), &["7"]);
    let outcome = sandbox.start(command).wait().exited(2);
    assert!(outcome.stderr.contains("usage"), "{outcome:?}");
}

#[test]
fn the_performance_guide_agrees_with_the_record() {
    let sandbox = Sandbox::new();
    let script = repository().join("scripts/draw_performance.py");
    let mut check = Command::new("python3");
    check.arg(&script);
    let outcome = sandbox.start(sandbox.prepared(check, &["--check"])).wait().exited(0);
    assert_eq!(outcome.stderr, "", "{outcome:?}");
}

/// Works on a copy of the files, so that a figure can be changed.
#[test]
fn a_guide_that_disagrees_with_the_record_is_found() {
    let sandbox = Sandbox::new();
    let copy = sandbox.path("copy");
    for file in [
        "scripts/draw_performance.py",
        "docs/guide/performance-figures.md",
        "docs/guide/performance/sqlite.json",
        "docs/guide/performance/postgres.json",
        "docs/guide/performance/drain.svg",
        "docs/guide/performance/enqueue.svg",
        "docs/guide/performance/times.svg",
    ] {
        std::fs::create_dir_all(copy.join(file).parent().expect("a folder")).expect("a folder for the copy");
        std::fs::copy(repository().join(file), copy.join(file)).expect("a copy of the file");
    }
    let page = copy.join("docs/guide/performance-figures.md");
    let text = std::fs::read_to_string(&page).expect("the page");
    let cases = [
        (
            text.replace("| median |", "| mean |"),
            "not what the record says: docs/guide/performance-figures.md",
        ),
        (
            text.replace("## What was measured", "It does 7,000 jobs a second."),
            "in no table: 7,000 jobs a second",
        ),
        (text.replace("<!-- end: sqlite -->", ""), "must have"),
    ];
    for (changed, expected) in cases {
        assert_ne!(changed, text, "{expected}");
        std::fs::write(&page, changed).expect("the changed page");
        let mut check = Command::new("python3");
        check.arg(copy.join("scripts/draw_performance.py"));
        let outcome = sandbox.start(sandbox.prepared(check, &["--check"])).wait().exited(1);
        assert!(outcome.stderr.contains(expected), "{outcome:?}");
    }
}
