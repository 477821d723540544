//! Threads of a worker that end together, and waiting for them with a limit: one of them may be in a call
//! into the database that does not return for minutes.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Shared;
use windlass_db::error::Result;
use windlass_db::error::no_thread;

/// How often it is looked whether waiting for them is still worth it.
const LOOK: Duration = Duration::from_millis(100);

pub(super) struct Threads {
    threads: Vec<JoinHandle<()>>,
    /// Each thread has a copy, and says nothing by it but that it goes on.
    goes_on: Option<Sender<()>>,
    ended: Receiver<()>,
    /// They were waited for long enough.
    is_given_up: bool,
}

impl Threads {
    pub(super) fn new() -> Threads {
        let (goes_on, ended) = channel();
        Threads { threads: Vec::new(), goes_on: Some(goes_on), ended, is_given_up: false }
    }

    pub(super) fn spawn(
        &mut self,
        name: String,
        shared: &Arc<Shared>,
        serve: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<()> {
        let shared = Arc::clone(shared);
        let goes_on = self.goes_on.clone();
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                let _goes_on = goes_on;
                serve(&shared);
            })
            .map_err(|error| no_thread("start a worker", &error))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Waits until all have ended, as long as `is_worth_it`. Returns whether they have; those that have not go
    /// on by themselves.
    pub(super) fn join_while(&mut self, is_worth_it: impl Fn() -> bool) -> bool {
        drop(self.goes_on.take());
        while self.ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Disconnected) {
            if self.is_given_up || !is_worth_it() {
                self.is_given_up = true;
                return false;
            }
        }
        for thread in self.threads.drain(..) {
            let _panicked = thread.join();
        }
        true
    }
}
