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
const LONGEST: Duration = Duration::from_secs(2);
/// How long dropping the watcher waits for the thread, and the pauses between two checks.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

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
            .spawn(move || serve(&mut folder, &woken))?;
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
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
    }
}

fn serve(folder: &mut WorkflowFolder, wake: &OwnedFd) {
    let mut read = ReadFiles::IfChanged;
    let mut can_watch = true;
    loop {
        // Watch before the files are read, so that no change is missed.
        let kernel = match watch(folder.path()) {
            Ok(kernel) => {
                can_watch = true;
                Some(kernel)
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
        read = match wait(kernel.as_ref(), wake, POLL) {
            WokenBy::Stop => return,
            WokenBy::Changed => {
                if wait_for_quiet(kernel.as_ref(), wake) == WokenBy::Stop {
                    return;
                }
                ReadFiles::Always
            }
            WokenBy::Quiet => ReadFiles::IfChanged,
        };
    }
}

/// Watches the folder and all folders in it. This is repeated after each change, because folders are added,
/// removed and replaced.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    if let (false, Some(parent)) = (folder.exists(), folder.parent()) {
        // Wait for the folder to come back.
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        inotify::add_watch(&kernel, parent, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
        return Ok(kernel);
    }
    let folders =
        workflow_files::folders_below(folder).map_err(|failure| io::Error::other(failure.plain()))?;
    for folder in folders {
        inotify::add_watch(&kernel, &folder, changes())?;
    }
    Ok(kernel)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WokenBy {
    Changed,
    Quiet,
    Stop,
}

/// Waits for the end of a series of changes. One save of an editor causes several.
fn wait_for_quiet(kernel: Option<&OwnedFd>, wake: &OwnedFd) -> WokenBy {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        match wait(kernel, wake, QUIET) {
            WokenBy::Changed => {}
            WokenBy::Quiet => break,
            WokenBy::Stop => return WokenBy::Stop,
        }
    }
    WokenBy::Changed
}

fn wait(kernel: Option<&OwnedFd>, wake: &OwnedFd, longest: Duration) -> WokenBy {
    let mut files = vec![PollFd::new(wake, PollFlags::IN)];
    files.extend(kernel.map(|kernel| PollFd::new(kernel, PollFlags::IN)));
    let Ok(timeout) = Timespec::try_from(longest) else { return WokenBy::Stop };
    match poll(&mut files, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return WokenBy::Quiet,
        Ok(_) => {}
        Err(error) => {
            tracing::error!(%error, "the folder of workflows is no longer watched");
            return WokenBy::Stop;
        }
    }
    let mut message = [0; 8];
    let messages = rustix::io::read(wake, &mut message).map_or(0, |_length| u64::from_ne_bytes(message));
    if let Some(kernel) = kernel {
        let mut events = [0; 4096];
        while rustix::io::read(kernel.as_fd(), &mut events).is_ok_and(|length| length > 0) {}
    }
    if messages >= STOP { WokenBy::Stop } else { WokenBy::Changed }
}
