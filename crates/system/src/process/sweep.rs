//! Finds processes by what they were started with, and kills them until none is left.
//!
//! One list of processes is not enough: while it is read, a process may start another one and end. So the list is
//! read again until nothing new stands in it. The newest are looked at first: they are the ones that may be gone a
//! moment later. A process that is being started is not recognised yet, and is looked at again.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};

use super::engine_id::{EngineId, OpenFolder, open_folder};
use super::stat::{Stat, newest_first};
use super::{Environment, own_pid};
use crate::shortage::shortage;

const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// With this the names of all threads begin that start processes of jobs; their children have the same name until
/// `execve`.
const THREADS_OF_ENGINES: &[u8] = b"windlass-";

/// What is known of a process.
#[derive(Debug)]
pub enum Known {
    /// An engine has started it, and it has not executed its program yet.
    Starting(EngineId),
    /// It runs a program with this environment.
    Runs(Environment),
}

/// Whether processes are looked for that engines are starting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starting {
    /// Those of the first look count: who asks knows that what it looks for was started before.
    OfFirstLook,
    /// None counts: who asks knows that what it looks for has executed its program.
    None,
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// End it.
    Kill,
    /// It will end or execute its program by itself.
    WaitFor,
    /// Let it run.
    Leave,
}

/// What was seen of a process.
#[derive(Debug)]
enum Seen {
    Known(Known),
    /// It is in the middle of `execve`: its environment can't be read yet.
    InExec,
    /// It may have started another one before.
    Ended,
    /// A thread of the kernel, or another user's.
    Foreign,
}

/// Processes that are still in the way.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotEnded {
    /// It names none where processes come and go so fast that nothing can be said.
    pub processes: Vec<i32>,
    /// What the system did not give to look with: then nothing is known of any of them.
    pub shortage: Option<Errno>,
}

impl From<Errno> for NotEnded {
    fn from(shortage: Errno) -> NotEnded {
        NotEnded { shortage: Some(shortage), ..NotEnded::default() }
    }
}

/// Kills every process that `judge` says, and looks again until there are none, this process excepted. A process
/// that was left once is not looked at again.
///
/// # Errors
/// After `patience`, with the processes that are still in the way; at once for want of files to look with.
pub fn end_all(
    patience: Duration,
    starting: Starting,
    mut judge: impl FnMut(i32, &Known) -> Verdict,
) -> Result<(), NotEnded> {
    let began = Instant::now();
    let mut left = HashSet::from([own_pid()]);
    let mut is_first_look = true;
    let mut started_before = HashSet::new();
    loop {
        let (mut in_the_way, mut has_ended) = (Vec::new(), false);
        for pid in newest_first()? {
            if left.contains(&pid) {
                continue;
            }
            let verdict = match look_at(pid, starting)? {
                Seen::Known(known) => {
                    let is_starting = matches!(known, Known::Starting(_));
                    if is_first_look && is_starting {
                        started_before.insert(pid);
                    }
                    let counts = !is_starting || started_before.contains(&pid);
                    let verdict = if counts { judge(pid, &known) } else { Verdict::Leave };
                    if verdict == Verdict::Kill {
                        kill(pid, &known);
                    }
                    verdict
                }
                Seen::InExec => Verdict::WaitFor,
                Seen::Ended => {
                    has_ended = true;
                    Verdict::Leave
                }
                Seen::Foreign => Verdict::Leave,
            };
            match verdict {
                Verdict::Kill | Verdict::WaitFor => in_the_way.push(pid),
                Verdict::Leave => _ = left.insert(pid),
            }
        }
        if in_the_way.is_empty() && !has_ended {
            return Ok(());
        }
        if began.elapsed() >= patience {
            return Err(NotEnded { processes: in_the_way, shortage: None });
        }
        if !in_the_way.is_empty() {
            std::thread::sleep(LOOK_AGAIN);
        }
        is_first_look = false;
    }
}

/// Kills a process with its whole group: all at once, so that none of them can start another one meanwhile. Who is not
/// at its program yet may still be in the group of its engine, with others.
fn kill(pid: i32, known: &Known) {
    let group = match known {
        Known::Starting(_) => None,
        Known::Runs(_) => Stat::read(pid.into()).and_then(|stat| Pid::from_raw(stat.group)),
    };
    let _gone = match group.filter(|group| *group != getpgrp()) {
        Some(group) => kill_process_group(group, Signal::KILL),
        None => Pid::from_raw(pid).map_or(Ok(()), |pid| kill_process(pid, Signal::KILL)),
    };
}

/// The order matters. A process that is being started is recognised by its name and its files. It loses them before
/// its environment can be read: so they are looked at first. `stat` comes last because it costs most.
fn look_at(pid: i32, starting: Starting) -> Result<Seen, Errno> {
    if starting == Starting::OfFirstLook {
        let name = match fs::read(format!("/proc/{pid}/comm")) {
            Ok(name) => name,
            Err(error) => return shortage(&error).map_or(Ok(Seen::Ended), Err),
        };
        if name.starts_with(THREADS_OF_ENGINES) {
            match open_folder(pid)? {
                OpenFolder::Of(engine) => return Ok(Seen::Known(Known::Starting(engine))),
                OpenFolder::Hidden => return Ok(Seen::Foreign),
                OpenFolder::None => {}
            }
        }
    }
    let variables = match fs::read(format!("/proc/{pid}/environ")) {
        Ok(variables) => variables,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Seen::Foreign),
        Err(error) => return shortage(&error).map_or(Ok(Seen::Ended), Err),
    };
    if !variables.is_empty() {
        return Ok(Seen::Known(Known::Runs(Environment(variables))));
    }
    Ok(match Stat::read(pid.into()) {
        None => Seen::Ended,
        Some(stat) if stat.has_ended() => Seen::Ended,
        Some(stat) if stat.is_kernel_thread() => Seen::Foreign,
        Some(stat) if stat.has_no_variables() => Seen::Known(Known::Runs(Environment(variables))),
        Some(_) => Seen::InExec,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::{Child, Command};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);
    const VARIABLE: &str = "WINDLASS_TEST_OF_SWEEPS";

    fn start(value: &str, script: &str) -> Child {
        Command::new("python3").args(["-c", script]).env(VARIABLE, value).spawn().unwrap()
    }

    fn carries(known: &Known, value: &str) -> bool {
        matches!(known, Known::Runs(environment) if environment.get(VARIABLE) == Some(value))
    }

    fn count(value: &str) -> usize {
        let carriers = |pid: &i32| matches!(look_at(*pid, Starting::None), Ok(Seen::Known(known)) if carries(&known, value));
        newest_first().unwrap().iter().filter(|pid| carriers(pid)).count()
    }

    /// One list after the other shows nothing of such a chain: each process is gone before its turn comes.
    #[test]
    fn a_chain_of_short_processes_does_not_outrun_the_sweep() {
        let links = ["os._exit(0)", "time.sleep(0.001); os._exit(0)", "os._exit(0)\n  os.setsid()"];
        for (round, link) in links.into_iter().enumerate() {
            let value = format!("{}-{round}", std::process::id());
            let chain = format!("import os, time\nos.setsid()\nwhile True:\n  if os.fork(): {link}\n");
            let mut first = start(&value, &chain);
            first.wait().unwrap();
            let mut killed = 0;
            let ended = end_all(PATIENCE, Starting::OfFirstLook, |_pid, known| {
                killed += i32::from(carries(known, &value));
                if carries(known, &value) { Verdict::Kill } else { Verdict::Leave }
            });
            assert_eq!(ended, Ok(()), "{link}");
            assert!(killed > 0, "{link}: it ran on until it was killed");
            for _look in 0..20 {
                assert_eq!(count(&value), 0, "{link}");
            }
        }
    }

    /// The list was made before the other one was there.
    #[test]
    fn who_has_ended_may_have_started_another_one() {
        let mut ended = Command::new("true").spawn().unwrap();
        let seen = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&ended)), seen).unwrap();
        let value = format!("{}-other", std::process::id());
        let mut other = None;
        let swept = end_all(PATIENCE, Starting::OfFirstLook, |_pid, known| {
            other.get_or_insert_with(|| start(&value, "import time; time.sleep(600)"));
            if carries(known, &value) { Verdict::Kill } else { Verdict::Leave }
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
    fn what_does_not_end_is_named() {
        let value = format!("{}-named", std::process::id());
        let mut child = start(&value, "import time; time.sleep(600)");
        let pid = i32::try_from(child.id()).unwrap();
        let waited = end_all(Duration::from_millis(200), Starting::None, |other, _known| {
            if other == pid { Verdict::WaitFor } else { Verdict::Leave }
        });
        child.kill().unwrap();
        child.wait().unwrap();
        // Others may be in the middle of `execve`.
        assert!(waited.is_err_and(|left| left.processes.contains(&pid)));
    }

    #[test]
    fn a_program_without_variables_holds_nobody_up() {
        let mut child = Command::new("sleep").arg("600").env_clear().spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut seen = None;
        let looked = end_all(PATIENCE, Starting::OfFirstLook, |other, known| {
            if other == pid {
                seen = Some(matches!(known, Known::Runs(_)));
            }
            Verdict::Leave
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((looked, seen), (Ok(()), Some(true)));
    }
}
