//! Processes of this machine: the identity by which a death is proved, and finding what a job left.

pub mod engine_id;
pub mod stat;
pub mod sweep;

use std::collections::HashSet;
use std::fs;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use self::engine_id::{EngineId, engine_of_output};
use self::stat::Stat;
use self::sweep::{Known, Starting, Verdict, end_all};

/// Where the processes that use a database can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All run under one kernel: another boot of it is the past.
    OneKernel,
    /// On any host: another boot may be another machine's.
    ManyHosts,
}

/// Names the file for an attempt's output, in the folder of its engine.
pub const OUTPUT_VARIABLE: &str = "WINDLASS_OUTPUT";

/// What identifies a process for good: its id alone is used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessIdentity {
    /// The host's name, for people.
    pub host: String,
    /// The process id.
    pub pid: i64,
    /// `boot id / pid namespace / start time`, opaque to everybody else.
    pub process: String,
}

/// What can be said of a process from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It exists.
    Lives,
    /// It is gone for good.
    Gone,
    /// It can't be seen from here.
    Unknown,
}

impl ProcessIdentity {
    /// The identity of this process.
    #[must_use]
    pub fn current() -> ProcessIdentity {
        let pid = i64::from(std::process::id());
        let start = match sight(pid) {
            Sight::Runs(start) => start.to_string(),
            Sight::Ended | Sight::Hidden => String::new(),
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
/// Where all processes of a database belong to one kernel, another boot means gone: that kernel has been
/// started anew. Where they run on many hosts, it may be another host's. Another pid namespace of the
/// same boot can't be seen into, nor can another user's processes where `/proc` is mounted with
/// `hidepid`.
#[must_use]
pub fn fate(pid: i64, process: &str, reach: Reach) -> Fate {
    let mut parts = process.splitn(3, '/');
    let (Some(boot), Some(namespace), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return Fate::Unknown;
    };
    let (this_boot, this_namespace) = (boot_id(), pid_namespace());
    if [boot, namespace, start, &this_boot, &this_namespace].iter().any(|part| part.is_empty()) {
        return Fate::Unknown;
    }
    if boot != this_boot {
        return match reach {
            Reach::OneKernel => Fate::Gone,
            Reach::ManyHosts => Fate::Unknown,
        };
    }
    if namespace != this_namespace {
        return Fate::Unknown;
    }
    match sight(pid) {
        Sight::Runs(found) if found.to_string() == start => Fate::Lives,
        Sight::Runs(_) | Sight::Ended => Fate::Gone,
        Sight::Hidden => fate_of_hidden(signal_nothing(pid)),
    }
}

/// A process that `/proc` does not show is either gone or somebody else's.
fn fate_of_hidden(answer: Result<(), Errno>) -> Fate {
    match answer {
        Err(Errno::SRCH) => Fate::Gone,
        Ok(()) | Err(_) => Fate::Unknown,
    }
}

/// Asks the kernel whether there is such a process at all.
fn signal_nothing(pid: i64) -> Result<(), Errno> {
    // No process has another number; zero and below would mean groups.
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

/// How long the processes of a dead engine may take to vanish before its jobs are looked at again.
const ORPHANS_GONE_WITHIN: Duration = Duration::from_secs(1);

/// Kills what a dead engine of this machine left of some attempts, given as (job, attempt): what runs, and also what
/// it was about to start when it died. Returns whether nothing of them is left.
///
/// The engine is given as in [`fate`], which must have said [`Fate::Gone`].
#[must_use]
pub fn end_orphans(pid: i64, process: &str, attempts: &[(i64, i64)]) -> bool {
    // Of another boot nothing is left.
    let Some(engine) = EngineId::of(pid, process).filter(|_engine| process.starts_with(&boot_id())) else {
        return true;
    };
    let outputs: HashSet<String> =
        attempts.iter().map(|(job, attempt)| output_name(*job, *attempt)).collect();
    let ended = end_all(ORPHANS_GONE_WITHIN, Starting::OfFirstLook, |_pid, known| {
        let is_orphan = match known {
            // Of which attempt can't be said. None of a dead engine may start.
            Known::Starting(by) => *by == engine,
            Known::Runs(environment) => environment
                .get(OUTPUT_VARIABLE)
                .and_then(engine_of_output)
                .is_some_and(|(by, output)| by == engine && outputs.contains(output)),
        };
        if is_orphan { Verdict::Kill } else { Verdict::Leave }
    });
    if let Err(left) = &ended {
        tracing::warn!(engine = pid, processes = ?left, "a dead engine's processes are still there");
    }
    ended.is_ok()
}

/// The name of the file that an attempt may write its output to.
pub fn output_name(job_id: i64, attempt: i64) -> String {
    format!("{job_id}-{attempt}")
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or_default()
}

/// What `/proc` shows of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    /// It runs since then, in clock ticks since the boot.
    Runs(u64),
    /// It has ended and was not waited for yet.
    Ended,
    /// Nothing.
    Hidden,
}

fn sight(pid: i64) -> Sight {
    match Stat::read(pid) {
        Some(stat) if stat.has_ended() => Sight::Ended,
        Some(stat) => Sight::Runs(stat.start),
        None => Sight::Hidden,
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
    fn what_can_be_said_of_a_process() {
        let ProcessIdentity { pid, process, .. } = ProcessIdentity::current();
        let parts: Vec<&str> = process.split('/').collect();
        let [boot, namespace, start] = parts[..] else { panic!("three parts: {process}") };
        let identity = |parts: [&str; 3]| parts.join("/");
        let used_again = format!("{start}0");
        for (what, identity, one_kernel, many_hosts) in [
            ("this process", process.clone(), Fate::Lives, Fate::Lives),
            ("its id was used again", identity([boot, namespace, &used_again]), Fate::Gone, Fate::Gone),
            (
                "an earlier boot, or another host",
                identity(["other", namespace, start]),
                Fate::Gone,
                Fate::Unknown,
            ),
            ("another container", identity([boot, "pid:[1]", start]), Fate::Unknown, Fate::Unknown),
            ("a worker in another language", "opaque".to_owned(), Fate::Unknown, Fate::Unknown),
            ("it could not see itself", identity([boot, namespace, ""]), Fate::Unknown, Fate::Unknown),
            ("it could not see its boot", identity(["", namespace, start]), Fate::Unknown, Fate::Unknown),
        ] {
            assert_eq!(fate(pid, &identity, Reach::OneKernel), one_kernel, "{what}, one kernel");
            assert_eq!(fate(pid, &identity, Reach::ManyHosts), many_hosts, "{what}, many hosts");
        }
    }

    #[test]
    fn a_process_that_is_not_shown_is_gone_only_when_the_kernel_knows_none() {
        let this = ProcessIdentity::current();
        for pid in [i64::from(i32::MAX), i64::MAX, -1] {
            for reach in [Reach::OneKernel, Reach::ManyHosts] {
                assert_eq!(fate(pid, &this.process, reach), Fate::Gone, "{pid} is no process");
            }
        }
        assert_eq!(fate_of_hidden(Err(Errno::PERM)), Fate::Unknown, "another user's, behind hidepid");
        assert_eq!(fate_of_hidden(Ok(())), Fate::Unknown);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = Environment(b"AB=1\0B=2=3\0C\0".to_vec());
        assert_eq!((environment.get("B"), environment.get("AB")), (Some("2=3"), Some("1")));
        assert_eq!((environment.get("A"), environment.get("C")), (None, None));
    }

    #[test]
    fn a_dead_child_is_gone_before_it_is_waited_for() {
        let mut child = std::process::Command::new("true").spawn().expect("`true` is everywhere");
        let pid = i64::from(child.id());
        let this = ProcessIdentity::current();
        let prefix = this.process.rsplit_once('/').expect("three parts").0.to_owned();
        let process = match sight(pid) {
            Sight::Runs(start) => format!("{prefix}/{start}"),
            Sight::Ended | Sight::Hidden => format!("{prefix}/1"),
        };
        child.wait().expect("it ends");
        assert_eq!(fate(pid, &process, Reach::ManyHosts), Fate::Gone, "also on a host of many");
    }
}
