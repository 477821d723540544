//! The runtime that drives one connection.
//!
//! A runtime may neither wait nor be dropped on a thread that belongs to another runtime: it would panic. A program
//! that is asynchronous itself calls on such threads, so there the wait goes to a thread of ours, and nothing that
//! is dropped waits for anything but that.

use std::future::Future;
use std::io;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, Handle, Runtime};

/// Where threads are shown by their names.
const THREAD_NAME: &str = "windlass-call";

/// The runtime of one connection. It can be used and dropped on any thread.
pub(super) struct OwnRuntime {
    /// Taken only by its end.
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    /// # Errors
    /// The machine's: no more files, for example.
    pub(super) fn new() -> io::Result<OwnRuntime> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(OwnRuntime { runtime: Some(runtime) })
    }

    /// Waits for a work's end.
    ///
    /// # Errors
    /// This thread belongs to a runtime, and another one can't be started.
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
            // Nothing is left to be driven; a name that is still being looked up is not waited for.
            runtime.shutdown_background();
        }
    }
}

/// Whether a runtime may wait on this thread. A thread that is made for waiting (`spawn_blocking`) can't be told from the
/// others of its runtime, and one that ends does not say to whom it belonged.
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
    fn a_wait_goes_to_another_thread_only_where_the_own_one_belongs_to_a_runtime() {
        let (own, others) = (OwnRuntime::new().unwrap(), OwnRuntime::new().unwrap());
        assert_eq!(waits_on(&own), current().id());
        let inside =
            others.block_on(async { (waits_on(&own) != current().id(), OwnRuntime::new().map(drop)) });
        assert!(matches!(inside, Ok((true, Ok(())))), "{inside:?}");
        assert_eq!(waits_on(&own), current().id(), "and not from then on");
    }

    #[test]
    fn a_panic_on_the_other_thread_is_the_callers() {
        let (own, others) = (OwnRuntime::new().unwrap(), OwnRuntime::new().unwrap());
        let caught = others.block_on(async {
            catch_unwind(AssertUnwindSafe(|| own.block_on(async { panic!("as planned") }))).unwrap_err()
        });
        assert_eq!(caught.unwrap().downcast_ref::<&str>(), Some(&"as planned"));
    }
}
