//! Something that happens once, and waiting for it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Latch {
    is_set: Mutex<bool>,
    set: Condvar,
}

impl Latch {
    /// It has happened.
    pub(super) fn set(&self) {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.set.notify_all();
    }

    pub(super) fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it happens.
    pub(super) fn wait(&self) {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.set.wait_while(is_set, |is_set| !*is_set));
    }

    /// Waits until it happens or `longest` is over; returns whether it has.
    pub(super) fn wait_for(&self, longest: Duration) -> bool {
        let is_set = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        match self.set.wait_timeout_while(is_set, longest, |is_set| !*is_set) {
            Ok((is_set, _timed_out)) => *is_set,
            Err(poisoned) => *poisoned.into_inner().0,
        }
    }
}
