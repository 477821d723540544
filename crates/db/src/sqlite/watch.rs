//! A thread that finds out when another process has committed.
//!
//! The kernel (inotify) tells when the WAL file changes. That comes too early: a commit's pages are written first, then
//! flushed, and only then visible. So after each event the thread looks at once, after 2 ms, after 4 more, after 8 more,
//! up to once a second, which also finds a commit whose event was lost.
//!
//! A process that commits through this library sets the time of the WAL file when its commit is visible
//! ([`announce_commit`]). That is an event too, at the right moment. Other programs' commits are found by the later looks.
//!
//! Watching a file and setting its time by its name take no handle of it, so SQLite's locks are not touched.

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

/// The shortest time between two looks: a stream of events costs 500 looks a second at most.
const LOOK_MIN_MS: i64 = 2;
/// The longest time between two looks.
const LOOK_MAX_MS: i64 = 1_000;
/// The same where the kernel can't watch the file.
const LOOK_WITHOUT_EVENTS_MS: i64 = 10;

/// Tells watching processes that a commit is visible. An event that is lost costs them some milliseconds.
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
    /// Calls `look` now, after each change of `file`, and once a second. Where the kernel can't watch the file, it calls
    /// `look` every 10 ms.
    ///
    /// # Errors
    /// [`Error::Internal`] when no thread can be started.
    pub(super) fn start(file: &Path, look: impl Fn() + Send + 'static) -> Result<Watcher> {
        let failed = |error: io::Error| Error::internal("watch for other processes", error.to_string());
        let events = events_of(file)
            .inspect_err(|error| tracing::debug!(%error, "the kernel can't watch the WAL file"))
            .ok();
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stop = Arc::new(stop.map_err(|error| failed(error.into()))?);
        let watch = Watch { events, stop: Arc::clone(&stop) };
        let thread = std::thread::Builder::new()
            .name("windlass-watcher".to_owned())
            .spawn(move || watch.serve(look))
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

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Changed,
    Quiet,
    Stopped,
}

struct Watch {
    /// `None` where the kernel can't watch the file.
    events: Option<OwnedFd>,
    stop: Arc<OwnedFd>,
}

impl Watch {
    fn serve(&self, look: impl Fn()) {
        let mut waited = Waited::Changed;
        let mut wait_ms = LOOK_MIN_MS;
        while waited != Waited::Stopped {
            look();
            wait_ms = self.next_wait_ms(waited, wait_ms);
            waited = self.wait(wait_ms);
        }
    }

    /// How long to wait for the next event, after a wait of `before_ms` ended with `waited`.
    fn next_wait_ms(&self, waited: Waited, before_ms: i64) -> i64 {
        match (waited, &self.events) {
            (_, None) => LOOK_WITHOUT_EVENTS_MS,
            (Waited::Changed | Waited::Stopped, Some(_)) => LOOK_MIN_MS,
            (Waited::Quiet, Some(_)) => (before_ms * 2).min(LOOK_MAX_MS),
        }
    }

    /// Waits for an event. [`LOOK_MIN_MS`] pass in any case, unless the thread is to stop.
    fn wait(&self, longest_ms: i64) -> Waited {
        match poll_for(longest_ms.min(LOOK_MIN_MS), &[&*self.stop]) {
            Ready::Nothing => {}
            Ready::First | Ready::Second | Ready::Failed => return Waited::Stopped,
        }
        let Some(events) = &self.events else {
            return match poll_for(longest_ms - LOOK_MIN_MS, &[&*self.stop]) {
                Ready::Nothing => Waited::Quiet,
                Ready::First | Ready::Second | Ready::Failed => Waited::Stopped,
            };
        };
        match poll_for(longest_ms - LOOK_MIN_MS, &[&*self.stop, events]) {
            Ready::First | Ready::Failed => Waited::Stopped,
            Ready::Second => {
                drain(events);
                Waited::Changed
            }
            Ready::Nothing => Waited::Quiet,
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

/// Reads all events. What they say does not matter.
fn drain(events: &OwnedFd) {
    let mut buffer = [const { MaybeUninit::uninit() }; 4_096];
    let mut reader = inotify::Reader::new(events, &mut buffer);
    while reader.next().is_ok() {}
}

fn events_of(file: &Path) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, file, WatchFlags::MODIFY | WatchFlags::ATTRIB)?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn watched(file: &Path) -> (Watcher, Receiver<()>) {
        let (sender, looks) = channel();
        let look = move || {
            let _gone = sender.send(());
        };
        (Watcher::start(file, look).expect("the thread starts"), looks)
    }

    /// Waits until the thread looks no more than every 256 ms.
    fn until_quiet(looks: &Receiver<()>) {
        while looks.recv_timeout(Duration::from_millis(200)).is_ok() {}
    }

    #[test]
    fn a_change_is_followed_by_many_looks() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let (_watcher, looks) = watched(file.path());
        until_quiet(&looks);
        file.write_all(b"x").expect("written");
        // At 0, 2, 6, 14, 30, 62, 126 and 254 ms.
        for _look in 0..8 {
            looks.recv_timeout(PATIENCE).expect("a look");
        }
    }

    #[test]
    fn an_announced_commit_is_an_event() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let watch = Watch {
            events: Some(events_of(file.path()).expect("the kernel watches")),
            stop: Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd")),
        };
        assert_eq!(watch.wait(LOOK_MIN_MS), Waited::Quiet);
        announce_commit(file.path());
        assert_eq!(watch.wait(60_000), Waited::Changed);
        assert_eq!(watch.wait(LOOK_MIN_MS), Waited::Quiet, "the event was read");
        rustix::io::write(&watch.stop, &1u64.to_ne_bytes()).expect("told to stop");
        assert_eq!(watch.wait(60_000), Waited::Stopped);
    }

    #[test]
    fn looks_come_soon_after_an_event_and_seldom_after_a_while() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let stop = || Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("an eventfd"));
        let watch = Watch { events: Some(events_of(file.path()).expect("watched")), stop: stop() };
        let mut wait_ms = watch.next_wait_ms(Waited::Changed, LOOK_MAX_MS);
        let mut waits = Vec::new();
        for _wait in 0..11 {
            waits.push(wait_ms);
            wait_ms = watch.next_wait_ms(Waited::Quiet, wait_ms);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 1_000]);
        let blind = Watch { events: None, stop: stop() };
        assert_eq!(blind.next_wait_ms(Waited::Quiet, LOOK_MAX_MS), LOOK_WITHOUT_EVENTS_MS);
    }

    #[test]
    fn a_file_that_can_not_be_watched_is_looked_at_often() {
        let (_watcher, looks) = watched(Path::new("/nonexistent/wal"));
        for _look in 0..10 {
            looks.recv_timeout(PATIENCE).expect("a look");
        }
    }

    #[test]
    fn dropping_the_handle_ends_the_thread() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (watcher, looks) = watched(file.path());
        drop(watcher);
        while looks.try_recv().is_ok() {}
        assert_eq!(looks.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected));
    }
}
