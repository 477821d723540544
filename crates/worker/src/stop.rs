//! Asking a running attempt to stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
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
    /// The worker's lease is over, or it was fenced: somebody else may own the job.
    Fenced,
    /// It was cancelled, and gets no time to end.
    Killed,
}

const NONE: u8 = 0;

impl StopCause {
    fn code(self) -> u8 {
        match self {
            StopCause::Cancelled => 1,
            StopCause::TimedOut => 2,
            StopCause::Leaving => 3,
            StopCause::Fenced => 4,
            StopCause::Killed => 5,
        }
    }

    fn from_code(code: u8) -> Option<StopCause> {
        [StopCause::Cancelled, StopCause::TimedOut, StopCause::Leaving, StopCause::Fenced, StopCause::Killed]
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
    /// Somebody else may own the job, whatever came first.
    is_fenced: AtomicBool,
    waiting: Mutex<()>,
    requested: Condvar,
    bell: Arc<Bell>,
}

/// A file that becomes readable when a stop is requested. It is made when an attempt polls files, and an
/// executor's attempts have the same one after each other: a late ring for one that is over wakes the next for
/// nothing, and does no more.
#[derive(Debug, Default)]
pub(super) struct Bell {
    file: OnceLock<OwnedFd>,
}

impl Stop {
    /// One that nobody has asked to stop, with the bell of its executor.
    pub(super) fn with_bell(bell: &Arc<Bell>) -> Stop {
        Stop { inner: Arc::new(Inner { bell: Arc::clone(bell), ..Inner::default() }) }
    }

    /// Asks for a stop. Only the first cause counts, but [`StopCause::Fenced`] takes away the time that
    /// another cause gives.
    pub fn request(&self, cause: StopCause) {
        let fences = match cause {
            StopCause::Fenced => !self.inner.is_fenced.swap(true, Ordering::AcqRel),
            StopCause::Cancelled | StopCause::TimedOut | StopCause::Leaving | StopCause::Killed => false,
        };
        let first = self
            .inner
            .cause
            .compare_exchange(NONE, cause.code(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok();
        if first || fences {
            let _waiting = self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.inner.requested.notify_all();
            self.inner.bell.ring();
        }
    }

    /// Why the attempt should stop, if it should.
    #[must_use]
    pub fn cause(&self) -> Option<StopCause> {
        StopCause::from_code(self.inner.cause.load(Ordering::Acquire))
    }

    /// Nothing of the attempt may go on for another moment: somebody else may own the job.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        self.inner.is_fenced.load(Ordering::Acquire)
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

    /// A file that becomes readable when a stop is requested, or becomes urgent.
    ///
    /// # Errors
    /// When the system has no file to give.
    pub(super) fn wake_file(&self) -> std::io::Result<BorrowedFd<'_>> {
        if self.inner.bell.file.get().is_none() {
            let file = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let _made_meanwhile = self.inner.bell.file.set(file);
            if self.cause().is_some() {
                self.inner.bell.ring();
            }
        }
        self.inner.bell.file.get().map(AsFd::as_fd).ok_or_else(|| std::io::Error::other("no event file"))
    }

    /// The file was heard: it is readable again at the next request.
    pub(super) fn heard(&self) {
        if let Some(file) = self.inner.bell.file.get() {
            let _empty_already = rustix::io::read(file, &mut [0; 8]);
        }
    }
}

impl Bell {
    fn ring(&self) {
        if let Some(file) = self.file.get() {
            // Only a full counter makes this fail, and then it is readable anyway.
            let _full = rustix::io::write(file, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays_and_fencing_makes_it_urgent() {
        let stop = Stop::default();
        stop.request(StopCause::Cancelled);
        stop.request(StopCause::TimedOut);
        assert_eq!((stop.cause(), stop.is_fenced()), (Some(StopCause::Cancelled), false));
        stop.request(StopCause::Fenced);
        assert_eq!((stop.cause(), stop.is_fenced()), (Some(StopCause::Cancelled), true));
    }

    fn is_ringing(stop: &Stop) -> bool {
        let file = stop.wake_file().expect("the system has one");
        let mut files = [rustix::event::PollFd::new(&file, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut files, Some(&rustix::event::Timespec::default())).expect("it can be polled")
            == 1
    }

    #[test]
    fn each_new_request_is_heard_once() {
        let stop = Stop::default();
        stop.request(StopCause::Leaving);
        assert!(is_ringing(&stop), "asked before anybody listened");
        stop.heard();
        assert!(!is_ringing(&stop));
        stop.request(StopCause::Fenced);
        assert!(is_ringing(&stop), "more urgent by now");
        stop.heard();
        stop.request(StopCause::Fenced);
        assert!(!is_ringing(&stop), "nothing new");
    }

    #[test]
    fn the_next_attempt_with_a_bell_hears_its_own_requests_only_as_causes() {
        let bell = Arc::new(Bell::default());
        let (first, second) = (Stop::with_bell(&bell), Stop::with_bell(&bell));
        assert!(!is_ringing(&first));
        first.request(StopCause::Leaving);
        assert!(is_ringing(&second), "for nothing");
        assert_eq!(second.cause(), None);
        second.heard();
        second.request(StopCause::TimedOut);
        assert!(is_ringing(&second));
        assert_eq!(second.cause(), Some(StopCause::TimedOut));
    }
}
