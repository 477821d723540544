//! Removes the containers of a job.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use windlass_system::Clock;

use super::LABEL;

/// How long one call of the container program may take.
const TIMEOUT_MS: i64 = 30_000;
/// Containers of one job that are removed, at most. An attempt has one.
const CONTAINERS_MAX: usize = 100;

/// Removes all containers with the mark of a job, running or not, and waits until they are gone.
///
/// # Errors
/// Why some may be left, for people.
pub(in super::super) fn remove(program: &str, mark: &str, clock: &Clock) -> Result<(), String> {
    let filter = format!("label={LABEL}={mark}");
    let listed = call(program, &["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter], clock)?;
    let ids: Vec<&str> = listed.split_whitespace().collect();
    if ids.len() > CONTAINERS_MAX {
        return Err(format!("{} containers have the label {LABEL}={mark}", ids.len()));
    }
    if ids.is_empty() {
        return Ok(());
    }
    let words = |verb: &[&'static str]| -> Vec<&str> { verb.iter().copied().chain(ids.clone()).collect() };
    // Else `rm --force` of podman waits ten seconds for each. A container that has ended can't be killed, which is no error.
    let _may_have_ended = call(program, &words(&["kill"]), clock);
    call(program, &words(&["rm", "--force"]), clock).map(|_removed| ())
}

/// Calls the container program, and returns what it prints.
fn call(program: &str, words: &[&str], clock: &Clock) -> Result<String, String> {
    let said = |what: String| format!("`{program} {}` {what}", words[0]);
    let mut command = Command::new(program);
    command.args(words).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| said(format!("could not be started: {error}")))?;
    let process = Pid::from_child(&child);
    let has_ended = ends_in_time(process, clock);
    let _gone = kill_process_group(process, Signal::KILL);
    let status = child.wait().map_err(|error| said(format!("could not be observed: {error}")))?;
    match has_ended {
        Ok(true) => {}
        Ok(false) => return Err(said(format!("took longer than {} s", TIMEOUT_MS / 1_000))),
        Err(error) => return Err(said(format!("could not be watched: {error}"))),
    }
    if !status.success() {
        return Err(said(format!("failed ({status}); run it by hand as the user of the worker")));
    }
    // The pipe holds what was printed: 64 KiB are enough for the ids of a thousand containers.
    let mut printed = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_string(&mut printed).map_err(|error| said(format!("could not be read: {error}")))?;
    }
    Ok(printed)
}

/// Waits until the process has ended, for the longest time.
fn ends_in_time(process: Pid, clock: &Clock) -> std::io::Result<bool> {
    let file = pidfd_open(process, PidfdFlags::empty())?;
    let until_ms = clock.monotonic_ms() + TIMEOUT_MS;
    loop {
        let left_ms = until_ms - clock.monotonic_ms();
        if left_ms <= 0 {
            return Ok(false);
        }
        let timeout = Timespec { tv_sec: left_ms / 1_000, tv_nsec: left_ms % 1_000 * 1_000_000 };
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}
