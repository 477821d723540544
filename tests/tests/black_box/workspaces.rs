//! Workspaces: what jobs find there, and what is left after a crash and after the run.

use windlass_tests::{Sandbox, eventually};

/// Three jobs in a row and a handler. The first attempt of the second one ends only when it is killed.
const WORKFLOW: &str = r#"
name = "shared"
workspace = true
[jobs.write]
run = 'test "$PWD" = "$WINDLASS_WORKSPACE"; echo one > data'
[jobs.wait]
needs = ["write"]
run = 'echo two >> data; test "$WINDLASS_ATTEMPT" -gt 1 || exec sleep 600; echo three >> data'
[jobs.read]
needs = ["wait"]
dir = "."
command = ["cat", "{{ run.workspace }}/data"]
output = "lines"
[finally.see]
run = 'cat data | wc -l'
output = "json"
"#;

#[test]
fn a_workspace_survives_a_crash_and_is_removed_with_the_end_of_the_run() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("shared.toml", WORKFLOW);
    let mut engine = sandbox.spawn(&["run", &file]);
    let path = eventually("the second job writes", || {
        let inspected = sandbox.run(&["inspect", "1", "-o", "json"]);
        let path =
            inspected.stdout.contains("workspace").then(|| inspected.exited(0).json()["workspace"].clone());
        let path = path.and_then(|path| path.as_str().map(std::path::PathBuf::from))?;
        std::fs::read_to_string(path.join("data")).is_ok_and(|text| text.contains("two")).then_some(path)
    });
    engine.kill_9();
    assert!(path.join("data").exists(), "nothing is lost");
    sandbox.run(&["resume", "1"]).exited(0);
    let jobs = sandbox.tables().jobs_of(1);
    assert_eq!(jobs["read"].output.as_deref(), Some(r#"["one","two","two","three"]"#));
    assert_eq!(jobs["see"].output.as_deref(), Some("4"), "handlers see it");
    assert!(!path.exists(), "the run is over");
    let inspected = sandbox.run(&["inspect", "1", "-o", "json"]).exited(0).json();
    assert!(inspected["workspace"].is_null(), "{inspected}");
    let refused = sandbox.run(&["retry", "1", "--from", "read"]).exited(2);
    assert!(refused.stderr.contains("its workspace was removed when it ended"), "{}", refused.stderr);
}

#[test]
fn the_workspace_of_a_failed_run_can_be_kept_and_its_retry_uses_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "kept.toml",
        "name = 'kept'\nworkspace = { keep = 'on_failure' }\n[jobs.a]\nrun = 'echo a > a'\n\
         [jobs.b]\nneeds = ['a']\nrun = 'cat a; test -e b'\n",
    );
    sandbox.run(&["run", &file]).exited(1);
    let inspected = sandbox.run(&["inspect", "1", "-o", "json"]).exited(0).json();
    let path = std::path::PathBuf::from(inspected["workspace"].as_str().expect("it is kept"));
    std::fs::write(path.join("b"), "").expect("it is there");
    sandbox.run(&["retry", "1"]).exited(0);
    sandbox.run(&["resume", "1"]).exited(0);
    assert!(!path.exists(), "it succeeded now");
}

#[test]
fn serve_removes_the_workspaces_of_runs_that_ended_elsewhere() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.toml", "name = 'a'\nworkspace = true\n[jobs.a]\nrun = 'echo > a'\n");
    let mut serve = sandbox.spawn(&["serve"]);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the run ends", || (sandbox.tables().run_status(1) == "SUCCESSFUL").then_some(()));
    eventually("its workspace is removed", || {
        let inspected = sandbox.run(&["inspect", "1", "-o", "json"]).exited(0).json();
        inspected["workspace"].is_null().then_some(())
    });
    assert!(serve.is_running());
}
