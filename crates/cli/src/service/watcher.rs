//! A thread that looks at the folder of a service when the kernel says that something in it changed, and
//! now and then in any case: a file system on a network tells nothing.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};

use super::folder::{Look, WorkflowFolder};
use crate::workflow_files;

/// How often it is looked where the kernel tells nothing.
const POLL: Duration = Duration::from_secs(10);
/// Changes that follow each other within this time are one.
const QUIET: Duration = Duration::from_millis(100);
/// Changes that never end are looked at after this time.
const LONGEST: Duration = Duration::from_secs(2);
/// How long the end of the thread is waited for, and with which pauses.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// What counts as a change. A file that is being written counts when it is closed.
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

/// A folder that is watched. Dropping it ends the watch.
pub(crate) struct Watcher {
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread is told through its event file; a sum of these.
const LOOK: u64 = 1;
const STOP: u64 = 1 << 32;

impl Watcher {
    /// Begins to watch.
    pub(crate) fn start(mut folder: WorkflowFolder) -> io::Result<Watcher> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let woken = Arc::clone(&wake);
        let thread = std::thread::Builder::new()
            .name("windlass-folder".to_owned())
            .spawn(move || serve(&mut folder, &woken))?;
        Ok(Watcher { wake, thread: Some(thread) })
    }

    /// Has the files read again now.
    pub(crate) fn look(&self) {
        self.tell(LOOK);
    }

    /// Ends the watch; waits for nothing.
    pub(crate) fn stop(&self) {
        self.tell(STOP);
    }

    fn tell(&self, what: u64) {
        let _full = rustix::io::write(&self.wake, &what.to_ne_bytes());
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop();
        let began = Instant::now();
        // It may wait for a database or a file system that does not answer: it ends later then, or with the
        // process.
        while self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) && began.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
        }
    }
}

fn serve(folder: &mut WorkflowFolder, wake: &OwnedFd) {
    let mut look = Look::IfDifferent;
    let mut can_watch = true;
    loop {
        // Before the files are read: what changes meanwhile is heard.
        let kernel = match watch(folder.path()) {
            Ok(kernel) => {
                can_watch = true;
                Some(kernel)
            }
            Err(error) => {
                if std::mem::replace(&mut can_watch, false) {
                    let folder = folder.path().display();
                    tracing::warn!(%folder, %error, "the kernel does not watch the folder; looking every {POLL:?}");
                }
                None
            }
        };
        folder.look(look);
        look = match wait(kernel.as_ref(), wake, POLL) {
            Woken::Stop => return,
            Woken::Changed => {
                if settle(kernel.as_ref(), wake) == Woken::Stop {
                    return;
                }
                Look::Always
            }
            Woken::Quiet => Look::IfDifferent,
        };
    }
}

/// Has the kernel watch the folder and the folders in it. It is done anew after each change: folders come, go
/// and are replaced.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let kernel = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    if let (false, Some(parent)) = (folder.exists(), folder.parent()) {
        // It may come back.
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
enum Woken {
    Changed,
    Quiet,
    Stop,
}

/// Waits until a set of changes is complete: one save of an editor is several.
fn settle(kernel: Option<&OwnedFd>, wake: &OwnedFd) -> Woken {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        match wait(kernel, wake, QUIET) {
            Woken::Changed => {}
            Woken::Quiet => break,
            Woken::Stop => return Woken::Stop,
        }
    }
    Woken::Changed
}

fn wait(kernel: Option<&OwnedFd>, wake: &OwnedFd, longest: Duration) -> Woken {
    let mut files = vec![PollFd::new(wake, PollFlags::IN)];
    files.extend(kernel.map(|kernel| PollFd::new(kernel, PollFlags::IN)));
    let Ok(timeout) = Timespec::try_from(longest) else { return Woken::Stop };
    match poll(&mut files, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Woken::Quiet,
        Ok(_) => {}
        Err(error) => {
            tracing::error!(%error, "the folder of workflows is watched no more");
            return Woken::Stop;
        }
    }
    let mut told = [0; 8];
    let told = rustix::io::read(wake, &mut told).map_or(0, |_length| u64::from_ne_bytes(told));
    if let Some(kernel) = kernel {
        let mut events = [0; 4096];
        while rustix::io::read(kernel.as_fd(), &mut events).is_ok_and(|length| length > 0) {}
    }
    if told >= STOP { Woken::Stop } else { Woken::Changed }
}
