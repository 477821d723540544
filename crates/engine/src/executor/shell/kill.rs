//! Ending processes: a group, or whatever carries a job's mark in its environment.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::command::KEY_VARIABLE;
use crate::process::processes_with_environment;

/// How long killed processes may take to vanish.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Signals a group. One that is gone already is fine.
pub(super) fn group(group: Pid, signal: Signal) {
    let _gone = kill_process_group(group, signal);
}

/// Kills every process on this machine that an attempt of the job started, also those in sessions of
/// their own, and waits until they are gone. The error is for people.
pub(super) fn sweep(idempotency_key: &str) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let left = processes_with_environment(KEY_VARIABLE, idempotency_key);
        if left.is_empty() {
            return Ok(());
        }
        for pid in left.iter().filter_map(|pid| Pid::from_raw(*pid)) {
            let _gone = kill_process(pid, Signal::KILL);
        }
        if began.elapsed() > GONE_WITHIN {
            return Err(format!("processes of an earlier attempt can't be killed: {left:?}"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
