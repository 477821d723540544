//! Ending processes: a group, or whatever carries a job's mark in its environment.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::command::{ATTEMPT_VARIABLE, MARK_VARIABLE};
use crate::process::{Environment, processes_with};

/// How long killed processes may take to vanish.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Signals a group. One that is gone already is fine.
pub(super) fn group(group: Pid, signal: Signal) {
    let _gone = kill_process_group(group, signal);
}

/// Attempts of one job. Later ones than a worker's own are never its to end: another worker owns the
/// job by then.
#[derive(Debug, Clone, Copy)]
pub(super) enum Attempts {
    /// All before this one.
    Before(i64),
    /// This one.
    Only(i64),
}

impl Attempts {
    fn started(self, environment: &Environment) -> bool {
        let attempt = environment.get(ATTEMPT_VARIABLE).and_then(|number| number.parse::<i64>().ok());
        match self {
            Attempts::Before(own) => attempt.is_some_and(|attempt| attempt < own),
            Attempts::Only(own) => attempt == Some(own),
        }
    }
}

/// Kills every process on this machine that these attempts of the job started, also those in sessions
/// of their own, and waits until they are gone. The error is for people.
pub(super) fn sweep(mark: &str, attempts: Attempts) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let left = processes_with(|environment| {
            environment.get(MARK_VARIABLE) == Some(mark) && attempts.started(environment)
        });
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
