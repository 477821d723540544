//! Promise: if an engine is killed or stopped while it starts a process, the process runs neither beside the next
//! attempt nor after its job was reported.
//!
//! Between `clone` and `execve`, a process does not show to which job it belongs. The tests hold a process there with
//! a write lease on its program, fcntl(2): `execve` waits until the holder of the lease releases it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use windlass_tests::{Engine, Sandbox, eventually};

/// Takes a write lease on the file of its argument. Creates one file when it has the lease, and another one when a
/// process waits for it. Releases the lease when its input ends. The file is open for reading only: the kernel
/// releases a lease before it counts a writer as gone, and `execve` of a program that has a writer fails.
const TAKE_LEASE: &str = "
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, lambda number, frame: open('asked', 'w').close())
file = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open('leased', 'w').close()
sys.stdin.read()
";

/// Writes the number of the attempt, and runs until the file `go` exists.
const PROGRAM: &str = "#!/bin/sh
echo $WINDLASS_ATTEMPT >> began
until [ -e go ]; do sleep 0.02; done
";

/// A job whose process cannot execute its program yet.
struct Held {
    sandbox: Sandbox,
    engine: Engine,
    /// The process.
    starting: Pid,
    lease: Child,
}

impl Held {
    fn start(keys: &str, lease: &str) -> Held {
        let sandbox = Sandbox::new();
        let program = sandbox.write("program", PROGRAM);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
        let file = sandbox
            .write("held.toml", format!("name = \"held\"\n[jobs.only]\ncommand = [\"{program}\"]\n{keys}"));
        sandbox.run(&["submit", &file]).exited(0);
        let mut python = sandbox.prepared(Command::new("python3"), &["-c", TAKE_LEASE, &program]);
        let lease_holder = python.stdin(Stdio::piped()).spawn().expect("python3 can be started");
        eventually("the lease on the program", || sandbox.path("leased").exists().then_some(()));
        let mut worker = sandbox.command(&["worker"]);
        worker.env("WINDLASS_LEASE", lease);
        let engine = sandbox.start(worker);
        eventually("the job's execve", || sandbox.path("asked").exists().then_some(()));
        let starting = eventually("the job's process", || {
            children(engine.pid()).into_iter().find(|pid| name(*pid).starts_with("windlass-"))
        });
        Held { sandbox, engine, starting, lease: lease_holder }
    }

    /// Lets the process execute its program.
    fn let_go(&mut self) {
        drop(self.lease.stdin.take());
        self.lease.wait().expect("it ends with its input");
    }

    /// Kills the reaper, so that no process ends the jobs of the engine.
    fn kill_reaper(&self) {
        let is_reaper = |pid: &Pid| read(*pid, "cmdline").contains("windlass-reaper");
        let reaper =
            children(self.engine.pid()).into_iter().find(is_reaper).expect("it was started before the job");
        kill_process(reaper, Signal::KILL).expect("it runs");
    }

    fn attempt(&self) -> i64 {
        self.sandbox.tables().jobs()[0].attempt
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _gone = self.lease.kill();
        let _gone = self.lease.wait();
    }
}

fn read(pid: Pid, file: &str) -> String {
    let bytes = fs::read(format!("/proc/{}/{file}", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn name(pid: Pid) -> String {
    read(pid, "comm")
}

/// The fields of `/proc/PID/stat` after the second one.
fn stat(pid: Pid) -> Vec<String> {
    let stat = read(pid, "stat");
    stat.rsplit_once(')')
        .map(|(_name, fields)| fields.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default()
}

fn runs(pid: Pid) -> bool {
    stat(pid).first().is_some_and(|state| !matches!(state.as_str(), "Z" | "X"))
}

fn children(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().to_string();
    let entries = fs::read_dir("/proc").expect("/proc is there").flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(Pid::from_raw)
        .filter(|pid| stat(*pid).get(1) == Some(&parent))
        .collect()
}

#[test]
fn it_does_not_run_beside_the_next_attempt() {
    for is_reaper_killed in [false, true] {
        let mut held = Held::start("", "30s");
        if is_reaper_killed {
            held.kill_reaper();
        }
        held.engine.kill_9();
        assert!(runs(held.starting), "it outlives its engine");
        let mut resumed = held.sandbox.spawn(&["resume"]);
        eventually("the second attempt's claim", || (held.attempt() == 2).then_some(()));
        held.let_go();
        eventually("the second attempt", || held.sandbox.read("began").contains('2').then_some(()));
        assert!(!runs(held.starting), "two attempts run, reaper killed: {is_reaper_killed}");
        assert_eq!(held.sandbox.read("began"), "2\n");
        held.sandbox.write("go", "");
        resumed.wait().exited(0);
        assert_eq!(held.sandbox.leftovers(), []);
    }
}

#[test]
fn it_does_not_run_after_its_job_was_reported() {
    for is_reaper_killed in [false, true] {
        let mut held = Held::start("on_interrupt = \"fail\"\n", "30s");
        if is_reaper_killed {
            held.kill_reaper();
        }
        held.engine.kill_9();
        held.sandbox.run(&["resume"]).exited(1);
        assert_eq!(held.sandbox.tables().jobs()[0].status, "FAILED");
        assert!(!runs(held.starting), "it may still run, reaper killed: {is_reaper_killed}");
        held.let_go();
        assert_eq!(held.sandbox.read("began"), "");
    }
}

/// A process that runs already is ended before the report too, even if no reaper is left.
#[test]
fn a_process_does_not_run_on_after_its_job_was_reported() {
    let mut held = Held::start("on_interrupt = \"fail\"\n", "30s");
    held.let_go();
    eventually("the first attempt", || held.sandbox.read("began").contains('1').then_some(()));
    held.kill_reaper();
    held.engine.kill_9();
    assert!(runs(held.starting), "it outlives its engine");
    held.sandbox.run(&["resume"]).exited(1);
    assert!(!runs(held.starting));
    assert_eq!(held.sandbox.leftovers(), []);
}

/// A stopped engine cannot end the process that it was starting, and no other process can recognise it.
#[test]
fn the_next_attempt_waits_for_processes_that_a_stopped_engine_was_starting() {
    let mut held = Held::start("", "1s");
    held.engine.signal(Signal::STOP);
    let mut other = held.sandbox.spawn(&["worker"]);
    eventually("the second attempt's claim", || (held.attempt() == 2).then_some(()));
    held.let_go();
    eventually("the second attempt", || held.sandbox.read("began").contains('2').then_some(()));
    assert!(!runs(held.starting), "two attempts run");
    held.sandbox.write("go", "");
    eventually("its end", || (held.sandbox.tables().run_status(1) == "SUCCESSFUL").then_some(()));
    held.engine.kill_9();
    other.signal(Signal::TERM);
    other.wait();
}

#[test]
fn the_folder_of_a_killed_engine_is_removed_by_the_next_one() {
    let mut held = Held::start("", "30s");
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).expect("the folder for temporary files").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("windlass-")).count()
    };
    let temporary = held.sandbox.path("tmp");
    held.kill_reaper();
    held.engine.kill_9();
    assert_eq!(folders(&temporary), 1, "nobody is left to remove it");
    held.let_go();
    held.sandbox.write("go", "");
    held.sandbox.run(&["resume"]).exited(0);
    assert_eq!(folders(&temporary), 0);
}
