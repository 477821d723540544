//! Wake-ups between the threads of a process, so that they need not poll often.
//!
//! A transaction collects [`WakeUps`] for what it changed. After the commit the database publishes them, and wakes only the
//! listeners that want one of them. A wake-up is only a reason to read the tables: a needless one costs one read, and a
//! slow poll finds the change of a lost one.

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
    /// A job or a deadline became due, or got a time at which it will be due.
    pub const DUE: WakeUps = WakeUps(2);
    /// A running job was asked to stop.
    pub const CANCEL: WakeUps = WakeUps(4);
    /// The state of a run or a job changed, for threads that show it or wait for it.
    pub const PROGRESS: WakeUps = WakeUps(8);
    /// An executor of this process has a result, or is free.
    pub const EXECUTOR: WakeUps = WakeUps(16);
    /// The listener's thread must end.
    pub const STOP: WakeUps = WakeUps(32);
    /// This worker was fenced.
    pub const FENCED: WakeUps = WakeUps(64);
    /// Another process changed something. All wake-ups that processes send each other.
    pub const FOREIGN: WakeUps = WakeUps(1 | 2 | 4 | 8);

    /// The wake-ups that are sent to other processes, as a number.
    #[must_use]
    pub fn bits(self) -> u8 {
        self.0 & WakeUps::FOREIGN.0
    }

    /// The wake-ups that another process sent. Unknown bits, of a newer program, are dropped.
    #[must_use]
    pub fn from_bits(bits: u8) -> WakeUps {
        WakeUps(bits & WakeUps::FOREIGN.0)
    }

    /// Whether it contains any of `other`.
    #[must_use]
    pub fn intersects(self, other: WakeUps) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether it is empty.
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

/// Passes wake-ups to listeners. All clones are the same channel.
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

/// Waits for some wake-ups. Those that come while no thread waits are kept.
#[derive(Debug, Clone)]
pub struct WakeUpListener {
    inbox: Arc<Inbox>,
}

impl WakeUpChannel {
    /// A listener for `wants`. It is removed from the channel when its last clone is dropped.
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
    /// Raises wake-ups for this listener alone.
    pub fn raise(&self, wake_ups: WakeUps) {
        self.inbox.raise(wake_ups);
    }

    /// Waits for a wake-up, at most `longest` of real time. Returns the wake-ups that came, and clears them.
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
    fn a_listener_gets_only_what_it_wants_and_keeps_what_came_before_it_waited() {
        let channel = WakeUpChannel::default();
        let due = channel.listen(WakeUps::DUE | WakeUps::STOP);
        channel.publish(WakeUps::PENDING);
        assert_eq!(due.wait(Duration::ZERO), WakeUps::NONE);
        channel.publish(WakeUps::DUE);
        due.raise(WakeUps::STOP);
        assert_eq!(due.wait(Duration::from_secs(60)), WakeUps::DUE | WakeUps::STOP);
        assert_eq!(due.wait(Duration::ZERO), WakeUps::NONE, "a wait clears what it returned");
    }

    #[test]
    fn a_waiting_thread_wakes() {
        let channel = WakeUpChannel::default();
        let listener = channel.listen(WakeUps::PENDING);
        let waiting = std::thread::spawn(move || listener.wait(Duration::from_secs(60)));
        while !waiting.is_finished() {
            channel.publish(WakeUps::PENDING);
            std::thread::yield_now();
        }
        assert_eq!(waiting.join().ok(), Some(WakeUps::PENDING));
    }
}
