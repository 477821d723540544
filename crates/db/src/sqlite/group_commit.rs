//! Group commit: one of the threads that want to write commits for all of them.
//!
//! A thread that wants to write adds its operation to the queue and gets a ticket. If there is no leader, it becomes the
//! leader: it runs all waiting operations in one transaction, and answers their threads. Operations that arrive meanwhile form
//! the next group. So the slower the disk, the larger the groups.
//!
//! The threads of a group often come back at the same time. If the first of them committed at once, it would commit alone. So
//! the leader waits a moment until as many operations wait as the last group had.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result, Unavailable};
use windlass_system::clock::Clock;

/// The most operations in the queue. Further callers block.
const WAITING_MAX: usize = 1_024;
/// The most operations in one transaction.
const GROUP_MAX: usize = 256;
/// A leader waits for other threads at most half as long as the last group took.
const WAIT_DIVISOR: i64 = 2;
/// The longest time for which a leader waits for other threads.
const WAIT_MAX_US: i64 = 1_000;

/// The group commit of one database in this process. `W` is the work of an operation.
pub(super) struct GroupCommit<W> {
    queue: Mutex<CommitQueue<W>>,
    /// Signalled when a group was answered.
    answered: Condvar,
    /// Signalled when as many operations wait as the leader expects.
    complete: Condvar,
    clock: Clock,
}

struct CommitQueue<W> {
    /// In the order in which they arrived.
    waiting: VecDeque<Request<W>>,
    results: HashMap<u64, Result<()>>,
    next_ticket: u64,
    /// The number of threads inside [`GroupCommit::write`].
    callers: usize,
    has_leader: bool,
    /// The number of operations that the next leader waits for: those of the last group, and those that waited then.
    expected: usize,
    /// How long the last transaction took.
    took_us: i64,
}

/// An operation that waits for its transaction.
pub(super) struct Request<W> {
    ticket: u64,
    pub(super) name: &'static str,
    pub(super) work: W,
}

/// The right to commit, which one thread has at a time. Dropping it lets another thread become the leader, and answers
/// operations that were taken and not answered with an error.
pub(super) struct Leader<'g, W> {
    group_commit: &'g GroupCommit<W>,
    taken: Cell<Vec<(u64, &'static str)>>,
}

/// Counts a thread inside [`GroupCommit::write`], until it returns or panics.
struct Caller<'g, W> {
    group_commit: &'g GroupCommit<W>,
    ticket: u64,
}

impl<W> Drop for Caller<'_, W> {
    fn drop(&mut self) {
        let mut queue = self.group_commit.queue();
        queue.callers -= 1;
        queue.results.remove(&self.ticket);
    }
}

impl<W> GroupCommit<W> {
    pub(super) fn new() -> GroupCommit<W> {
        let queue = CommitQueue {
            waiting: VecDeque::new(),
            results: HashMap::new(),
            next_ticket: 0,
            callers: 0,
            has_leader: false,
            expected: 0,
            took_us: 0,
        };
        GroupCommit {
            queue: Mutex::new(queue),
            answered: Condvar::new(),
            complete: Condvar::new(),
            clock: Clock::system(),
        }
    }

    /// Waits until the operation was run and its transaction is durable. If this thread becomes the leader, it calls `commit`,
    /// which commits a group.
    ///
    /// # Errors
    /// The result of `commit`, or [`Unavailable::Closed`] when a leader panicked.
    pub(super) fn write(&self, name: &'static str, work: W, commit: impl Fn(Leader<'_, W>)) -> Result<()> {
        let (queue, ticket) = self.push(name, work);
        let _caller = Caller { group_commit: self, ticket };
        // Declared after `_caller` and so dropped before it, because dropping `_caller` locks the queue again.
        let mut queue = queue;
        loop {
            if let Some(result) = queue.results.remove(&ticket) {
                return result;
            }
            if queue.has_leader {
                queue = self.wait(queue);
                continue;
            }
            queue.has_leader = true;
            drop(self.wait_for_others(queue));
            commit(Leader { group_commit: self, taken: Cell::default() });
            queue = self.queue();
        }
    }

    /// The number of threads inside [`GroupCommit::write`].
    pub(super) fn callers(&self) -> usize {
        self.queue().callers
    }

    fn queue(&self) -> MutexGuard<'_, CommitQueue<W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'l>(&self, queue: MutexGuard<'l, CommitQueue<W>>) -> MutexGuard<'l, CommitQueue<W>> {
        self.answered.wait(queue).unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, name: &'static str, work: W) -> (MutexGuard<'_, CommitQueue<W>>, u64) {
        let mut queue = self.queue();
        queue.callers += 1;
        while queue.waiting.len() >= WAITING_MAX {
            queue = self.wait(queue);
        }
        let ticket = queue.next_ticket;
        queue.next_ticket += 1;
        queue.waiting.push_back(Request { ticket, name, work });
        if queue.is_complete() {
            self.complete.notify_one();
        }
        (queue, ticket)
    }

    /// Waits a moment until as many operations wait as the last group had.
    fn wait_for_others<'l>(
        &self,
        mut queue: MutexGuard<'l, CommitQueue<W>>,
    ) -> MutexGuard<'l, CommitQueue<W>> {
        let until_us =
            self.clock.monotonic_us() + wait_us(queue.took_us, queue.waiting.len(), queue.expected);
        while !queue.is_complete() {
            let left_us = until_us - self.clock.monotonic_us();
            let Some(left_us) = u64::try_from(left_us).ok().filter(|left_us| *left_us > 0) else { break };
            let waited = self.complete.wait_timeout(queue, Duration::from_micros(left_us));
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue
    }
}

impl<W> CommitQueue<W> {
    /// Whether the leader should wait no longer: all expected operations are here, or there is no other caller.
    fn is_complete(&self) -> bool {
        self.waiting.len() >= self.expected.min(GROUP_MAX) || self.callers <= 1
    }
}

/// How long a leader waits for the missing operations. The fewer are missing, the shorter.
fn wait_us(took_us: i64, waiting: usize, expected: usize) -> i64 {
    let missing = expected.saturating_sub(waiting) as i64;
    let longest_us = (took_us / WAIT_DIVISOR).min(WAIT_MAX_US);
    longest_us * missing / (expected as i64).max(1)
}

impl<W> Leader<'_, W> {
    /// Takes the oldest operations, as many as a transaction may have.
    pub(super) fn group(&self) -> Vec<Request<W>> {
        let mut queue = self.group_commit.queue();
        let count = queue.waiting.len().min(GROUP_MAX);
        let group: Vec<Request<W>> = queue.waiting.drain(..count).collect();
        self.taken.set(group.iter().map(|request| (request.ticket, request.name)).collect());
        group
    }

    /// Answers the first operations of the group with these results, and lets another thread become the leader. The other
    /// operations of the group come first in the next one. `took_us` is how long the transaction took. Returns the answered
    /// operations, because dropping them may take long: drop them when no other thread waits.
    pub(super) fn answer(
        self,
        mut group: Vec<Request<W>>,
        results: Vec<Result<()>>,
        took_us: i64,
    ) -> Vec<Request<W>> {
        let mut queue = self.group_commit.queue();
        let rest = group.split_off(results.len().min(group.len()));
        queue.took_us = took_us;
        queue.expected = group.len() + rest.len() + queue.waiting.len();
        for request in rest.into_iter().rev() {
            queue.waiting.push_front(request);
        }
        let tickets = group.iter().map(|request| request.ticket);
        queue.results.extend(tickets.zip(results));
        drop(queue);
        self.taken.take();
        group
    }
}

/// Drops answered operations. If one panics when it is dropped, the leader goes on.
pub(super) fn drop_answered<W>(answered: Vec<Request<W>>) {
    for request in answered {
        let _panicked = catch_unwind(AssertUnwindSafe(|| drop(request)));
    }
}

impl<W> Drop for Leader<'_, W> {
    fn drop(&mut self) {
        let mut queue = self.group_commit.queue();
        for (ticket, name) in self.taken.take() {
            queue.results.insert(ticket, Err(Error::unavailable(name, Unavailable::Closed)));
        }
        queue.has_leader = false;
        drop(queue);
        self.group_commit.answered.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Answers a group without running its operations.
    fn commit(leader: Leader<'_, ()>) {
        let group = leader.group();
        let results = vec![Ok(()); group.len()];
        drop(leader.answer(group, results, 0));
    }

    fn become_leader(group_commit: &GroupCommit<()>) -> Leader<'_, ()> {
        group_commit.queue().has_leader = true;
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
    fn a_leader_waits_longer_if_more_operations_are_missing() {
        for ((took_us, waiting, expected), wanted) in [
            ((800, 1, 8), 350),
            ((800, 7, 8), 50),
            ((800, 8, 8), 0),
            ((800, 9, 8), 0),
            ((800, 1, 0), 0),
            ((0, 1, 8), 0),
            ((i64::MAX, 1, 1_000), 999),
        ] {
            assert_eq!(wait_us(took_us, waiting, expected), wanted, "{took_us} {waiting} {expected}");
        }
    }

    #[test]
    fn a_group_is_complete_when_all_expected_operations_wait_or_there_is_one_caller() {
        let group_commit = GroupCommit::new();
        drop(group_commit.push("nothing", ()));
        let mut queue = group_commit.queue();
        for (expected, callers, complete) in [(8, 8, false), (1, 8, true), (0, 8, true), (8, 1, true)] {
            (queue.expected, queue.callers) = (expected, callers);
            assert_eq!(queue.is_complete(), complete, "{expected} {callers}");
        }
    }

    #[test]
    fn a_group_is_limited_and_its_unanswered_operations_come_first_in_the_next() {
        let group_commit = GroupCommit::new();
        for _ in 0..GROUP_MAX + 3 {
            drop(group_commit.push("nothing", ()));
        }
        let leader = become_leader(&group_commit);
        let group = leader.group();
        assert_eq!(group.len(), GROUP_MAX);
        drop(leader.answer(group, vec![Ok(()); 5], 40));
        let queue = group_commit.queue();
        assert_eq!((queue.expected, queue.has_leader), (GROUP_MAX + 3, false));
        let left: Vec<u64> = queue.waiting.iter().map(|request| request.ticket).collect();
        assert!(left.into_iter().eq(5..GROUP_MAX as u64 + 3), "in the order in which they arrived");
    }

    #[test]
    fn callers_block_while_the_queue_is_full() {
        let group_commit = GroupCommit::new();
        for _ in 0..WAITING_MAX {
            drop(group_commit.push("nothing", ()));
        }
        std::thread::scope(|scope| {
            let late = scope.spawn(|| drop(group_commit.push("nothing", ())));
            until(|| group_commit.callers() == WAITING_MAX + 1);
            assert_eq!(group_commit.queue().waiting.len(), WAITING_MAX);
            commit(become_leader(&group_commit));
            until(|| late.is_finished());
        });
        assert_eq!(group_commit.queue().waiting.len(), WAITING_MAX - GROUP_MAX + 1);
    }

    #[test]
    fn operations_that_arrive_during_a_commit_are_committed_together() {
        let group_commit = GroupCommit::new();
        let (before, groups) = (become_leader(&group_commit), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let write = || {
                group_commit.write("nothing", (), |leader| {
                    groups.lock().unwrap().push(group_commit.queue().waiting.len());
                    commit(leader);
                })
            };
            let waiting: Vec<_> = (0..5).map(|_| scope.spawn(write)).collect();
            until(|| group_commit.queue().waiting.len() == 5);
            drop(before.answer(Vec::new(), Vec::new(), 0));
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), Ok(()));
            }
        });
        assert_eq!(*groups.lock().unwrap(), [5]);
        assert_eq!((group_commit.callers(), group_commit.queue().has_leader), (0, false));
    }

    #[test]
    fn operations_that_a_leader_took_and_did_not_answer_fail_and_another_leader_follows() {
        let group_commit = GroupCommit::new();
        let leader = become_leader(&group_commit);
        std::thread::scope(|scope| {
            let taken = scope.spawn(|| group_commit.write("wait", (), commit));
            until(|| group_commit.queue().waiting.len() == 1);
            drop(leader.group());
            let next = scope.spawn(|| group_commit.write("wait", (), commit));
            until(|| group_commit.queue().waiting.len() == 1);
            // As after a panic.
            drop(leader);
            assert_eq!(taken.join().unwrap(), Err(Error::unavailable("wait", Unavailable::Closed)));
            assert_eq!(next.join().unwrap(), Ok(()));
        });
    }

    #[test]
    fn writes_go_on_after_a_panic_of_the_leader() {
        let group_commit = GroupCommit::new();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            group_commit.write("panic", (), |leader| {
                drop(leader.group());
                std::panic::resume_unwind(Box::new("on purpose"));
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(group_commit.write("nothing", (), commit), Ok(()));
        assert_eq!(group_commit.callers(), 0);
        assert_eq!(group_commit.queue().waiting.len(), 0);
    }
}
