//! Kills processes: those of a group, or those that have a job's mark in their environment.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::command::{ATTEMPT_VARIABLE, MARK_VARIABLE};
use super::refusal::{self, Refused};
use crate::handler::failed;
use windlass_engine::transition::Outcome;
use windlass_system::process::Environment;
use windlass_system::process::sweep::{
    FoundProcess, StartingProcesses, SweepAction, SweepError, sweep as sweep_processes,
};

/// How long killed processes may take to end, and processes of other engines to start.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a signal to a group. It does nothing if the group is gone.
pub(super) fn group(group: Pid, signal: Signal) {
    let _gone = kill_process_group(group, signal);
}

/// Some attempts of one job. A later attempt than the worker's own is never among them, because another worker owns it.
#[derive(Debug, Clone, Copy)]
pub(super) enum AttemptRange {
    /// All before this number.
    Before(i64),
    /// This number.
    Only(i64),
}

impl AttemptRange {
    fn includes(self, environment: &Environment) -> bool {
        let attempt = environment.get(ATTEMPT_VARIABLE).and_then(|number| number.parse::<i64>().ok());
        match self {
            AttemptRange::Before(own) => attempt.is_some_and(|attempt| attempt < own),
            AttemptRange::Only(own) => attempt == Some(own),
        }
    }
}

/// Kills every process of this machine that these attempts of the job started, also those in sessions of their own, and
/// waits until they are gone. The error is the outcome of the attempt that must not start.
///
/// The engine of an earlier attempt may have been killed or stopped while it started a process. Such a process has no
/// mark yet, and nobody can tell which job it belongs to. So this waits until the processes of living engines have
/// started, and kills those of engines that are gone.
pub(super) fn sweep(mark: &str, attempts: AttemptRange) -> Result<(), Outcome> {
    let starting = match attempts {
        AttemptRange::Before(_) => StartingProcesses::OfFirstScan,
        AttemptRange::Only(_) => StartingProcesses::Ignore,
    };
    let ended = sweep_processes(END_TIMEOUT, starting, |_pid, process| match process {
        FoundProcess::Running(environment) => {
            let is_own = environment.get(MARK_VARIABLE) == Some(mark) && attempts.includes(environment);
            if is_own { SweepAction::Kill } else { SweepAction::Ignore }
        }
        FoundProcess::Starting(engine) if engine.is_gone() => SweepAction::Kill,
        FoundProcess::Starting(_) => SweepAction::WaitFor,
    });
    ended.map_err(|SweepError { processes, shortage }| match (shortage, processes.as_slice()) {
        (Some(errno), _) => refusal::outcome(
            Refused::Files,
            "no file to look for processes of an earlier attempt",
            &errno.into(),
        ),
        (None, []) => failed(
            "processes of an earlier attempt may still run: others start and end too fast to check them all",
        ),
        (None, left) => {
            failed(format!("processes of an earlier attempt may still run, and can't be killed: {left:?}"))
        }
    })
}
