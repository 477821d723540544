//! A thread that calls back again and again: the net under what the kernel tells of a file.

use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Error, Result};

/// The handle of the thread. Dropping it ends the thread.
pub(super) struct Ticker {
    end: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Calls `look` every so many milliseconds.
    pub(super) fn start(every_ms: u64, look: impl Fn() + Send + 'static) -> Result<Ticker> {
        let (end, ended) = sync_channel(1);
        let every = Duration::from_millis(every_ms);
        let thread = std::thread::Builder::new()
            .name("windlass-ticker".to_owned())
            .spawn(move || {
                while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                    look();
                }
            })
            .map_err(|error| Error::internal("look for commits of others", error.to_string()))?;
        Ok(Ticker { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn it_calls_again_and_again_until_it_is_dropped() {
        let (sender, calls) = channel();
        let ticker = Ticker::start(1, move || sender.send(()).unwrap_or_default()).unwrap();
        for _ in 0..3 {
            calls.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        drop(ticker);
        // The thread had the only sender.
        while calls.try_recv().is_ok() {}
        assert_eq!(calls.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    }
}
