//! Who is left of a process group.

use std::fs;

use rustix::process::Pid;

/// Nobody of the group runs any more. Its dead leader, which is not waited for yet, does not count.
pub(super) fn is_gone(group: Pid) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    !entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<i32>().is_ok()))
        .any(|entry| {
            fs::read_to_string(entry.path().join("stat"))
                .is_ok_and(|stat| runs_in(&stat, group.as_raw_nonzero().get()))
        })
}

/// State and group are the first and third field after the command, as in proc_pid_stat(5).
fn runs_in(stat: &str, group: i32) -> bool {
    let mut fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).into_iter().flatten();
    let state = fields.next();
    let its_group = fields.nth(1).and_then(|field| field.parse::<i32>().ok());
    its_group == Some(group) && !matches!(state, Some("Z" | "X"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dead_do_not_count() {
        assert!(runs_in("7 (sh) S 1 5 5 0", 5));
        assert!(!runs_in("7 (sh) S 1 5 5 0", 7));
        assert!(!runs_in("7 (sh) Z 1 5 5 0", 5));
        assert!(runs_in("7 (odd) name) R 1 5 5 0", 5), "a command may hold anything");
    }

    #[test]
    fn a_group_without_members_is_gone() {
        let own = rustix::process::getpgrp();
        assert!(!is_gone(own));
        assert!(is_gone(Pid::from_raw(i32::MAX).expect("not zero")));
    }
}
