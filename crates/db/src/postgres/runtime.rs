//! The runtime that drives one connection.
//!
//! A runtime that blocks on a thread of another runtime panics, and so does one that is dropped there. Asynchronous programs
//! call Windlass on such threads. There the wait happens on a new thread, and the runtime is shut down in the background.

use std::future::Future;
use std::io;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, Handle, Runtime};

/// The name of a thread that waits in place of the caller.
const THREAD_NAME: &str = "windlass-call";

/// The runtime of one connection. It can be used and dropped on any thread.
pub(super) struct OwnRuntime {
    /// Taken only when this is dropped.
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    /// # Errors
    /// An error of the operating system, for example no more open files.
    pub(super) fn new() -> io::Result<OwnRuntime> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(OwnRuntime { runtime: Some(runtime) })
    }

    /// Runs a future to its end.
    ///
    /// # Errors
    /// When this thread belongs to a runtime, and another thread can't be started.
    pub(super) fn block_on<T: Send>(&self, work: impl Future<Output = T> + Send) -> io::Result<T> {
        let Some(runtime) = &self.runtime else { return Err(io::Error::other("the connection has ended")) };
        if may_wait() {
            return Ok(runtime.block_on(work));
        }
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name(THREAD_NAME.to_owned());
            let waiting = thread.spawn_scoped(scope, || runtime.block_on(work))?;
            waiting.join().or_else(|panic| resume_unwind(panic))
        })
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // In the background, so that it does not wait for a name that is being looked up.
            runtime.shutdown_background();
        }
    }
}

/// Whether a runtime may block on this thread: whether it belongs to no runtime. A thread of `spawn_blocking` could block, but
/// can't be distinguished from other threads of its runtime. A thread that is ending is not asked which runtime it belongs to.
fn may_wait() -> bool {
    Handle::try_current().is_err_and(|error| error.is_missing_context())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread::{ThreadId, current};

    use super::*;

    fn waits_on(runtime: &OwnRuntime) -> ThreadId {
        runtime.block_on(async { current().id() }).unwrap()
    }

    #[test]
    fn a_future_runs_on_another_thread_only_if_the_caller_belongs_to_a_runtime() {
        let (own, others) = (OwnRuntime::new().unwrap(), OwnRuntime::new().unwrap());
        assert_eq!(waits_on(&own), current().id());
        let inside =
            others.block_on(async { (waits_on(&own) != current().id(), OwnRuntime::new().map(drop)) });
        assert!(matches!(inside, Ok((true, Ok(())))), "{inside:?}");
        assert_eq!(waits_on(&own), current().id(), "and not from then on");
    }

    #[test]
    fn a_panic_on_the_other_thread_reaches_the_caller() {
        let (own, others) = (OwnRuntime::new().unwrap(), OwnRuntime::new().unwrap());
        let caught = others.block_on(async {
            catch_unwind(AssertUnwindSafe(|| own.block_on(async { panic!("as planned") }))).unwrap_err()
        });
        assert_eq!(caught.unwrap().downcast_ref::<&str>(), Some(&"as planned"));
    }
}
