//! When the reads of a thread must have ended, on threads that read for people. A long read keeps the write-ahead log from
//! shrinking, and a person who gets an answer after a minute has gone.

use std::cell::RefCell;
use std::time::Duration;

use windlass_system::clock::Clock;

use crate::error::{Error, Result, Unavailable};

/// One time for all reads of a request, however many there are.
#[derive(Debug, Clone)]
pub struct ReadDeadline {
    clock: Clock,
    at_ms: i64,
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<ReadDeadline>> = const { RefCell::new(None) };
}

impl ReadDeadline {
    /// The reads of this thread may take `longest` together, from now until this is called again. Then the present read is
    /// ended, and later ones fail at once, with [`Unavailable::Cancelled`].
    pub fn set_for_this_thread(clock: &Clock, longest: Duration) {
        let longest_ms = i64::try_from(longest.as_millis()).unwrap_or(i64::MAX);
        let at_ms = clock.monotonic_ms().saturating_add(longest_ms);
        OF_THIS_THREAD.set(Some(ReadDeadline { clock: clock.clone(), at_ms }));
    }

    /// The deadline of this thread, if it has one.
    #[must_use]
    pub fn of_this_thread() -> Option<ReadDeadline> {
        OF_THIS_THREAD.with_borrow(Clone::clone)
    }

    /// The milliseconds that are left, at least 1.
    ///
    /// # Errors
    /// [`Unavailable::Cancelled`] when none is left.
    pub fn left_ms(&self) -> Result<i64> {
        match self.at_ms.saturating_sub(self.clock.monotonic_ms()) {
            left_ms if left_ms > 0 => Ok(left_ms),
            _none => {
                let reason = Unavailable::Cancelled("its reads took longer than they may".to_owned());
                Err(Error::unavailable("read from the database", reason))
            }
        }
    }
}
