//! How long a read may take, on threads that read for people. A long read keeps the write-ahead log from shrinking, and a person
//! who gets an answer after a minute has gone.

use std::cell::RefCell;
use std::time::Duration;

use windlass_system::clock::Clock;

/// A limit for each read.
#[derive(Debug, Clone)]
pub struct ReadLimit {
    /// By which time the read is measured. A server measures it by its own.
    pub clock: Clock,
    /// The longest time.
    pub longest: Duration,
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<ReadLimit>> = const { RefCell::new(None) };
}

impl ReadLimit {
    /// Ends each read of this thread that takes longer, from now on. It then fails with
    /// [`crate::Unavailable::Cancelled`]. On a server the limit is one for each statement.
    pub fn set_for_this_thread(self) {
        OF_THIS_THREAD.set(Some(self));
    }

    /// The limit for reads of this thread.
    #[must_use]
    pub fn of_this_thread() -> Option<ReadLimit> {
        OF_THIS_THREAD.with_borrow(Clone::clone)
    }

    /// The longest time in milliseconds.
    pub(crate) fn longest_ms(&self) -> i64 {
        i64::try_from(self.longest.as_millis()).unwrap_or(i64::MAX)
    }
}
