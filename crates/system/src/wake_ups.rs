//! Wake-ups inside a process: who waits for what, without polling.
//!
//! A transaction collects [`WakeUps`] about what it changed; after the commit the database publishes
//! them and wakes only the listeners that asked for one of them. WakeUps are wake_ups: a listener always
//! looks at the tables, so a hint too many costs a look and a lost one is caught by the slow poll.

use std::ops::BitOr;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A set of things that may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeUps(u8);

impl WakeUps {
    /// Nothing.
    pub const NONE: WakeUps = WakeUps(0);
    /// A job became claimable.
    pub const PENDING: WakeUps = WakeUps(1);
    /// A job or deadline got a time that the scheduler must know.
    pub const DUE: WakeUps = WakeUps(2);
    /// A running job was asked to stop.
    pub const CANCEL: WakeUps = WakeUps(4);
    /// A run or job moved on, for whoever shows or awaits it.
    pub const PROGRESS: WakeUps = WakeUps(8);
    /// An executor of this process has a result or room.
    pub const EXECUTOR: WakeUps = WakeUps(16);
    /// Somebody asked the listener to end.
    pub const STOP: WakeUps = WakeUps(32);
    /// This worker was found fenced.
    pub const FENCED: WakeUps = WakeUps(64);
    /// Another process changed something: everything may have.
    pub const FOREIGN: WakeUps = WakeUps(1 | 2 | 4 | 8);

    /// What of it other processes are told, as a number.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0 & WakeUps::FOREIGN.0
    }

    /// What another process told. Numbers of a newer program are left out.
    #[must_use]
    pub fn from_bits(bits: u8) -> WakeUps {
        WakeUps(bits & WakeUps::FOREIGN.0)
    }

    /// Any of `other` is in it.
    #[must_use]
    pub fn intersects(self, other: WakeUps) -> bool {
        self.0 & other.0 != 0
    }

    /// It is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for WakeUps {
    type Output = WakeUps;
    fn bitor(self, other: WakeUps) -> WakeUps {
        WakeUps(self.0 | other.0)
    }
}

/// Where wake_ups are published. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct WakeUpChannel {
    listeners: Arc<Mutex<Vec<Weak<Inbox>>>>,
}

#[derive(Debug)]
struct Inbox {
    wants: WakeUps,
    raised: Mutex<WakeUps>,
    changed: Condvar,
}

/// Waits for some wake_ups. WakeUps raised while nobody waits are kept.
#[derive(Debug, Clone)]
pub struct WakeUpListener {
    inbox: Arc<Inbox>,
}

impl WakeUpChannel {
    /// A listener for `wants`; it is forgotten when its last clone is dropped.
    #[must_use]
    pub fn listen(&self, wants: WakeUps) -> WakeUpListener {
        let inbox = Arc::new(Inbox { wants, raised: Mutex::new(WakeUps::NONE), changed: Condvar::new() });
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&inbox));
        WakeUpListener { inbox }
    }

    /// Wakes every listener that wants any of `wake_ups`.
    pub fn publish(&self, wake_ups: WakeUps) {
        if wake_ups.is_empty() {
            return;
        }
        let listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        for inbox in listeners.iter().filter_map(Weak::upgrade) {
            if inbox.wants.intersects(wake_ups) {
                inbox.raise(wake_ups);
            }
        }
    }
}

impl Inbox {
    fn raise(&self, wake_ups: WakeUps) {
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *raised | wake_ups;
        if news != *raised {
            *raised = news;
            self.changed.notify_all();
        }
    }
}

impl WakeUpListener {
    /// Raises wake_ups for this listener alone.
    pub fn raise(&self, wake_ups: WakeUps) {
        self.inbox.raise(wake_ups);
    }

    /// Waits until something is raised or `longest` is over; returns what was raised and clears it.
    pub fn wait(&self, longest: Duration) -> WakeUps {
        let deadline = Instant::now().checked_add(longest);
        let mut raised = self.inbox.raised.lock().unwrap_or_else(PoisonError::into_inner);
        while raised.is_empty() {
            let left = match deadline {
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
                None => longest,
            };
            if left.is_zero() {
                return WakeUps::NONE;
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
        let signals = WakeUpChannel::default();
        let due = signals.listen(WakeUps::DUE | WakeUps::STOP);
        signals.publish(WakeUps::PENDING);
        assert_eq!(due.wait(Duration::ZERO), WakeUps::NONE);
        signals.publish(WakeUps::DUE);
        due.raise(WakeUps::STOP);
        assert_eq!(due.wait(Duration::from_secs(60)), WakeUps::DUE | WakeUps::STOP);
        assert_eq!(due.wait(Duration::ZERO), WakeUps::NONE, "a wait clears what it returned");
    }

    #[test]
    fn a_waiting_thread_wakes() {
        let signals = WakeUpChannel::default();
        let listener = signals.listen(WakeUps::PENDING);
        let waiting = std::thread::spawn(move || listener.wait(Duration::from_secs(60)));
        while !waiting.is_finished() {
            signals.publish(WakeUps::PENDING);
            std::thread::yield_now();
        }
        assert_eq!(waiting.join().ok(), Some(WakeUps::PENDING));
    }
}
