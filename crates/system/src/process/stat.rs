//! Reads `/proc/PID/stat`: see proc_pid_stat(5).

use std::fs;

use rustix::io::Errno;

use crate::shortage::shortage;

/// `PF_KTHREAD` of the kernel's `sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Fields of `/proc/PID/stat`. A number that the kernel hides from this user is 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    state: char,
    /// Its process group.
    pub group: i32,
    flags: u64,
    /// In clock ticks since the boot.
    pub start: u64,
    env_start: u64,
    env_end: u64,
}

impl Stat {
    /// `None` when there is no such process, or it can't be seen.
    pub fn read(pid: i64) -> Option<Stat> {
        // The name of the process may not be UTF-8.
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Stat> {
        // The name is in parentheses and may itself contain spaces and parentheses.
        let (_name, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // The state is the third field of the manual page, and the first one here.
        let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse::<u64>().ok());
        Some(Stat {
            state: fields.first()?.chars().next()?,
            group: fields.get(2)?.parse().ok()?,
            flags: number(9)?,
            start: number(22)?,
            env_start: number(50).unwrap_or_default(),
            env_end: number(51).unwrap_or_default(),
        })
    }

    /// It has ended, and its parent has not waited for it yet.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// It belongs to the kernel and runs no program.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// It executes a program that was started without environment variables. (In the middle of `execve` the kernel does not
    /// show yet where the variables are.)
    pub fn has_no_variables(&self) -> bool {
        self.env_end != 0 && self.env_end == self.env_start
    }
}

/// The ids of all processes, the highest first, which are usually the newest. Empty if `/proc` shows no process.
///
/// # Errors
/// When this process can't open another file.
pub fn pids_newest_first() -> Result<Vec<i32>, Errno> {
    let entries = match fs::read_dir("/proc") {
        Ok(entries) => entries,
        Err(error) => return shortage(&error).map_or(Ok(Vec::new()), Err),
    };
    let mut pids: Vec<i32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.reverse();
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_manual_page() {
        let mut fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        fields[0] = "S".to_owned();
        let stat = |name: &str, fields: &[String]| Stat::parse(&format!("7 ({name}) {}\n", fields.join(" ")));
        let expected = Stat { state: 'S', group: 5, flags: 9, start: 22, env_start: 50, env_end: 51 };
        assert_eq!(stat("odd) name (", &fields), Some(expected));
        assert_eq!(stat("short", &fields[..10]), None);
        let changed = |field: usize, value: &str| {
            let mut fields = fields.clone();
            fields[field - 3] = value.to_owned();
            stat("sh", &fields).expect("it has all fields")
        };
        assert!(changed(3, "Z").has_ended() && !changed(3, "R").has_ended());
        assert!(changed(9, "2129984").is_kernel_thread() && !changed(9, "4194304").is_kernel_thread());
        assert!(changed(51, "50").has_no_variables() && !changed(51, "0").has_no_variables());
    }

    #[test]
    fn this_process_is_listed_and_has_a_program() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        assert!(pids_newest_first().is_ok_and(|pids| pids.contains(&own)));
        let stat = Stat::read(own.into()).expect("it can see itself");
        assert!(!stat.has_ended() && !stat.is_kernel_thread() && stat.env_end != 0);
    }
}
