#![allow(clippy::unwrap_used)]

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, test_kill_process};

use super::*;

/// Long enough for a loaded machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// A lease that does not end while a test runs.
const LONG_MS: i64 = 600_000;

/// A job: a process that leads a group of its own. It is killed at the end of the test.
struct Job<'a> {
    child: Child,
    entry: Option<TableEntry<'a>>,
}

impl<'a> Job<'a> {
    fn start(reaper: &Reaper, name: &str, program: &[&str]) -> Job<'a> {
        let child = Command::new(program[0])
            .args(&program[1..])
            .env("WINDLASS_OUTPUT", reaper.output_folder().unwrap().join(name))
            .process_group(0)
            .spawn()
            .unwrap();
        Job { child, entry: None }
    }

    /// Starts a job as an executor does.
    fn with_entry(reaper: &'a Reaper, clock: &Clock, name: &str) -> Job<'a> {
        let entry = reaper.add_attempt(name).unwrap();
        let mut job = Job::start(reaper, name, &["sleep", "600"]);
        entry.add_group(job.group(), clock);
        job.entry = Some(entry);
        job
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the job has ended, and returns when that was.
    fn wait(&mut self) -> Instant {
        wait_for("the job's end", || !self.runs());
        Instant::now()
    }

    /// Removes the job from the reaper's table, although it runs.
    fn forget(&mut self) {
        self.entry.take().unwrap().end();
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn confirm(reaper: &Reaper, clock: &Clock, for_ms: i64) {
    reaper.confirm(clock.monotonic_ms() + for_ms, clock);
}

fn pid(reaper: &Reaper) -> Pid {
    Pid::from_child(reaper.lock().child.as_ref().unwrap())
}

#[test]
fn jobs_are_killed_when_the_lease_is_over_and_not_before() {
    let (reaper, clock) = (Reaper::new(HostScope::ManyHosts), Clock::system());
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    let mut gone = Job::with_entry(&reaper, &clock, "8-1");
    gone.forget();
    let mut ends_at = Instant::now();
    // The renewals together take longer than one lease. A lease is long enough to be renewed on a busy machine.
    for _renewal in 0..12 {
        ends_at = Instant::now() + Duration::from_millis(1_500);
        confirm(&reaper, &clock, 1_500);
        std::thread::sleep(Duration::from_millis(150));
        assert!(job.runs(), "the lease was confirmed");
    }
    let ended = job.wait();
    assert!(ended + Duration::from_millis(20) >= ends_at, "{:?} too early", ends_at - ended);
    assert!(gone.runs(), "it is not in the table any more");
    let mut late = Job::with_entry(&reaper, &clock, "9-1");
    late.wait();
    confirm(&reaper, &clock, LONG_MS);
    let mut after = Job::with_entry(&reaper, &clock, "9-2");
    std::thread::sleep(Duration::from_millis(100));
    assert!(after.runs(), "the lease is confirmed again");
}

/// The reaper reads the table when it has read its messages, so an attempt may be in it that began after a confirmation
/// that the reaper has not read.
#[test]
fn an_attempt_that_began_after_a_later_confirmation_is_not_killed() {
    let (reaper, clock) = (Reaper::new(HostScope::ManyHosts), Clock::system());
    let mut late = Job::with_entry(&reaper, &clock, "7-1");
    confirm(&reaper, &clock, 0);
    late.wait();
    let process = pid(&reaper);
    kill_process(process, Signal::STOP).unwrap();
    // Its group makes the reaper read the table once more.
    let mut over = Job::with_entry(&reaper, &clock, "8-1");
    confirm(&reaper, &clock, LONG_MS);
    let mut after = Job::with_entry(&reaper, &clock, "9-1");
    kill_process(process, Signal::CONT).unwrap();
    over.wait();
    // It starts the timer when it has read the confirmation, and so it has killed everything that it will kill.
    wait_for("the timer", || members(process, "sleep") == 1);
    assert!(after.runs(), "it began after the lease was confirmed");
    reaper.close();
    after.wait();
}

#[test]
fn processes_outside_their_group_are_killed_too_but_only_those_of_attempts_in_the_table() {
    let (reaper, clock) = (Reaper::new(HostScope::ManyHosts), Clock::system());
    let _entry = reaper.add_attempt("7-1").unwrap();
    let mut without_group = Job::start(&reaper, "7-1", &["sleep", "600"]);
    let mut other_attempt = Job::start(&reaper, "7-10", &["sleep", "600"]);
    let other_reaper = Reaper::new(HostScope::ManyHosts);
    let mut other_engine = Job::start(&other_reaper, "7-1", &["sleep", "600"]);
    confirm(&reaper, &clock, 200);
    without_group.wait();
    std::thread::sleep(Duration::from_millis(100));
    assert!(other_attempt.runs() && other_engine.runs());
}

#[test]
fn jobs_are_killed_when_the_engine_dies() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    let folder = reaper.output_folder().unwrap().to_owned();
    confirm(&reaper, &clock, LONG_MS);
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    reaper.close();
    job.wait();
    assert!(!folder.exists(), "the reaper removes the folder");
}

/// The second process has no variables, so only its group tells which attempt it belongs to.
#[test]
fn the_whole_group_is_killed_and_not_only_its_leader() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    confirm(&reaper, &clock, LONG_MS);
    let entry = reaper.add_attempt("7-1").unwrap();
    let mut job = Job::start(&reaper, "7-1", &["sh", "-c", "env -i sleep 600 & wait"]);
    let group = job.group();
    entry.add_group(group, &clock);
    wait_for("the second process", || members(group, "") == 2);
    reaper.close();
    job.wait();
    wait_for("the end of the group", || super::super::group::is_gone(group));
}

#[test]
fn a_half_written_word_is_ignored() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    confirm(&reaper, &clock, LONG_MS);
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    let mut other = Job::start(&reaper, "8-1", &["sleep", "600"]);
    let group = other.group().as_raw_nonzero();
    // The second line of the table, as the reaper may read it while it is written.
    let torn = format!("8-1:8- 8-1 :8-1 {group}:{group}1 {group} :{group} {group}:");
    reaper.attempts().unwrap().file().unwrap().write_all_at(torn.as_bytes(), 152).unwrap();
    reaper.close();
    job.wait();
    assert!(other.runs());
}

/// If the jobs have used up all processes that the system allows, the reaper can start no program.
#[test]
fn groups_are_killed_even_if_no_program_can_be_started() {
    for shell in ["/bin/sh", "/bin/bash"].into_iter().filter(|shell| Path::new(shell).exists()) {
        let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
        let mut job = Job::with_entry(&reaper, &clock, "7-1");
        // The third line is written, and the second is not yet.
        let second = reaper.attempts().unwrap().add("8-1", 0).unwrap();
        reaper.attempts().unwrap().file().unwrap().write_all_at(&[0; 152], second as u64 * 152).unwrap();
        let mut last = Job::with_entry(&reaper, &clock, "9-1");
        let script = without_comments(SCRIPT);
        let ended = Command::new(shell)
            .args(["-c", &script, "reaper", "/nonexistent", "one-kernel"])
            .env("PATH", "/nonexistent")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(reaper.attempts().unwrap().file().unwrap())
            .status()
            .unwrap();
        assert_eq!(ended.code(), Some(127), "{shell}: not even the folder could be removed");
        job.wait();
        last.wait();
    }
}

#[test]
fn an_engine_that_ends_normally_leaves_nothing_of_its_reaper() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    let folder = reaper.output_folder().unwrap().to_owned();
    confirm(&reaper, &clock, LONG_MS);
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    let mut free = Job::start(&reaper, "7-1", &["sleep", "600"]);
    let group = pid(&reaper);
    job.forget();
    drop(job);
    drop(reaper);
    assert!(free.runs(), "a process that outlived its job may go on");
    assert!(!folder.exists());
    wait_for("the end of the timer", || super::super::group::is_gone(group));
}

#[test]
fn a_reaper_that_was_killed_is_replaced() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    confirm(&reaper, &clock, LONG_MS);
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    let first = pid(&reaper);
    kill_process(first, Signal::KILL).unwrap();
    wait_for("another reaper", || {
        confirm(&reaper, &clock, LONG_MS);
        pid(&reaper) != first
    });
    assert!(test_kill_process(first).is_err(), "it was waited for");
    assert!(job.runs());
    reaper.close();
    job.wait();
}

#[test]
fn a_reaper_that_does_not_read_is_replaced_and_delays_nobody() {
    let (reaper, clock) = (Reaper::new(HostScope::OneKernel), Clock::system());
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    let first = pid(&reaper);
    kill_process(first, Signal::STOP).unwrap();
    let began = Instant::now();
    while pid(&reaper) == first {
        assert!(began.elapsed() < PATIENCE, "nobody noticed");
        confirm(&reaper, &clock, 500);
    }
    job.wait();
}

/// The processes of a group that execute a program whose name contains `program`.
fn members(group: Pid, program: &str) -> usize {
    let of_group = |stat: &str| {
        let Some((name, rest)) = stat.rsplit_once(')') else { return false };
        let is_of_group = rest.split_whitespace().nth(2) == Some(&group.as_raw_nonzero().to_string());
        is_of_group && name.contains(program)
    };
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| std::fs::read_to_string(entry.path().join("stat")).is_ok_and(|s| of_group(&s)))
        .count()
}

/// Stops the reaper's whole group with its timer, so that it does not see time pass, as if the machine slept. The
/// lease was renewed after the timer was set, as it is most of the time. Returns whether the job still runs.
fn sleep_through_the_lease(host_scope: HostScope) -> bool {
    let (reaper, clock) = (Reaper::new(host_scope), Clock::system());
    let mut job = Job::with_entry(&reaper, &clock, "7-1");
    confirm(&reaper, &clock, 800);
    confirm(&reaper, &clock, 2_500);
    // The timer is a process in the same group. Once it runs, the reaper has read the messages.
    let group = pid(&reaper);
    wait_for("the timer", || members(group, "sleep") == 1);
    kill_process_group(group, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(3_500));
    assert!(job.runs(), "the reaper was stopped");
    kill_process_group(group, Signal::CONT).unwrap();
    match host_scope {
        HostScope::ManyHosts => wait_for("the end of the job", || !job.runs()),
        // Nothing should happen. A reaper that is wrong has this time to kill the job.
        HostScope::OneKernel => std::thread::sleep(Duration::from_millis(600)),
    }
    job.runs()
}

#[test]
fn a_machine_that_slept_through_its_lease_has_lost_it_to_other_hosts() {
    assert!(!sleep_through_the_lease(HostScope::ManyHosts));
}

#[test]
fn under_one_kernel_the_time_that_the_machine_slept_does_not_count() {
    assert!(sleep_through_the_lease(HostScope::OneKernel));
}
