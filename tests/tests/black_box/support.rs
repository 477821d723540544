//! Helpers of the black-box tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use windlass_tests::binary::windlass;
use windlass_tests::graphs::{Graph, job_name};
use windlass_tests::journal::JOURNAL_VARIABLE;
use windlass_tests::{Engine, Outcome, Sandbox, eventually};

/// The program that jobs execute to record what they see.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_windlass-probe");

/// A user without rights on any Linux machine.
const NOBODY: &str = "65534";

/// Panics with all problems.
#[track_caller]
pub(crate) fn assert_none(what: &str, problems: &[String]) {
    assert!(problems.is_empty(), "{what}: {} problems\n{}", problems.len(), problems.join("\n"));
}

/// The command ended with `code`, without a panic, and standard error has each of `words` in upper or lower case.
#[track_caller]
pub(crate) fn assert_says(outcome: &Outcome, code: i32, words: &[&str]) {
    let stderr = outcome.stderr.to_lowercase();
    assert_eq!(outcome.code, Some(code), "exit code (left)\n{}\n{}", outcome.stdout, outcome.stderr);
    assert!(!stderr.contains("panicked"), "{}", outcome.stderr);
    for word in words {
        assert!(stderr.contains(&word.to_lowercase()), "{word:?} is not in:\n{}", outcome.stderr);
    }
}

/// Starts a service, and waits until it serves.
pub(crate) fn serve(sandbox: &Sandbox) -> Engine {
    let mut service = sandbox.spawn(&["serve"]);
    eventually("the service", || {
        assert!(service.is_running(), "it ended: {}", service.stderr_so_far());
        service.stderr_so_far().contains(" serves ").then_some(())
    });
    service
}

/// The file to which the jobs of [`probes`] write.
pub(crate) fn journal(sandbox: &Sandbox) -> PathBuf {
    sandbox.path("journal")
}

/// A workflow whose jobs are probes that run for `work_ms`. Every fifth one is started by a shell that stays its
/// parent, so that the job has more than one process.
pub(crate) fn probes(sandbox: &Sandbox, name: &str, graph: &Graph, work_ms: impl Fn(usize) -> u64) -> String {
    let text = graph.workflow(name, |index| {
        let work = work_ms(index).to_string();
        let mut job = if index % 5 == 0 {
            json!({ "run": "\"$PROBE\" \"$WORK\"; exit $?", "env": { "PROBE": PROBE, "WORK": work } })
        } else {
            json!({ "command": [PROBE, work] })
        };
        job["env"][JOURNAL_VARIABLE] = Value::from(journal(sandbox).to_string_lossy());
        job
    });
    sandbox.write(&format!("{name}.json"), text)
}

/// Submits a file and returns the number of the run.
pub(crate) fn submit(sandbox: &Sandbox, file: &str) -> i64 {
    let outcome = sandbox.run(&["submit", file]).exited(0);
    let number = outcome.stdout.trim();
    number.parse().unwrap_or_else(|_| panic!("`submit` printed {number:?}, not a run's number"))
}

/// The id of a job by its name in a run.
pub(crate) fn job_id(sandbox: &Sandbox, run: i64, name: &str) -> i64 {
    sandbox.tables().jobs_of(run)[name].id
}

/// A workflow file with a chain of jobs that do nothing.
pub(crate) fn trivial_chain(sandbox: &Sandbox, jobs: usize) -> String {
    let text = Graph::chain(jobs).workflow("trivial", |_| json!({ "command": ["true"] }));
    assert!(text.contains(&job_name(jobs - 1)));
    sandbox.write("trivial.json", text)
}

/// `windlass` as an unprivileged user, even if the tests run as root.
pub(crate) fn as_nobody(sandbox: &Sandbox, arguments: &[&str]) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return sandbox.run(arguments);
    }
    // The user must be able to reach the program and the folder.
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
