//! Processes of this machine: their identity, whether they still exist, and killing what dead engines left.

pub mod engine_id;
pub mod stat;
pub mod sweep;

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use self::engine_id::{EngineId, engine_of_output_file};
use self::stat::Stat;
use self::sweep::{FoundProcess, StartingProcesses, SweepAction, sweep};

/// Where the processes that use one database can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostScope {
    /// Under one kernel: a process with another boot id is from an earlier boot, and gone.
    OneKernel,
    /// On several hosts: a process with another boot id may run on another machine.
    ManyHosts,
}

/// The variable with the path of an attempt's output file, which is in the folder of its engine.
pub const OUTPUT_VARIABLE: &str = "WINDLASS_OUTPUT";

/// Identifies a process for all time. Its id alone does not, because ids are used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The host's name, for people.
    pub host: String,
    /// The process id.
    pub pid: i64,
    /// `boot id / pid namespace / start time`. Other modules do not read it.
    pub process: String,
}

/// Whether a process exists, as far as this process can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// It exists.
    Alive,
    /// It does not exist any more.
    Gone,
    /// It may exist where this process can't see it.
    Unknown,
}

impl ProcessIdentity {
    /// The identity of this process.
    #[must_use]
    pub fn current() -> ProcessIdentity {
        let pid = i64::from(std::process::id());
        let start = match proc_state(pid) {
            ProcState::Running(start) => start.to_string(),
            ProcState::Ended | ProcState::NotShown => String::new(),
        };
        ProcessIdentity {
            host: host_name(),
            pid,
            process: format!("{}/{}/{start}", boot_id(), pid_namespace()),
        }
    }
}

/// Whether the process of a worker still exists.
///
/// A process with another boot id is gone if all processes of the database run under one kernel. If they run on several
/// hosts, it may run on another host. Processes of another pid namespace can't be seen, and neither can those of another
/// user if `/proc` is mounted with `hidepid`.
#[must_use]
pub fn liveness(pid: i64, process: &str, host_scope: HostScope) -> Liveness {
    let mut parts = process.splitn(3, '/');
    let (Some(boot), Some(namespace), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return Liveness::Unknown;
    };
    let (this_boot, this_namespace) = (boot_id(), pid_namespace());
    if [boot, namespace, start, &this_boot, &this_namespace].iter().any(|part| part.is_empty()) {
        return Liveness::Unknown;
    }
    if boot != this_boot {
        return match host_scope {
            HostScope::OneKernel => Liveness::Gone,
            HostScope::ManyHosts => Liveness::Unknown,
        };
    }
    if namespace != this_namespace {
        return Liveness::Unknown;
    }
    match proc_state(pid) {
        ProcState::Running(found) if found.to_string() == start => Liveness::Alive,
        ProcState::Running(_) | ProcState::Ended => Liveness::Gone,
        ProcState::NotShown => liveness_without_proc(check_exists(pid)),
    }
}

/// Decides about a process that `/proc` does not show: it is gone, or belongs to another user.
fn liveness_without_proc(answer: Result<(), Errno>) -> Liveness {
    match answer {
        Err(Errno::SRCH) => Liveness::Gone,
        Ok(()) | Err(_) => Liveness::Unknown,
    }
}

/// Asks the kernel whether the process exists, with a signal that does nothing.
fn check_exists(pid: i64) -> Result<(), Errno> {
    // Zero and negative numbers would mean process groups.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0).and_then(Pid::from_raw);
    test_kill_process(pid.ok_or(Errno::SRCH)?)
}

/// The environment that a process was started with.
#[derive(Debug)]
pub struct Environment(Vec<u8>);

impl Environment {
    /// The value of a variable, if it is there and is text.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            std::str::from_utf8(value).ok()
        })
    }
}

/// How long the processes of a dead engine may take to end after they were killed.
const ORPHANS_TIMEOUT: Duration = Duration::from_secs(1);

/// Kills the processes that a dead engine of this machine started for some attempts, given as (job, attempt). That
/// includes processes that it was starting when it died. Returns whether none of them is left.
///
/// `pid` and `process` name the engine as in [`liveness`], which must have returned [`Liveness::Gone`].
#[must_use]
pub fn kill_orphans(pid: i64, process: &str, attempts: &[(i64, i64)]) -> bool {
    // No process of an earlier boot is left.
    let Some(engine) = EngineId::of(pid, process).filter(|_engine| process.starts_with(&boot_id())) else {
        return true;
    };
    let outputs: HashSet<String> =
        attempts.iter().map(|(job, attempt)| output_file_name(*job, *attempt)).collect();
    let ended = sweep(ORPHANS_TIMEOUT, StartingProcesses::OfFirstScan, |_pid, process| {
        let is_orphan = match process {
            // Its attempt is not known yet. No process of a dead engine may go on.
            FoundProcess::Starting(by) => *by == engine,
            FoundProcess::Running(environment) => environment
                .get(OUTPUT_VARIABLE)
                .and_then(engine_of_output_file)
                .is_some_and(|(by, output)| by == engine && outputs.contains(output)),
        };
        if is_orphan { SweepAction::Kill } else { SweepAction::Ignore }
    });
    if let Err(left) = &ended {
        tracing::warn!(engine = pid, processes = ?left, "processes of a dead engine still run");
    }
    ended.is_ok()
}

/// The name of the file that an attempt may write its output to.
pub fn output_file_name(job_id: i64, attempt: i64) -> String {
    format!("{job_id}-{attempt}")
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// What `/proc` shows about a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcState {
    /// It runs, and started at this time, in clock ticks since the boot.
    Running(u64),
    /// It has ended, and its parent has not waited for it yet.
    Ended,
    /// Nothing.
    NotShown,
}

fn proc_state(pid: i64) -> ProcState {
    match Stat::read(pid) {
        Some(stat) if stat.has_ended() => ProcState::Ended,
        Some(stat) => ProcState::Running(stat.start),
        None => ProcState::NotShown,
    }
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn liveness_depends_on_boot_namespace_and_start_time() {
        let ProcessIdentity { pid, process, .. } = ProcessIdentity::current();
        let parts: Vec<&str> = process.split('/').collect();
        let [boot, namespace, start] = parts[..] else { panic!("three parts: {process}") };
        let identity = |parts: [&str; 3]| parts.join("/");
        let used_again = format!("{start}0");
        for (what, identity, one_kernel, many_hosts) in [
            ("this process", process.clone(), Liveness::Alive, Liveness::Alive),
            (
                "its id was used again",
                identity([boot, namespace, &used_again]),
                Liveness::Gone,
                Liveness::Gone,
            ),
            (
                "an earlier boot, or another host",
                identity(["other", namespace, start]),
                Liveness::Gone,
                Liveness::Unknown,
            ),
            ("another container", identity([boot, "pid:[1]", start]), Liveness::Unknown, Liveness::Unknown),
            ("a worker in another language", "opaque".to_owned(), Liveness::Unknown, Liveness::Unknown),
            (
                "it could not see itself",
                identity([boot, namespace, ""]),
                Liveness::Unknown,
                Liveness::Unknown,
            ),
            (
                "it could not see its boot",
                identity(["", namespace, start]),
                Liveness::Unknown,
                Liveness::Unknown,
            ),
        ] {
            assert_eq!(liveness(pid, &identity, HostScope::OneKernel), one_kernel, "{what}, one kernel");
            assert_eq!(liveness(pid, &identity, HostScope::ManyHosts), many_hosts, "{what}, many hosts");
        }
    }

    #[test]
    fn a_process_that_proc_does_not_show_is_gone_only_if_the_kernel_does_not_know_it() {
        let this = ProcessIdentity::current();
        for pid in [i64::from(i32::MAX), i64::MAX, -1] {
            for host_scope in [HostScope::OneKernel, HostScope::ManyHosts] {
                assert_eq!(liveness(pid, &this.process, host_scope), Liveness::Gone, "{pid} is no process");
            }
        }
        assert_eq!(
            liveness_without_proc(Err(Errno::PERM)),
            Liveness::Unknown,
            "another user's, behind hidepid"
        );
        assert_eq!(liveness_without_proc(Ok(())), Liveness::Unknown);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = Environment(b"AB=1\0B=2=3\0C\0".to_vec());
        assert_eq!((environment.get("B"), environment.get("AB")), (Some("2=3"), Some("1")));
        assert_eq!((environment.get("A"), environment.get("C")), (None, None));
    }

    #[test]
    fn a_child_that_has_ended_is_gone() {
        let mut child = std::process::Command::new("true").spawn().expect("`true` is everywhere");
        let pid = i64::from(child.id());
        let this = ProcessIdentity::current();
        let prefix = this.process.rsplit_once('/').expect("three parts").0.to_owned();
        let process = match proc_state(pid) {
            ProcState::Running(start) => format!("{prefix}/{start}"),
            ProcState::Ended | ProcState::NotShown => format!("{prefix}/1"),
        };
        child.wait().expect("it ends");
        assert_eq!(liveness(pid, &process, HostScope::ManyHosts), Liveness::Gone, "also on a host of many");
    }
}
