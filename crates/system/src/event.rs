//! An event that happens once, and threads that wait for it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// An event that happens at most once. Any number of threads may wait for it.
#[derive(Debug, Default)]
pub struct Event {
    has_happened: Mutex<bool>,
    happened: Condvar,
}

impl Event {
    /// Makes it happen, and wakes all threads that wait for it.
    pub fn set(&self) {
        *self.has_happened.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.happened.notify_all();
    }

    /// Whether it has happened.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.has_happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it happens.
    pub fn wait(&self) {
        let has_happened = self.has_happened.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.happened.wait_while(has_happened, |has_happened| !*has_happened));
    }

    /// Waits until it happens, at most `longest` of real time. Returns whether it has happened.
    pub fn wait_for(&self, longest: Duration) -> bool {
        let has_happened = self.has_happened.lock().unwrap_or_else(PoisonError::into_inner);
        match self.happened.wait_timeout_while(has_happened, longest, |has_happened| !*has_happened) {
            Ok((has_happened, _timed_out)) => *has_happened,
            Err(poisoned) => *poisoned.into_inner().0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_wakes_all_waiting_threads_and_stays_set() {
        let event = Event::default();
        assert!(!event.wait_for(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting: Vec<_> =
                (0..2).map(|_| scope.spawn(|| event.wait_for(Duration::from_secs(60)))).collect();
            event.set();
            assert!(waiting.into_iter().all(|thread| thread.join().is_ok_and(|has_happened| has_happened)));
        });
        event.wait();
        assert!(event.is_set() && event.wait_for(Duration::ZERO));
    }
}
