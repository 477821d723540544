//! The thread that updates the folder of a service when the kernel reports a change. It also polls, because a
//! network file system reports no changes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::folder::{ReadFiles, WorkflowFolder};
use crate::workflow_files;

/// The polling interval.
const POLL: Duration = Duration::from_secs(10);
/// Changes that follow each other within this time are handled together.
const QUIET: Duration = Duration::from_millis(100);
/// The longest wait for the end of a series of changes.
const SERIES_MAX: Duration = Duration::from_secs(2);
/// How long dropping the watcher waits for the thread.
const JOIN_MAX: Duration = Duration::from_secs(1);
/// The pause between two checks whether the thread has ended.
const JOIN_POLL: Duration = Duration::from_millis(2);

/// The events that count as a change. A written file counts when it is closed.
fn changes() -> WatchFlags {
    WatchFlags::CLOSE_WRITE
        | WatchFlags::CREATE
        | WatchFlags::DELETE
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVED_FROM
        | WatchFlags::MOVED_TO
        | WatchFlags::MOVE_SELF
        | WatchFlags::ATTRIB
}

/// Watches a folder until it is dropped.
pub(crate) struct Watcher {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The messages to the thread. The event file adds them up.
const UPDATE: u64 = 1;
const STOP: u64 = 1 << 32;

impl Watcher {
    /// Starts the thread.
    pub(crate) fn start(mut folder: WorkflowFolder) -> io::Result<Watcher> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let woken = Arc::clone(&wake);
        let thread = std::thread::Builder::new()
            .name("windlass-folder".to_owned())
            .spawn(move || keep_updated(&mut folder, &woken))?;
        Ok(Watcher { wake, thread: Some(thread) })
    }

    /// Makes the thread read the files again.
    pub(crate) fn update(&self) {
        self.send(UPDATE);
    }

    /// Asks the thread to end, without waiting.
    pub(crate) fn stop(&self) {
        self.send(STOP);
    }

    fn send(&self, message: u64) {
        let _full = rustix::io::write(&self.wake, &message.to_ne_bytes());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
        let began = Instant::now();
        // The thread may wait for a database or a file system that does not answer. Then it ends later, or with the
        // process.
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < JOIN_MAX {
            std::thread::sleep(JOIN_POLL);
        }
    }
}

fn keep_updated(folder: &mut WorkflowFolder, wake: &OwnedFd) {
    let mut read = ReadFiles::IfChanged;
    let mut can_watch = true;
    loop {
        // Watch before the files are read, so that no change is missed.
        let inotify_file = match watch(folder.path()) {
            Ok(inotify_file) => {
                can_watch = true;
                Some(inotify_file)
            }
            Err(error) => {
                if std::mem::replace(&mut can_watch, false) {
                    let folder = folder.path().display();
                    tracing::warn!(%folder, %error, "the folder cannot be watched; polling every {POLL:?}");
                }
                None
            }
        };
        folder.update(read);
        read = match wait(inotify_file.as_ref(), wake, POLL) {
            WaitEnd::Stop => return,
            WaitEnd::Changed => {
                if wait_for_quiet(inotify_file.as_ref(), wake) == WaitEnd::Stop {
                    return;
                }
                ReadFiles::Always
            }
            WaitEnd::TimedOut => ReadFiles::IfChanged,
        };
    }
}

/// Watches the folder and all folders in it. This is repeated after each change, because folders are added,
/// removed and replaced.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let inotify_file = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    if let (false, Some(parent)) = (folder.exists(), folder.parent()) {
        // Wait for the folder to come back.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        inotify::add_watch(&inotify_file, parent, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        return Ok(inotify_file);
    }
    let folders =
        workflow_files::folders_below(folder).map_err(|failure| io::Error::other(failure.plain()))?;
    for folder in folders {
        inotify::add_watch(&inotify_file, &folder, changes())?;
    }
    Ok(inotify_file)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
/// Why a wait ended.
enum WaitEnd {
    /// A file changed, or an update was requested.
    Changed,
    /// The longest wait is over.
    TimedOut,
    /// The thread was asked to end.
    Stop,
}

/// Waits for the end of a series of changes. One save of an editor causes several.
fn wait_for_quiet(inotify_file: Option<&OwnedFd>, wake: &OwnedFd) -> WaitEnd {
    let began = Instant::now();
    while began.elapsed() < SERIES_MAX {
        match wait(inotify_file, wake, QUIET) {
            WaitEnd::Changed => {}
            WaitEnd::TimedOut => break,
            WaitEnd::Stop => return WaitEnd::Stop,
        }
    }
    WaitEnd::Changed
}

fn wait(inotify_file: Option<&OwnedFd>, wake: &OwnedFd, longest: Duration) -> WaitEnd {
    let mut files = vec![PollFd::new(wake, PollFlags::IN)];
    files.extend(inotify_file.map(|inotify_file| PollFd::new(inotify_file, PollFlags::IN)));
    let Ok(timeout) = Timespec::try_from(longest) else { return WaitEnd::Stop };
    match poll(&mut files, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return WaitEnd::TimedOut,
        Ok(_) => {}
        Err(error) => {
            tracing::error!(%error, "the folder of workflows is no longer watched");
            return WaitEnd::Stop;
        }
    }
    let mut message = [0; 8];
    let messages = rustix::io::read(wake, &mut message).map_or(0, |_length| u64::from_ne_bytes(message));
    if let Some(inotify_file) = inotify_file {
        let mut events = [0; 4096];
        while rustix::io::read(inotify_file.as_fd(), &mut events).is_ok_and(|length| length > 0) {}
    }
    if messages >= STOP { WaitEnd::Stop } else { WaitEnd::Changed }
}
