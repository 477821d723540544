//! Asking a running attempt to stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

/// Why an attempt should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopCause {
    /// A person, or its run's deadline, asked for it.
    Cancelled,
    /// Its own timeout is over.
    TimedOut,
    /// The worker leaves now.
    Leaving,
    /// The worker is fenced: somebody else may own the job.
    Fenced,
}

const NONE: u8 = 0;

impl StopCause {
    fn code(self) -> u8 {
        match self {
            StopCause::Cancelled => 1,
            StopCause::TimedOut => 2,
            StopCause::Leaving => 3,
            StopCause::Fenced => 4,
        }
    }

    fn from_code(code: u8) -> Option<StopCause> {
        [StopCause::Cancelled, StopCause::TimedOut, StopCause::Leaving, StopCause::Fenced]
            .into_iter()
            .find(|cause| cause.code() == code)
    }
}

/// Tells an attempt to stop. The first cause stays. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    cause: AtomicU8,
    waiting: Mutex<()>,
    requested: Condvar,
    /// Becomes readable when a stop is requested; only attempts that poll files make one.
    wake: OnceLock<OwnedFd>,
}

impl Stop {
    /// Asks for a stop. Only the first cause counts.
    pub fn request(&self, cause: StopCause) {
        let first = self
            .inner
            .cause
            .compare_exchange(NONE, cause.code(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if first {
            let _waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.inner.requested.notify_all();
            self.ring();
        }
    }

    /// Why the attempt should stop, if it should.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        StopCause::from_code(self.inner.cause.load(Ordering::Acquire))
    }

    /// Waits until a stop is requested or `longest` is over.
    pub fn wait(&self, longest: Duration) -> Option<StopCause> {
        let deadline = Instant::now().checked_add(longest);
        let mut waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while self.cause().is_none() {
            let left = deadline.map_or(longest, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return None;
            }
            waiting = self
                .inner
                .requested
                .wait_timeout(waiting, left)
                .map_or_else(|poisoned| poisoned.into_inner().0, |(guard, _timed_out)| guard);
        }
        self.cause()
    }

    /// A file that becomes readable when a stop is requested.
    ///
    /// # Errors
    /// When the system has no file to give.
    pub(super) fn wake_file(&self) -> std::io::Result<BorrowedFd<'_>> {
        if self.inner.wake.get().is_none() {
            let file = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let _made_meanwhile = self.inner.wake.set(file);
        }
        if self.cause().is_some() {
            self.ring();
        }
        self.inner.wake.get().map(AsFd::as_fd).ok_or_else(|| std::io::Error::other("no event file"))
    }

    fn ring(&self) {
        if let Some(file) = self.inner.wake.get() {
            // Only a full counter makes this fail, and then it is readable anyway.
            let _full = rustix::io::write(file, &1u64.to_ne_bytes());
        }
    }
}
