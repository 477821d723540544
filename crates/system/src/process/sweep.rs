//! Finds processes by their environment, and kills them until none is left.
//!
//! One scan of all processes is not enough: during the scan a process may start another one and end. So the scan is
//! repeated until it finds nothing new. It begins with the newest processes, because they may end soonest. A process
//! in the middle of `execve` cannot be recognized yet, and is inspected again in the next scan.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use super::engine_id::{EngineId, OpenFolder, open_folder};
use super::stat::{Stat, pids_newest_first};
use super::{Environment, own_pid};
use crate::shortage::shortage;

const SCAN_INTERVAL: Duration = Duration::from_millis(2);
/// All threads that start job processes have names with this prefix. A child process has the name of its thread until
/// `execve`.
const ENGINE_THREAD_PREFIX: &[u8] = b"windlass-";

/// A process that the sweep can recognize.
#[derive(Debug)]
pub enum FoundProcess {
    /// An engine has started it, and it has not executed its program yet.
    Starting(EngineId),
    /// It runs a program with this environment.
    Running(Environment),
}

/// Which of the processes that have not executed their program yet are passed to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingProcesses {
    /// Those that the first scan finds. For a caller that knows that its processes were started before the sweep.
    OfFirstScan,
    /// None. For a caller that knows that its processes have executed their programs.
    Ignore,
}

/// What to do about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepAction {
    /// End it.
    Kill,
    /// It will end or execute its program by itself.
    WaitFor,
    /// Let it run, and do not inspect it again.
    Ignore,
}

/// What `/proc` tells about a process.
#[derive(Debug)]
enum Observation {
    Found(FoundProcess),
    /// It is in the middle of `execve`, or of its end: its environment can't be read.
    InExecOrEnding,
    /// It has ended. It may have started another process before.
    Ended,
    /// A kernel thread, or a process of another user.
    Foreign,
}

/// Why a sweep failed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SweepError {
    /// Processes that should end and still run. Empty if processes started and ended so fast that no scan was complete.
    pub processes: Vec<i32>,
    /// The resource that the system lacked to inspect processes. In this case nothing is known about them.
    pub shortage: Option<Errno>,
}

impl From<Errno> for SweepError {
    fn from(shortage: Errno) -> SweepError {
        SweepError { shortage: Some(shortage), ..SweepError::default() }
    }
}

/// Kills every process for which `decide` says so, and scans again until none is left. This process is never killed. A
/// process that was ignored once is not inspected again.
///
/// # Errors
/// After `timeout`, with the processes that still run. At once when no file can be opened to inspect processes.
pub fn sweep(
    timeout: Duration,
    starting: StartingProcesses,
    mut decide: impl FnMut(i32, &FoundProcess) -> SweepAction,
) -> Result<(), SweepError> {
    let began = Instant::now();
    let mut ignored = HashSet::from([own_pid()]);
    let mut is_first_scan = true;
    let mut started_before = HashSet::new();
    loop {
        let (mut running, mut has_ended) = (Vec::new(), false);
        for pid in pids_newest_first()? {
            if ignored.contains(&pid) {
                continue;
            }
            let action = match inspect(pid, starting)? {
                Observation::Found(process) => {
                    let is_starting = matches!(process, FoundProcess::Starting(_));
                    if is_first_scan && is_starting {
                        started_before.insert(pid);
                    }
                    let counts = !is_starting || started_before.contains(&pid);
                    let action = if counts { decide(pid, &process) } else { SweepAction::Ignore };
                    if action == SweepAction::Kill {
                        kill(pid, &process);
                    }
                    action
                }
                Observation::InExecOrEnding => SweepAction::WaitFor,
                Observation::Ended => {
                    has_ended = true;
                    SweepAction::Ignore
                }
                Observation::Foreign => SweepAction::Ignore,
            };
            match action {
                SweepAction::Kill | SweepAction::WaitFor => running.push(pid),
                SweepAction::Ignore => _ = ignored.insert(pid),
            }
        }
        if running.is_empty() && !has_ended {
            return Ok(());
        }
        if began.elapsed() >= timeout {
            return Err(SweepError { processes: running, shortage: None });
        }
        if !running.is_empty() {
            std::thread::sleep(SCAN_INTERVAL);
        }
        is_first_scan = false;
    }
}

/// Kills a process together with its process group, so that no member of the group can start another process meanwhile. A
/// process that has not executed its program yet is killed alone, because it may still be in the group of its engine.
fn kill(pid: i32, process: &FoundProcess) {
    let group = match process {
        FoundProcess::Starting(_) => None,
        FoundProcess::Running(_) => Stat::read(pid.into()).and_then(|stat| Pid::from_raw(stat.group)),
    };
    let _gone = match group.filter(|group| *group != getpgrp()) {
        Some(group) => kill_process_group(group, Signal::KILL),
        None => Pid::from_raw(pid).map_or(Ok(()), |pid| kill_process(pid, Signal::KILL)),
    };
}

/// The order of the checks matters. A process that has not executed its program yet is recognized by its name and its open
/// files. It loses both before its environment can be read, so they are read first. `stat` is read last because it costs
/// most.
fn inspect(pid: i32, starting: StartingProcesses) -> Result<Observation, Errno> {
    if starting == StartingProcesses::OfFirstScan {
        let name = match fs::read(format!("/proc/{pid}/comm")) {
            Ok(name) => name,
            Err(error) => return shortage(&error).map_or(Ok(Observation::Ended), Err),
        };
        if name.starts_with(ENGINE_THREAD_PREFIX) {
            match open_folder(pid)? {
                OpenFolder::Of(engine) => return Ok(Observation::Found(FoundProcess::Starting(engine))),
                OpenFolder::Hidden => return Ok(Observation::Foreign),
                OpenFolder::None => {}
            }
        }
    }
    let variables = match fs::read(format!("/proc/{pid}/environ")) {
        Ok(variables) => variables,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Observation::Foreign),
        Err(error) => match shortage(&error) {
            Some(errno) => return Err(errno),
            // It has ended, or it is about to end: the memory with the variables is freed before the process is gone.
            None => Vec::new(),
        },
    };
    if !variables.is_empty() {
        return Ok(Observation::Found(FoundProcess::Running(Environment(variables))));
    }
    Ok(match Stat::read(pid.into()) {
        None => Observation::Ended,
        Some(stat) if stat.has_ended() => Observation::Ended,
        Some(stat) if stat.is_kernel_thread() => Observation::Foreign,
        Some(stat) if stat.has_no_variables() => {
            Observation::Found(FoundProcess::Running(Environment(variables)))
        }
        Some(_) => Observation::InExecOrEnding,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::{Child, Command};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);
    const VARIABLE: &str = "WINDLASS_TEST_OF_SWEEPS";

    fn start(value: &str, script: &str) -> Child {
        Command::new("python3").args(["-c", script]).env(VARIABLE, value).spawn().unwrap()
    }

    fn has_value(process: &FoundProcess, value: &str) -> bool {
        matches!(process, FoundProcess::Running(environment) if environment.get(VARIABLE) == Some(value))
    }

    fn count(value: &str) -> usize {
        let is_found = |pid: &i32| match inspect(*pid, StartingProcesses::Ignore) {
            Ok(Observation::Found(process)) => has_value(&process, value),
            Ok(Observation::InExecOrEnding | Observation::Ended | Observation::Foreign) | Err(_) => false,
        };
        pids_newest_first().unwrap().iter().filter(|pid| is_found(pid)).count()
    }

    /// A single scan does not find such a chain: each process has ended when the scan reaches it.
    #[test]
    fn a_chain_of_short_processes_is_killed() {
        let links = ["os._exit(0)", "time.sleep(0.001); os._exit(0)", "os._exit(0)\n  os.setsid()"];
        for (round, link) in links.into_iter().enumerate() {
            let value = format!("{}-{round}", std::process::id());
            let chain = format!("import os, time\nos.setsid()\nwhile True:\n  if os.fork(): {link}\n");
            let mut first = start(&value, &chain);
            first.wait().unwrap();
            let mut killed = 0;
            let ended = sweep(TIMEOUT, StartingProcesses::OfFirstScan, |_pid, process| {
                killed += i32::from(has_value(process, &value));
                if has_value(process, &value) { SweepAction::Kill } else { SweepAction::Ignore }
            });
            assert_eq!(ended, Ok(()), "{link}");
            assert!(killed > 0, "{link}: it ran on until it was killed");
            for _scan in 0..20 {
                assert_eq!(count(&value), 0, "{link}");
            }
        }
    }

    /// The first scan does not contain the process that is started during the scan.
    #[test]
    fn a_scan_with_an_ended_process_is_repeated() {
        let mut ended = Command::new("true").spawn().unwrap();
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&ended)), seen).unwrap();
        let value = format!("{}-other", std::process::id());
        let mut other = None;
        let swept = sweep(TIMEOUT, StartingProcesses::OfFirstScan, |_pid, process| {
            other.get_or_insert_with(|| start(&value, "import time; time.sleep(600)"));
            if has_value(process, &value) { SweepAction::Kill } else { SweepAction::Ignore }
        });
        assert_eq!(swept, Ok(()));
        let mut other = other.unwrap();
        let is_left = other.try_wait().unwrap().is_none();
        let _gone = other.kill();
        other.wait().unwrap();
        ended.wait().unwrap();
        assert!(!is_left);
    }

    #[test]
    fn a_process_that_does_not_end_is_in_the_error() {
        let value = format!("{}-named", std::process::id());
        let mut child = start(&value, "import time; time.sleep(600)");
        let pid = i32::try_from(child.id()).unwrap();
        let waited = sweep(Duration::from_millis(200), StartingProcesses::Ignore, |other, _process| {
            if other == pid { SweepAction::WaitFor } else { SweepAction::Ignore }
        });
        child.kill().unwrap();
        child.wait().unwrap();
        // The error may have other processes too, which are in the middle of `execve`.
        assert!(waited.is_err_and(|error| error.processes.contains(&pid)));
    }

    #[test]
    fn a_program_without_variables_does_not_delay_the_sweep() {
        let mut child = Command::new("sleep").arg("600").env_clear().spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut seen = None;
        let swept = sweep(TIMEOUT, StartingProcesses::OfFirstScan, |other, process| {
            if other == pid {
                seen = Some(matches!(process, FoundProcess::Running(_)));
            }
            SweepAction::Ignore
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((swept, seen), (Ok(()), Some(true)));
    }
}
