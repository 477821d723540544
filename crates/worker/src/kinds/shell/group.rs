//! Whether processes of a group are left.

use rustix::process::Pid;

use windlass_system::process::stat::{Stat, pids_newest_first};

/// Whether no process of the group runs any more. Its leader may have ended without being waited for; that one does
/// not count.
pub(super) fn is_gone(group: Pid) -> bool {
    let group = group.as_raw_nonzero().get();
    let runs_in_it = |stat: Stat| stat.group == group && !stat.has_ended();
    // If the system has no file to look with, nothing is known, and the answer is no.
    pids_newest_first()
        .is_ok_and(|pids| !pids.into_iter().any(|pid| Stat::read(pid.into()).is_some_and(runs_in_it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_without_members_is_gone() {
        let own = rustix::process::getpgrp();
        assert!(!is_gone(own));
        assert!(is_gone(Pid::from_raw(i32::MAX).expect("not zero")));
    }

    #[test]
    fn a_dead_leader_does_not_count() {
        use std::os::unix::process::CommandExt;
        let mut leader =
            std::process::Command::new("sleep").arg("600").process_group(0).spawn().expect("it starts");
        let group = Pid::from_child(&leader);
        assert!(!is_gone(group));
        leader.kill().expect("it runs");
        // Unlike `wait`, this leaves it there.
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(group), ended).expect("it ends");
        assert!(is_gone(group));
        leader.wait().expect("it can be waited for");
    }
}
