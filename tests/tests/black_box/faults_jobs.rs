//! Jobs that cannot start, and unknown runs and jobs: the message gives the reason and the next step.

use windlass_tests::Sandbox;

use crate::support::assert_says;

/// Runs a workflow with one job that cannot start, and returns the error of the job.
fn error_of(sandbox: &Sandbox, job: &str) -> String {
    let file = sandbox.write("one.toml", format!("name = \"one\"\n[jobs.only]\n{job}"));
    let outcome = sandbox.run(&["run", &file]);
    assert_says(&outcome, 1, &["only"]);
    let error = sandbox.tables().jobs()[0].last_error.clone().unwrap_or_default();
    assert!(!error.is_empty());
    error
}

#[test]
fn a_missing_program() {
    let error = error_of(&Sandbox::new(), "command = [\"no-such-program\", \"x\"]\n");
    assert!(error.contains("no-such-program") && error.to_lowercase().contains("not found"), "{error}");
}

#[test]
fn a_missing_program_in_a_script() {
    let error = error_of(&Sandbox::new(), "run = 'no-such-program x'\n");
    assert!(error.contains("127"), "{error}");
}

#[test]
fn a_script_that_is_not_executable() {
    let sandbox = Sandbox::new();
    sandbox.write("script.sh", "#!/bin/sh\necho never\n");
    let error = error_of(&sandbox, "command = [\"./script.sh\"]\n");
    assert!(error.contains("script.sh") && error.contains("may not be executed"), "{error}");
    assert!(error.contains("chmod"), "no next step: {error}");
}

#[test]
fn a_missing_folder() {
    let error = error_of(&Sandbox::new(), "dir = \"no-such-folder\"\nrun = 'true'\n");
    assert!(error.contains("no-such-folder"), "{error}");
}

#[test]
fn a_failure_shows_its_last_lines_at_once() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("f.toml", "name = \"f\"\n[jobs.only]\nrun = 'echo the reason >&2; exit 7'\n");
    let outcome = sandbox.run(&["run", &file]);
    assert_says(&outcome, 1, &["only", "the reason", "7", "windlass retry 1"]);
    assert!(!outcome.stderr.contains('\u{1b}'), "colour in a pipe: {:?}", outcome.stderr);
}

#[test]
fn an_unknown_run_or_job() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.toml", "name = \"a\"\n[jobs.fetch]\nrun = 'true'\n");
    sandbox.run(&["run", &file]).exited(0);
    for verb in ["inspect", "logs", "watch", "cancel", "retry", "resume"] {
        assert_says(&sandbox.run(&[verb, "999"]), 5, &["999"]);
    }
    assert_says(&sandbox.run(&["inspect", "j999"]), 5, &["999"]);
    assert_says(&sandbox.run(&["why", "999"]), 5, &["999"]);
    assert_says(&sandbox.run(&["logs", "1", "fetsh"]), 5, &["fetsh", "fetch"]);
    assert_says(&sandbox.run(&["inspect", "not-a-workflow"]), 5, &["not-a-workflow"]);
}
