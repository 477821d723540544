//! The watcher: a thread that notices commits of other processes.
//!
//! The kernel reports changes of the WAL file (inotify). These events come too early: the pages of a commit are first written,
//! then flushed, and only then visible. So after an event the thread checks at once, 2 ms later, 4 ms later, 8 ms later, and
//! so on up to once a second. The slow checks also find a commit whose event was lost.
//!
//! A process that commits through this library sets the modification time of the WAL file when its commit is visible
//! ([`announce_commit`]). That causes an event at the right moment. Commits of other programs are found by the later checks.
//!
//! Neither inotify nor setting the time opens the file, so SQLite's locks are not affected.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW, utimensat};

use crate::error::{Error, Result};

/// The shortest time between two checks: at most 500 checks a second.
const CHECK_INTERVAL_MIN_MS: i64 = 2;
/// The longest time between two checks.
const CHECK_INTERVAL_MAX_MS: i64 = 1_000;
/// The time between two checks if the kernel can't watch the file.
const CHECK_INTERVAL_WITHOUT_EVENTS_MS: i64 = 10;

/// Tells the watchers of other processes that a commit is visible. If this fails they notice it some milliseconds later.
pub(super) fn announce_commit(wal: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    let _lost = utimensat(CWD, wal, &times, AtFlags::empty());
}

/// The handle of the thread. Dropping it ends the thread.
pub(super) struct Watcher {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Calls `check` now, after each change of `file`, and once a second. If the kernel can't watch the file, it calls
    /// `check` every 10 ms.
    ///
    /// # Errors
    /// [`Error::Internal`] when no thread can be started.
    pub(super) fn start(file: &Path, check: impl Fn() + Send + 'static) -> Result<Watcher> {
        let failed = |error: io::Error| Error::internal("watch for other processes", error.to_string());
        let events = watch_file(file)
            .inspect_err(|error| tracing::debug!(%error, "the kernel can't watch the WAL file"))
            .ok();
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(stop.map_err(|error| failed(error.into()))?);
        let watch = WatchLoop { events, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new()
            .name("windlass-watcher".to_owned())
            .spawn(move || watch.serve(check))
            .map_err(failed)?;
        Ok(Watcher { stop, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let _full = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    Changed,
    TimedOut,
    Stopped,
}

struct WatchLoop {
    /// `None` if the kernel can't watch the file.
    events: Option<OwnedFd>,
    stop: Arc<OwnedFd>,
}

impl WatchLoop {
    fn serve(&self, check: impl Fn()) {
        let mut waited = WaitEnd::Changed;
        let mut wait_ms = CHECK_INTERVAL_MIN_MS;
        while waited != WaitEnd::Stopped {
            check();
            wait_ms = self.next_wait_ms(waited, wait_ms);
            waited = self.wait(wait_ms);
        }
    }

    /// How long to wait for the next event, after a wait of at most `before_ms` that ended with `waited`.
    fn next_wait_ms(&self, waited: WaitEnd, before_ms: i64) -> i64 {
        match (waited, &self.events) {
            (_, None) => CHECK_INTERVAL_WITHOUT_EVENTS_MS,
            (WaitEnd::Changed | WaitEnd::Stopped, Some(_)) => CHECK_INTERVAL_MIN_MS,
            (WaitEnd::TimedOut, Some(_)) => (before_ms * 2).min(CHECK_INTERVAL_MAX_MS),
        }
    }

    /// Waits for an event, and at least for [`CHECK_INTERVAL_MIN_MS`], unless the thread must stop.
    fn wait(&self, longest_ms: i64) -> WaitEnd {
        match poll_for(longest_ms.min(CHECK_INTERVAL_MIN_MS), &[&*self.stop]) {
            Ready::Nothing => {}
            Ready::First | Ready::Second | Ready::Failed => return WaitEnd::Stopped,
        }
        let Some(events) = &self.events else {
            return match poll_for(longest_ms - CHECK_INTERVAL_MIN_MS, &[&*self.stop]) {
                Ready::Nothing => WaitEnd::TimedOut,
                Ready::First | Ready::Second | Ready::Failed => WaitEnd::Stopped,
            };
        };
        match poll_for(longest_ms - CHECK_INTERVAL_MIN_MS, &[&*self.stop, events]) {
            Ready::First | Ready::Failed => WaitEnd::Stopped,
            Ready::Second => {
                drain(events);
                WaitEnd::Changed
            }
            Ready::Nothing => WaitEnd::TimedOut,
        }
    }
}

/// Which of the polled files has something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    First,
    Second,
    Nothing,
    Failed,
}

fn poll_for(longest_ms: i64, files: &[&OwnedFd]) -> Ready {
    let longest = Duration::from_millis(longest_ms.max(0).unsigned_abs());
    let timeout = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    let mut polled: Vec<PollFd<'_>> =
        files.iter().map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)).collect();
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(_broken) => return Ready::Failed,
    }
    match polled.iter().position(|file| !file.revents().is_empty()) {
        Some(0) => Ready::First,
        Some(_) => Ready::Second,
        None => Ready::Nothing,
    }
}

/// Reads all events. Their contents do not matter.
fn drain(events: &OwnedFd) {
    let mut buffer = [const { MaybeUninit::uninit() }; 4_096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
}

fn watch_file(file: &Path) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, file, WatchFlags::MODIFY | WatchFlags::ATTRIB)?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    fn watched(file: &Path) -> (Watcher, Receiver<()>) {
        let (sender, checks) = channel();
        let check = move || {
            let _gone = sender.send(());
        };
        (Watcher::start(file, check).expect("the thread starts"), checks)
    }

    /// Waits until the time between two checks is 256 ms or more.
    fn until_quiet(checks: &Receiver<()>) {
        while checks.recv_timeout(Duration::from_millis(200)).is_ok() {}
    }

    #[test]
    fn a_change_is_followed_by_many_checks() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let (_watcher, checks) = watched(file.path());
        until_quiet(&checks);
        file.write_all(b"x").expect("written");
        // At 0, 2, 6, 14, 30, 62, 126 and 254 ms.
        for _check in 0..8 {
            checks.recv_timeout(TIMEOUT).expect("a check");
        }
    }

    #[test]
    fn an_announced_commit_is_an_event() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let watch = WatchLoop {
            events: Some(watch_file(file.path()).expect("the kernel watches")),
            stop: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd")),
        };
        assert_eq!(watch.wait(CHECK_INTERVAL_MIN_MS), WaitEnd::TimedOut);
        announce_commit(file.path());
        assert_eq!(watch.wait(60_000), WaitEnd::Changed);
        assert_eq!(watch.wait(CHECK_INTERVAL_MIN_MS), WaitEnd::TimedOut, "the event was read");
        rustix::io::write(&watch.stop, &1u64.to_ne_bytes()).expect("the stop is written");
        assert_eq!(watch.wait(60_000), WaitEnd::Stopped);
    }

    #[test]
    fn the_time_between_checks_doubles_after_an_event() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let stop = || Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd"));
        let watch = WatchLoop { events: Some(watch_file(file.path()).expect("watched")), stop: stop() };
        let mut wait_ms = watch.next_wait_ms(WaitEnd::Changed, CHECK_INTERVAL_MAX_MS);
        let mut waits = Vec::new();
        for _wait in 0..11 {
            waits.push(wait_ms);
            wait_ms = watch.next_wait_ms(WaitEnd::TimedOut, wait_ms);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000]);
        let without_events = WatchLoop { events: None, stop: stop() };
        assert_eq!(
            without_events.next_wait_ms(WaitEnd::TimedOut, CHECK_INTERVAL_MAX_MS),
            CHECK_INTERVAL_WITHOUT_EVENTS_MS
        );
    }

    #[test]
    fn a_file_that_can_not_be_watched_is_checked_often() {
        let (_watcher, checks) = watched(Path::new("/nonexistent/wal"));
        for _check in 0..10 {
            checks.recv_timeout(TIMEOUT).expect("a check");
        }
    }

    #[test]
    fn dropping_the_handle_ends_the_thread() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (watcher, checks) = watched(file.path());
        drop(watcher);
        while checks.try_recv().is_ok() {}
        assert_eq!(checks.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    }
}
