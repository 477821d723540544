//! The scripts that the documentation names do what they say.

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
