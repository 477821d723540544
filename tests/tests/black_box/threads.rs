//! A system that refuses threads: every verb ends with exit code 6 and a next step, and never with a panic.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

use windlass_tests::binary::windlass;
use windlass_tests::{Outcome, Sandbox};

use crate::support::{assert_says, trivial_chain};

/// `windlass` as a user with this limit of processes and threads, and without other processes.
fn with_threads(sandbox: &Sandbox, most: u32, arguments: &[&str]) -> Outcome {
    let limit = format!("--nproc={most}");
    let program = sandbox.path("windlass").to_string_lossy().into_owned();
    let user = (1_000_000 + std::process::id()).to_string();
    let (changer, mut all) = if rustix::process::geteuid().is_root() {
        // The limit of processes does not apply to root.
        ("setpriv", vec!["--reuid", &user, "--regid", &user, "--clear-groups"])
    } else {
        ("unshare", vec!["--user", "--map-root-user"])
    };
    all.extend(["prlimit", &limit, &program]);
    all.extend(arguments);
    sandbox.start(sandbox.prepared(Command::new(changer), &all)).wait()
}

/// The user must be able to execute the program and to write to the folder.
fn open_up(sandbox: &Sandbox) {
    fs::copy(windlass(), sandbox.path("windlass")).expect("the program can be copied");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let user = 1_000_000 + std::process::id();
    let mut paths = vec![sandbox.root().to_owned(), sandbox.path("tmp")];
    paths.extend(fs::read_dir(sandbox.root()).expect("a folder").flatten().map(|entry| entry.path()));
    for path in paths {
        chown(&path, Some(user), Some(user)).expect("root may");
    }
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(sandbox.root(), all).expect("a folder can be opened up");
}

#[test]
fn a_verb_that_gets_no_thread_says_so_and_what_to_raise() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 2);
    sandbox.run(&["run", &file]).exited(0);
    open_up(&sandbox);
    let mut refused = 0;
    for most in [1, 2, 3, 5, 7, 9, 30] {
        for arguments in [
            &["runs"][..],
            &["submit", &file],
            &["worker", "--until-idle", "--threads", "2"],
            &["run", &file, "--threads", "2"],
        ] {
            let outcome = with_threads(&sandbox, most, arguments);
            if outcome.code != Some(0) {
                assert_says(&outcome, 6, &["ulimit -u", "tasksmax"]);
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "nothing was refused: the limit does not bind");
    sandbox.run(&["worker", "--until-idle"]).exited(0);
    for job in sandbox.tables().jobs() {
        assert_eq!((job.status.as_str(), job.failures, job.interruptions), ("SUCCESSFUL", 0, 0), "{job:?}");
    }
}
