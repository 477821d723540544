//! A lack of open files, or of a folder for temporary files: no job fails because of it.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use windlass_tests::binary::windlass;
use windlass_tests::tables::Job;
use windlass_tests::{Engine, Outcome, Sandbox, eventually};

use crate::support::{assert_says, trivial_chain};

/// `windlass` in a shell that has set limits.
pub(crate) fn limited(sandbox: &Sandbox, limits: &str, arguments: &[&str]) -> Outcome {
    let script = format!("{limits}; exec \"$@\"");
    let program = windlass().display().to_string();
    let mut all = vec!["-c", &script, "sh", &program];
    all.extend(arguments);
    sandbox.start(sandbox.prepared(Command::new("sh"), &all)).wait()
}

/// How many files a process may open: none more than it has, or as many as before.
fn limit_files(engine: &Engine, soft: u64) -> u64 {
    let pid: Pid = engine.pid();
    let maximum = rustix::process::getrlimit(Resource::Nofile).maximum;
    let before = prlimit(Some(pid), Resource::Nofile, Rlimit { current: Some(soft), maximum });
    before.expect("a child's limits can be set").current.expect("there is a limit")
}

fn jobs(sandbox: &Sandbox) -> Vec<Job> {
    sandbox.tables().jobs()
}

/// Nothing that happened meanwhile counts against the jobs.
fn assert_all_done_at_once(sandbox: &Sandbox) {
    for job in jobs(sandbox) {
        let counts = (job.status.as_str(), job.attempt, job.failures, job.interruptions);
        assert_eq!(counts, ("SUCCESSFUL", 1, 0, 0), "{job:?}");
    }
    assert_eq!(sandbox.tables().value::<i64>("SELECT count(*) FROM job_attempts"), 0);
}

#[test]
fn the_soft_limit_is_raised_but_not_for_jobs() {
    const JOBS: usize = 60;
    const SOFT: usize = 100;
    let sandbox = Sandbox::new();
    // All jobs run at once, and each sees the limit with which the engine was started.
    let script = format!(
        ": > \"begun-$WINDLASS_JOB_ID\"\nuntil set -- begun-* && [ $# -ge {JOBS} ]; do sleep 0.1; done\n\
         until [ \"$(ulimit -Sn)\" = {SOFT} ]; do sleep 0.1; done\necho done > \"$WINDLASS_OUTPUT\"\n"
    );
    let one = format!("timeout = \"80s\"\nrun = '''\n{script}'''\n");
    let all: String = (0..JOBS).map(|number| format!("[jobs.j{number}]\n{one}")).collect();
    let file = sandbox.write("many.toml", format!("name = \"many\"\n{all}"));
    let threads = JOBS.to_string();
    let outcome = limited(&sandbox, &format!("ulimit -Sn {SOFT}"), &["run", &file, "--threads", &threads]);
    assert_says(&outcome, 0, &[]);
    assert_all_done_at_once(&sandbox);
}

#[test]
fn the_hard_limit_reduces_the_threads() {
    let sandbox = Sandbox::new();
    let all: String = (0..150).map(|number| format!("[jobs.j{number}]\nrun = 'sleep 0.05'\n")).collect();
    let file = sandbox.write("many.toml", format!("name = \"many\"\n{all}"));
    let outcome = limited(&sandbox, "ulimit -n 120", &["run", &file, "--threads", "60"]);
    assert_says(&outcome, 0, &["instead of 60", "ulimit -Hn"]);
    assert_all_done_at_once(&sandbox);
    let threads = sandbox.tables().value::<i64>("SELECT max(threads) FROM workers");
    assert!((1..60).contains(&threads), "{threads}");
}

#[test]
fn few_open_files_work_or_are_refused_before_anything_starts() {
    let sandbox = Sandbox::new();
    let file = trivial_chain(&sandbox, 30);
    sandbox.run(&["run", &file]).exited(0);
    let count = || sandbox.tables().value::<i64>("SELECT count(*) FROM runs");
    let mut worked = Vec::new();
    for files in (4..=80).step_by(4) {
        let before = count();
        let outcome = limited(&sandbox, &format!("ulimit -n {files}"), &["run", &file]);
        if outcome.code == Some(0) {
            worked.push(files);
        } else if outcome.stderr.contains("windlass") || !outcome.stderr.contains("shared libraries") {
            assert_says(&outcome, 6, &["ulimit -n"]);
            assert_eq!(count(), before, "{files} files: it was accepted\n{}", outcome.stderr);
        }
    }
    assert!(!worked.is_empty());
    assert_all_done_at_once(&sandbox);
}

#[test]
fn jobs_wait_for_open_files_without_using_an_attempt() {
    let sandbox = Sandbox::new();
    let enqueue = |script: &str| {
        let payload = serde_json::json!({ "run": script }).to_string();
        sandbox.run(&["enqueue", "shell", "--payload", &payload]).exited(0);
    };
    let mut worker = sandbox.spawn(&["--lease", "2s", "worker", "--threads", "3"]);
    enqueue(
        ": > begun; until [ -e go ]; do sleep 0.05; done; echo '\"kept\"' > \"$WINDLASS_OUTPUT\"; : > over",
    );
    eventually("the first job", || sandbox.path("begun").exists().then_some(()));
    let before = limit_files(&worker, 3);
    sandbox.write("go", "");
    for _job in 0..20 {
        enqueue("echo 1 > \"$WINDLASS_OUTPUT\"");
    }
    eventually("its work to be done", || sandbox.path("over").exists().then_some(()));
    let doctor = eventually("the doctor to know", || {
        let outcome = sandbox.run(&["doctor"]);
        outcome.stdout.contains("cannot start jobs").then_some(outcome)
    });
    assert_eq!(doctor.code, Some(1), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("ulimit -n"), "{}", doctor.stdout);
    assert!(worker.stderr_so_far().contains("jobs can't be started for now"), "{}", worker.stderr_so_far());
    for job in jobs(&sandbox) {
        assert_eq!((job.failures, job.interruptions), (0, 0), "{job:?}");
        assert!(["PENDING", "RUNNING"].contains(&job.status.as_str()), "{job:?}");
    }
    assert!(worker.is_running(), "{}", worker.stderr_so_far());
    limit_files(&worker, before);
    eventually("all of them", || jobs(&sandbox).iter().all(|job| job.status == "SUCCESSFUL").then_some(()));
    assert_all_done_at_once(&sandbox);
    assert_eq!(jobs(&sandbox)[0].output.as_deref(), Some("\"kept\""));
    eventually("the shortage's end", || {
        let told: i64 = sandbox.tables().value("SELECT count(*) FROM workers WHERE shortage IS NOT NULL");
        (told == 0).then_some(())
    });
}

#[test]
fn jobs_wait_for_a_folder_for_temporary_files() {
    let sandbox = Sandbox::new();
    sandbox.run(&["enqueue", "shell", "--payload", "{\"run\": \"echo 7 > $WINDLASS_OUTPUT\"}"]).exited(0);
    let folder = sandbox.path("later");
    let mut command = sandbox.command(&["worker"]);
    command.env("TMPDIR", &folder);
    let mut worker = sandbox.start(command);
    eventually("the log to say it", || worker.stderr_so_far().contains("no folder for").then_some(()));
    let job = &jobs(&sandbox)[0];
    assert_eq!((job.failures, job.interruptions), (0, 0), "{job:?}");
    assert!(worker.is_running());
    fs::create_dir(&folder).expect("a folder can be made");
    eventually("the job", || (jobs(&sandbox)[0].status == "SUCCESSFUL").then_some(()));
    assert_all_done_at_once(&sandbox);
}
