//! Finds processes by their environment. A process can leave its group and its parent, but not the environment of its
//! start.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

/// The variable that every process of a job carries.
pub const KEY_VARIABLE: &str = "WINDLASS_IDEMPOTENCY_KEY";
/// The attempt it belongs to.
pub const ATTEMPT_VARIABLE: &str = "WINDLASS_ATTEMPT";

/// A live process that carries a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its process id.
    pub pid: i32,
    /// The key of the job, if the process belongs to one.
    pub idempotency_key: Option<String>,
    /// The attempt, if the process belongs to a job.
    pub attempt: Option<String>,
    /// The command line.
    pub command: String,
}

/// All processes whose environment has every one of `marks`, this process excepted. Zombies have no
/// environment and are not among them.
#[must_use]
pub fn marked(marks: &[(&str, &str)]) -> Vec<Leftover> {
    let own = std::process::id().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own)
        .filter_map(|pid| examine(&pid, marks))
        .collect()
}

fn examine(pid: &str, marks: &[(&str, &str)]) -> Option<Leftover> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let all_there = marks.iter().all(|(name, value)| variable(&environment, name).as_deref() == Some(*value));
    if !all_there {
        return None;
    }
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    Some(Leftover {
        pid: pid.parse().ok()?,
        idempotency_key: variable(&environment, KEY_VARIABLE),
        attempt: variable(&environment, ATTEMPT_VARIABLE),
        command: String::from_utf8_lossy(&command).replace('\0', " "),
    })
}

fn variable(environment: &[u8], name: &str) -> Option<String> {
    environment.split(|byte| *byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Kills the processes.
pub fn kill(processes: &[Leftover]) {
    for process in processes {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // The process may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::wait::eventually;

    #[test]
    fn finds_an_escaped_process_and_kills_it() {
        let mark = format!("test-{}", std::process::id());
        let mut child = Command::new("setsid")
            .args(["sleep", "600"])
            .env("LEFTOVERS_TEST", &mark)
            .env(KEY_VARIABLE, "1-1")
            .spawn()
            .expect("setsid can be started");
        let marks = [("LEFTOVERS_TEST", mark.as_str())];
        let found = eventually("the marked process", || {
            let found = marked(&marks);
            found.iter().any(|process| process.command.starts_with("sleep")).then_some(found)
        });
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].idempotency_key.as_deref(), Some("1-1"));
        kill(&found);
        child.wait().expect("a child can be waited for");
        assert_eq!(marked(&marks), []);
    }

    #[test]
    fn a_name_must_match_in_full() {
        assert_eq!(variable(b"AB=1\0B=2\0", "B").as_deref(), Some("2"));
        assert_eq!(variable(b"AB=1\0", "B"), None);
    }
}
