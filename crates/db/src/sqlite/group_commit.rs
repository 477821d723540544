//! Group commit: of the threads that wait to write, one commits for all.
//!
//! A thread that wants to write takes a ticket. When no other thread leads, it becomes the leader: it runs what all that
//! wait want in one transaction, and answers them. Those that arrive meanwhile form the next group, so the slower the
//! disk, the larger the groups.
//!
//! The threads of a group come back at about the same time. A leader that committed at once would commit alone, and all
//! others would form the next group. So it waits a moment for as many as the last group had.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result, Unavailable};
use windlass_system::clock::Clock;

/// Operations that wait at most; then callers block.
const WAITING_MAX: usize = 1_024;
/// Operations in one transaction at most.
const GROUP_MAX: usize = 256;
/// A leader waits for others this part of the time that the last group took, …
const GATHER_PART: i64 = 2;
/// … and no longer than this.
const GATHER_MAX_US: i64 = 1_000;

/// The operations of one process that wait to be committed.
pub(super) struct GroupCommit<W> {
    line: Mutex<Line<W>>,
    /// A group was answered.
    answered: Condvar,
    /// As many wait as the leader expects.
    gathered: Condvar,
    clock: Clock,
}

struct Line<W> {
    /// In the order in which they arrived.
    waiting: VecDeque<Request<W>>,
    results: HashMap<u64, Result<()>>,
    next_ticket: u64,
    /// Callers that have not returned.
    inside: usize,
    is_led: bool,
    /// How many the last group answered and left waiting: they may come back.
    expected: usize,
    /// How long the last group took.
    took_us: i64,
}

/// An operation that waits for its transaction.
pub(super) struct Request<W> {
    ticket: u64,
    pub(super) name: &'static str,
    pub(super) work: W,
}

/// The right to commit, which one thread has at a time. Dropping it passes it on, and answers those that were taken and
/// not answered with an error.
pub(super) struct Leader<'g, W> {
    group_commit: &'g GroupCommit<W>,
    taken: Cell<Vec<(u64, &'static str)>>,
}

/// A caller that has not returned. It may also leave by a panic.
struct Visit<'g, W> {
    group_commit: &'g GroupCommit<W>,
    ticket: u64,
}

impl<W> Drop for Visit<'_, W> {
    fn drop(&mut self) {
        let mut line = self.group_commit.line();
        line.inside -= 1;
        line.results.remove(&self.ticket);
    }
}

impl<W> GroupCommit<W> {
    pub(super) fn new() -> GroupCommit<W> {
        let line = Line {
            waiting: VecDeque::new(),
            results: HashMap::new(),
            next_ticket: 0,
            inside: 0,
            is_led: false,
            expected: 0,
            took_us: 0,
        };
        GroupCommit {
            line: Mutex::new(line),
            answered: Condvar::new(),
            gathered: Condvar::new(),
            clock: Clock::system(),
        }
    }

    /// Waits until the operation was run and is as durable as its transaction. `commit` commits a group for all, when this
    /// thread is the leader.
    ///
    /// # Errors
    /// What `commit` answered, or [`Unavailable::Closed`] when a leader panicked.
    pub(super) fn write(&self, name: &'static str, work: W, commit: impl Fn(Leader<'_, W>)) -> Result<()> {
        let (line, ticket) = self.push(name, work);
        let _visit = Visit { group_commit: self, ticket };
        // Dropped before the visit, which takes the line again.
        let mut line = line;
        loop {
            if let Some(result) = line.results.remove(&ticket) {
                return result;
            }
            if line.is_led {
                line = self.wait(line);
                continue;
            }
            line.is_led = true;
            drop(self.gather(line));
            commit(Leader { group_commit: self, taken: Cell::default() });
            line = self.line();
        }
    }

    /// Callers that have not returned.
    pub(super) fn inside(&self) -> usize {
        self.line().inside
    }

    fn line(&self) -> MutexGuard<'_, Line<W>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'l>(&self, line: MutexGuard<'l, Line<W>>) -> MutexGuard<'l, Line<W>> {
        self.answered.wait(line).unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, name: &'static str, work: W) -> (MutexGuard<'_, Line<W>>, u64) {
        let mut line = self.line();
        line.inside += 1;
        while line.waiting.len() >= WAITING_MAX {
            line = self.wait(line);
        }
        let ticket = line.next_ticket;
        line.next_ticket += 1;
        line.waiting.push_back(Request { ticket, name, work });
        if line.is_complete() {
            self.gathered.notify_one();
        }
        (line, ticket)
    }

    /// The leader waits a moment until as many wait as the last group had.
    fn gather<'l>(&self, mut line: MutexGuard<'l, Line<W>>) -> MutexGuard<'l, Line<W>> {
        let until_us =
            self.clock.monotonic_us() + patience_us(line.took_us, line.waiting.len(), line.expected);
        while !line.is_complete() {
            let left_us = until_us - self.clock.monotonic_us();
            let Some(left_us) = u64::try_from(left_us).ok().filter(|left_us| *left_us > 0) else { break };
            let waited = self.gathered.wait_timeout(line, Duration::from_micros(left_us));
            line = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        line
    }
}

impl<W> Line<W> {
    /// Nobody else is expected. A caller that is alone waits for nobody.
    fn is_complete(&self) -> bool {
        self.waiting.len() >= self.expected.min(GROUP_MAX) || self.inside <= 1
    }
}

/// How long a leader waits for those that are missing: the fewer they are, the shorter.
fn patience_us(took_us: i64, waiting: usize, expected: usize) -> i64 {
    let missing = expected.saturating_sub(waiting) as i64;
    let longest_us = (took_us / GATHER_PART).min(GATHER_MAX_US);
    longest_us * missing / (expected as i64).max(1)
}

impl<W> Leader<'_, W> {
    /// Takes those that have waited longest, as many as a transaction may have.
    pub(super) fn group(&self) -> Vec<Request<W>> {
        let mut line = self.group_commit.line();
        let count = line.waiting.len().min(GROUP_MAX);
        let group: Vec<Request<W>> = line.waiting.drain(..count).collect();
        self.taken.set(group.iter().map(|request| (request.ticket, request.name)).collect());
        group
    }

    /// Answers the first ones of the group with these results and passes the lead on. The others come first in the next
    /// group. `took_us` is how long the transaction took. Returns what was answered, which may be large: drop it when
    /// nobody waits for that.
    pub(super) fn answer(
        self,
        mut group: Vec<Request<W>>,
        results: Vec<Result<()>>,
        took_us: i64,
    ) -> Vec<Request<W>> {
        let mut line = self.group_commit.line();
        let rest = group.split_off(results.len().min(group.len()));
        line.took_us = took_us;
        line.expected = group.len() + rest.len() + line.waiting.len();
        for request in rest.into_iter().rev() {
            line.waiting.push_front(request);
        }
        let tickets = group.iter().map(|request| request.ticket);
        line.results.extend(tickets.zip(results));
        drop(line);
        self.taken.take();
        group
    }
}

/// Drops what was answered. An operation that panics when it is dropped is no concern of the leader.
pub(super) fn drop_answered<W>(answered: Vec<Request<W>>) {
    for request in answered {
        let _panicked = catch_unwind(AssertUnwindSafe(|| drop(request)));
    }
}

impl<W> Drop for Leader<'_, W> {
    fn drop(&mut self) {
        let mut line = self.group_commit.line();
        for (ticket, name) in self.taken.take() {
            line.results.insert(ticket, Err(Error::unavailable(name, Unavailable::Closed)));
        }
        line.is_led = false;
        drop(line);
        self.group_commit.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Answers a group without running it.
    fn commit(leader: Leader<'_, ()>) {
        let group = leader.group();
        let results = vec![Ok(()); group.len()];
        drop(leader.answer(group, results, 0));
    }

    fn lead(group_commit: &GroupCommit<()>) -> Leader<'_, ()> {
        group_commit.line().is_led = true;
        Leader { group_commit, taken: Cell::default() }
    }

    fn until(mut is_so: impl FnMut() -> bool) {
        let began = std::time::Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "it does not come");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_leader_waits_the_longer_the_more_are_missing() {
        for ((took_us, waiting, expected), wanted) in [
            ((800, 1, 8), 350),
            ((800, 7, 8), 50),
            ((800, 8, 8), 0),
            ((800, 9, 8), 0),
            ((800, 1, 0), 0),
            ((0, 1, 8), 0),
            ((i64::MAX, 1, 1_000), 999),
        ] {
            assert_eq!(patience_us(took_us, waiting, expected), wanted, "{took_us} {waiting} {expected}");
        }
    }

    #[test]
    fn a_group_is_complete_when_as_many_wait_as_are_expected_or_when_a_caller_is_alone() {
        let group_commit = GroupCommit::new();
        drop(group_commit.push("nothing", ()));
        let mut line = group_commit.line();
        for (expected, inside, complete) in [(8, 8, false), (1, 8, true), (0, 8, true), (8, 1, true)] {
            (line.expected, line.inside) = (expected, inside);
            assert_eq!(line.is_complete(), complete, "{expected} {inside}");
        }
    }

    #[test]
    fn a_group_is_no_larger_than_its_limit_and_what_it_leaves_comes_first() {
        let group_commit = GroupCommit::new();
        for _ in 0..GROUP_MAX + 3 {
            drop(group_commit.push("nothing", ()));
        }
        let leader = lead(&group_commit);
        let group = leader.group();
        assert_eq!(group.len(), GROUP_MAX);
        drop(leader.answer(group, vec![Ok(()); 5], 40));
        let line = group_commit.line();
        assert_eq!((line.expected, line.is_led), (GROUP_MAX + 3, false));
        let left: Vec<u64> = line.waiting.iter().map(|request| request.ticket).collect();
        assert!(left.into_iter().eq(5..GROUP_MAX as u64 + 3), "in the order in which they arrived");
    }

    #[test]
    fn callers_block_while_as_many_wait_as_may() {
        let group_commit = GroupCommit::new();
        for _ in 0..WAITING_MAX {
            drop(group_commit.push("nothing", ()));
        }
        std::thread::scope(|scope| {
            let late = scope.spawn(|| drop(group_commit.push("nothing", ())));
            until(|| group_commit.inside() == WAITING_MAX + 1);
            assert_eq!(group_commit.line().waiting.len(), WAITING_MAX);
            commit(lead(&group_commit));
            until(|| late.is_finished());
        });
        assert_eq!(group_commit.line().waiting.len(), WAITING_MAX - GROUP_MAX + 1);
    }

    #[test]
    fn those_that_arrive_while_another_one_commits_are_committed_together() {
        let group_commit = GroupCommit::new();
        let (before, groups) = (lead(&group_commit), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let write = || {
                group_commit.write("nothing", (), |leader| {
                    groups.lock().unwrap().push(group_commit.line().waiting.len());
                    commit(leader);
                })
            };
            let waiting: Vec<_> = (0..5).map(|_| scope.spawn(write)).collect();
            until(|| group_commit.line().waiting.len() == 5);
            drop(before.answer(Vec::new(), Vec::new(), 0));
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), Ok(()));
            }
        });
        assert_eq!(*groups.lock().unwrap(), [5]);
        assert_eq!((group_commit.inside(), group_commit.line().is_led), (0, false));
    }

    #[test]
    fn what_a_leader_took_and_did_not_answer_is_an_error_and_the_next_one_leads() {
        let group_commit = GroupCommit::new();
        let leader = lead(&group_commit);
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| group_commit.write("wait", (), commit));
            until(|| group_commit.line().waiting.len() == 1);
            drop(leader.group());
            let next = scope.spawn(|| group_commit.write("wait", (), commit));
            until(|| group_commit.line().waiting.len() == 1);
            // As after a panic.
            drop(leader);
            assert_eq!(taken.join().unwrap(), Err(Error::unavailable("wait", Unavailable::Closed)));
            assert_eq!(next.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn a_panic_of_the_leader_stops_nobody_else() {
        let group_commit = GroupCommit::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            group_commit.write("panic", (), |leader| {
                drop(leader.group());
                std::panic::resume_unwind(Box::new("on purpose"));
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(group_commit.write("nothing", (), commit), Ok(()));
        assert_eq!(group_commit.inside(), 0);
        assert_eq!(group_commit.line().waiting.len(), 0);
    }
}
