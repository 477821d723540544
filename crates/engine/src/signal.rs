//! Wake-ups inside a process: who waits for what, without polling.
//!
//! A transaction collects [`Hints`] about what it changed; after the commit the database publishes
//! them and wakes only the listeners that asked for one of them. Hints are hints: a listener always
//! looks at the tables, so a hint too many costs a look and a lost one is caught by the slow poll.

use std::ops::BitOr;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A set of things that may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints(u8);

impl Hints {
    /// Nothing.
    pub const NONE: Hints = Hints(0);
    /// A job became claimable.
    pub const PENDING: Hints = Hints(1);
    /// A job or deadline got a time that the scheduler must know.
    pub const DUE: Hints = Hints(2);
    /// A running job was asked to stop.
    pub const CANCEL: Hints = Hints(4);
    /// A run or job moved on, for whoever shows or awaits it.
    pub const PROGRESS: Hints = Hints(8);
    /// An executor of this process has a result or room.
    pub const EXECUTOR: Hints = Hints(16);
    /// Somebody asked the listener to end.
    pub const STOP: Hints = Hints(32);
    /// This worker was found fenced.
    pub const FENCED: Hints = Hints(64);
    /// Another process changed something: everything may have.
    pub const FOREIGN: Hints = Hints(1 | 2 | 4 | 8);

    /// What of it other processes are told, as a number.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0 & Hints::FOREIGN.0
    }

    /// What another process told. Numbers of a newer program are left out.
    #[must_use]
    pub fn from_bits(bits: u8) -> Hints {
        Hints(bits & Hints::FOREIGN.0)
    }

    /// Any of `other` is in it.
    #[must_use]
    pub fn intersects(self, other: Hints) -> bool {
        self.0 & other.0 != 0
    }

    /// It is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for Hints {
    type Output = Hints;
    fn bitor(self, other: Hints) -> Hints {
        Hints(self.0 | other.0)
    }
}

/// Where hints are published. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    listeners: Arc<Mutex<Vec<Weak<Inbox>>>>,
}

#[derive(Debug)]
struct Inbox {
    wants: Hints,
    raised: Mutex<Hints>,
    changed: Condvar,
}

/// Waits for some hints. Hints raised while nobody waits are kept.
#[derive(Debug, Clone)]
pub struct Listener {
    inbox: Arc<Inbox>,
}

impl Signals {
    /// A listener for `wants`; it is forgotten when its last clone is dropped.
    #[must_use]
    pub fn listen(&self, wants: Hints) -> Listener {
        let inbox = Arc::new(Inbox { wants, raised: Mutex::new(Hints::NONE), changed: Condvar::new() });
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&inbox));
        Listener { inbox }
    }

    /// Wakes every listener that wants any of `hints`.
    pub fn publish(&self, hints: Hints) {
        if hints.is_empty() {
            return;
        }
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for inbox in listeners.iter().filter_map(Weak::upgrade) {
            if inbox.wants.intersects(hints) {
                inbox.raise(hints);
            }
        }
    }
}

impl Inbox {
    fn raise(&self, hints: Hints) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *raised | hints;
        if news != *raised {
            *raised = news;
            self.changed.notify_all();
        }
    }
}

impl Listener {
    /// Raises hints for this listener alone.
    pub fn raise(&self, hints: Hints) {
        self.inbox.raise(hints);
    }

    /// Waits until something is raised or `longest` is over; returns what was raised and clears it.
    pub fn wait(&self, longest: Duration) -> Hints {
        let deadline = Instant::now().checked_add(longest);
        let mut raised = self.inbox.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while raised.is_empty() {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => longest,
            };
            if left.is_zero() {
                return Hints::NONE;
            }
            raised = self
                .inbox
                .changed
                .wait_timeout(raised, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(guard, _timed_out)| guard);
        }
        std::mem::take(&mut *raised)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_only_what_it_wants_and_keeps_what_came_early() {
        let signals = Signals::default();
        let due = signals.listen(Hints::DUE | Hints::STOP);
        signals.publish(Hints::PENDING);
        assert_eq!(due.wait(Duration::ZERO), Hints::NONE);
        signals.publish(Hints::DUE);
        due.raise(Hints::STOP);
        assert_eq!(due.wait(Duration::from_secs(60)), Hints::DUE | Hints::STOP);
        assert_eq!(due.wait(Duration::ZERO), Hints::NONE, "a wait clears what it returned");
    }

    #[test]
    fn a_waiting_thread_wakes() {
        let signals = Signals::default();
        let listener = signals.listen(Hints::PENDING);
        let waiting = std::thread::spawn(move || listener.wait(Duration::from_secs(60)));
        while !waiting.is_finished() {
            signals.publish(Hints::PENDING);
            std::thread::yield_now();
        }
        assert_eq!(waiting.join().ok(), Some(Hints::PENDING));
    }
}
