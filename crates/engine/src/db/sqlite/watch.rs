//! A hint that another process committed: the kernel tells when the WAL file changes.
//!
//! Only a hint: whoever is told looks at `data_version`. It spares an idle process looking a hundred
//! times a second. Watching a file takes no handle of it, so SQLite's locks are not touched.
//!
//! The pages of a commit are written before it is flushed, and only then it can be seen: the kernel's
//! word comes too early. So after a change it is looked several times, at growing distances. After a change
//! that may be this process's own it is looked every 8 ms: the writer looks after its own commits anyway.
//!
//! Who commits through this library says so at the right moment: it gives the WAL file a new time, of which the
//! kernel tells as well, and apart from changes. Other programs do not, and theirs are found by looking.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW, utimensat};

use crate::clock::Clock;

/// Milliseconds between the looks after a change by somebody else, until nothing more is expected.
const LOOKS_MS: [i64; 8] = [1, 1, 2, 4, 8, 16, 32, 64];
/// From here the looks begin again when more changes come: a stream of them is looked at every few
/// milliseconds.
const AGAIN: usize = 3;
/// After changes that may be this process's own it is looked until nothing has changed for this time, …
const OWN_MS: i64 = 50;
/// … and meanwhile at this distance, …
const LOOK_MS: i64 = 8;
/// … while others' word is heard at once, and one's own this long after another at the soonest.
const STEP_MS: i64 = 1;

/// The commits of this process.
#[derive(Debug, Default)]
pub(super) struct OwnCommits {
    begun: AtomicU64,
    /// One at a time: the last that began may not have ended.
    ended: AtomicU64,
    told: AtomicU64,
}

impl OwnCommits {
    /// One begins: what changes from now on may be its.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// The one that began last changed nothing: the kernel tells of none of its changes. If it counted, the next
    /// change of somebody else would be taken for it.
    pub(super) fn was_empty(&self) {
        self.begun.fetch_sub(1, Ordering::Relaxed);
    }

    /// The one that began last has ended: what it changed has been told.
    pub(super) fn end(&self) {
        self.ended.store(self.begun(), Ordering::Relaxed);
    }

    fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// How many have begun, without those that were empty.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Tells others that one can be seen.
    pub(super) fn tell(&self, wal: &Path) {
        self.told.fetch_add(1, Ordering::Relaxed);
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        // A hint that is lost costs others some milliseconds.
        let _lost = utimensat(CWD, wal, &times, AtFlags::empty());
    }

    fn told(&self) -> u64 {
        self.told.load(Ordering::Relaxed)
    }
}

/// A thread that calls back when a file changes. Dropping it ends the thread.
pub(super) struct Watcher {
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Begins to watch a file that exists.
    pub(super) fn start(
        file: &Path,
        own: Arc<OwnCommits>,
        look: impl Fn() + Send + 'static,
    ) -> io::Result<Watcher> {
        let watch = Watch::of(file, own)?;
        let stop = Arc::clone(&watch.stop);
        // Here and not in the thread, which may run late: a commit in between is one's own.
        let own_before = watch.own.ended();
        let thread = std::thread::Builder::new()
            .name("windlass-watcher".to_owned())
            .spawn(move || watch.serve(own_before, look))?;
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

struct Watch {
    changes: OwnedFd,
    /// What is told, apart from the changes: these may come by the thousand, and all be one's own.
    words: OwnedFd,
    stop: Arc<OwnedFd>,
    own: Arc<OwnCommits>,
}

/// What a wait ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Changed,
    /// Somebody told that a commit can be seen.
    Committed,
    Quiet,
    Stopped,
}

impl Watch {
    fn of(file: &Path, own: Arc<OwnCommits>) -> io::Result<Watch> {
        let changes = events_of(file, WatchFlags::MODIFY)?;
        let words = events_of(file, WatchFlags::ATTRIB)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Watch { changes, words, stop, own })
    }

    fn serve(&self, mut own_before: u64, look: impl Fn()) {
        loop {
            let waited = self.wait(None);
            match waited {
                Waited::Changed | Waited::Committed => {}
                Waited::Quiet => continue,
                // Also when the kernel fails: the ticker is the net.
                Waited::Stopped => return,
            }
            let is_foreign = self.own.begun() == own_before;
            if is_foreign && waited == Waited::Committed {
                look();
            }
            let stopped = if is_foreign { self.look_often(&look) } else { self.look_later(&look) };
            if stopped {
                return;
            }
            // All changes of one's own commits up to here are seen. One that is going on may have changed nothing yet:
            // a large one computes for longer than it is looked.
            own_before = self.own.ended();
        }
    }

    /// Returns whether it was stopped.
    fn look_often(&self, look: &impl Fn()) -> bool {
        let (mut next, own_before) = (0, self.own.begun());
        while let Some(wait_ms) = LOOKS_MS.get(next) {
            next = match self.wait(Some(*wait_ms)) {
                Waited::Stopped => return true,
                Waited::Quiet => next + 1,
                Waited::Changed | Waited::Committed if next < AGAIN => next + 1,
                Waited::Changed | Waited::Committed => AGAIN,
            };
            look();
            if self.own.begun() != own_before {
                // Each change of one's own would wake this thread from now on.
                return self.look_later(look);
            }
        }
        false
    }

    /// Returns whether it was stopped.
    fn look_later(&self, look: &impl Fn()) -> bool {
        // Somebody else's change may be among one's own, and be seen only after its flush: it is looked again
        // until nothing has changed for a while.
        let clock = Clock::system();
        let (mut quiet_ms, mut looked_ms) = (0, clock.monotonic_ms());
        let mut told_before = self.own.told();
        while quiet_ms < OWN_MS {
            let mut is_told = false;
            match self.wait_for(Some(LOOK_MS), &[&self.words]) {
                Waited::Stopped => return true,
                Waited::Quiet | Waited::Changed => quiet_ms += LOOK_MS,
                Waited::Committed => {
                    quiet_ms = 0;
                    let told = self.own.told();
                    is_told = told == std::mem::replace(&mut told_before, told);
                    if !is_told {
                        // The next of one's own may follow at once, and wake this thread for nothing.
                        std::thread::sleep(Duration::from_millis(STEP_MS.unsigned_abs()));
                    }
                }
            }
            if self.heard(&self.changes).is_some() {
                quiet_ms = 0;
            }
            // While it changes; twice after the last change, which may have been on its way; and at the end.
            let is_due = clock.monotonic_ms() - looked_ms >= LOOK_MS && quiet_ms <= 2 * LOOK_MS;
            if is_told || is_due || quiet_ms >= OWN_MS {
                look();
                looked_ms = clock.monotonic_ms();
            }
        }
        false
    }

    /// Waits for a change or a word, for ever or so many milliseconds. What the changes are does not matter.
    fn wait(&self, longest_ms: Option<i64>) -> Waited {
        self.wait_for(longest_ms, &[&self.words, &self.changes])
    }

    fn wait_for(&self, longest_ms: Option<i64>, of: &[&OwnedFd]) -> Waited {
        let timeout = longest_ms.map(|longest_ms| Timespec { tv_sec: 0, tv_nsec: longest_ms * 1_000_000 });
        let mut files = vec![PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)];
        files.extend(of.iter().map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)));
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_broken) => return Waited::Stopped,
        }
        if !files[0].revents().is_empty() {
            return Waited::Stopped;
        }
        // Both are read, whatever is said first.
        let heard: Vec<Waited> = of.iter().filter_map(|file| self.heard(file)).collect();
        heard.first().copied().unwrap_or(Waited::Quiet)
    }

    /// Reads all that one of both files says, and tells what it was.
    fn heard(&self, file: &OwnedFd) -> Option<Waited> {
        let mut buffer = [const { MaybeUninit::uninit() }; 4_096];
        let mut events = inotify::Reader::new(file, &mut buffer);
        let mut heard = None;
        while let Ok(event) = events.next() {
            heard = Some(match event.events().contains(ReadFlags::ATTRIB) {
                true => Waited::Committed,
                false => Waited::Changed,
            });
        }
        heard
    }
}

fn events_of(file: &Path, what: WatchFlags) -> io::Result<OwnedFd> {
    let events = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    inotify::add_watch(&events, file, what)?;
    Ok(events)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    const SOON: Duration = Duration::from_secs(60);
    /// Twice on its way and once at the end.
    const LOOKS_AT_OWN: i32 = 3;

    fn watched() -> (tempfile::NamedTempFile, Arc<OwnCommits>, Watcher, Receiver<()>) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let (sender, looks) = channel();
        let own = Arc::new(OwnCommits::default());
        let look = move || {
            let _gone = sender.send(());
        };
        let watcher = Watcher::start(file.path(), Arc::clone(&own), look).expect("the kernel watches");
        (file, own, watcher, looks)
    }

    #[test]
    fn a_change_is_looked_at_until_its_commit_must_be_seen() {
        let (mut file, _own, watcher, looks) = watched();
        file.write_all(b"x").expect("it is written");
        for _ in LOOKS_MS {
            looks.recv_timeout(SOON).expect("a look");
        }
        file.write_all(b"x").expect("it is written");
        looks.recv_timeout(SOON).expect("a look at the next change");
        drop(watcher);
        while looks.recv().is_ok() {}
    }

    #[test]
    fn a_change_of_ones_own_is_looked_at_seldom() {
        let (mut file, own, watcher, looks) = watched();
        own.begin();
        file.write_all(b"x").expect("it is written");
        for _ in 0..LOOKS_AT_OWN {
            looks.recv_timeout(SOON).expect("a look");
        }
        drop(watcher);
        assert!(looks.recv().is_err(), "no further look, and the thread is gone");
    }

    #[test]
    fn a_commit_of_ones_own_that_changed_nothing_hides_no_change_of_others() {
        let (mut file, own, _watcher, looks) = watched();
        own.begin();
        own.was_empty();
        file.write_all(b"x").expect("it is written");
        for _ in LOOKS_MS {
            looks.recv_timeout(Duration::from_secs(5)).expect("a look at a change of somebody else");
        }
    }

    /// A commit of one's own that was looked at until nothing more was expected; `meanwhile` comes with the first look.
    fn after_one_of_ones_own(meanwhile: fn(&OwnCommits)) -> (tempfile::NamedTempFile, Watcher, Receiver<()>) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let (sender, looks) = channel();
        let own = Arc::new(OwnCommits::default());
        let (committed, is_first) = (Arc::clone(&own), AtomicBool::new(true));
        let look = move || {
            if is_first.swap(false, Ordering::Relaxed) {
                meanwhile(&committed);
            }
            let _gone = sender.send(());
        };
        let watcher = Watcher::start(file.path(), Arc::clone(&own), look).expect("the kernel watches");
        own.begin();
        file.write_all(b"x").expect("it is written");
        own.end();
        for _ in 0..LOOKS_AT_OWN {
            looks.recv_timeout(SOON).expect("a look");
        }
        (file, watcher, looks)
    }

    #[test]
    fn a_foreign_change_is_looked_at_often_also_after_several_of_ones_own() {
        // Another one, whose changes are seen together with the first one's.
        let (mut file, _watcher, looks) = after_one_of_ones_own(|own| {
            own.begin();
            own.end();
        });
        file.write_all(b"x").expect("it is written");
        for _ in LOOKS_MS {
            looks.recv_timeout(Duration::from_secs(5)).expect("a look at a change of somebody else");
        }
    }

    #[test]
    fn a_commit_of_ones_own_that_changes_something_late_is_not_taken_for_somebody_elses() {
        let (mut file, _watcher, looks) = after_one_of_ones_own(OwnCommits::begin);
        let clock = Clock::system();
        file.write_all(b"x").expect("it is written");
        let changed_ms = clock.monotonic_ms();
        for _ in 0..LOOKS_AT_OWN {
            looks.recv_timeout(SOON).expect("a look");
        }
        assert!(
            clock.monotonic_ms() - changed_ms >= OWN_MS - LOOK_MS,
            "the last look is the one after a while"
        );
    }

    #[test]
    fn what_others_tell_of_is_looked_at_at_once() {
        let (file, _own, _watcher, looks) = watched();
        OwnCommits::default().tell(file.path());
        for _ in 0..=LOOKS_MS.len() {
            looks.recv_timeout(SOON).expect("one more than after a change");
        }
    }

    #[test]
    fn what_others_tell_of_is_looked_at_soon_also_after_ones_own() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let watch = Watch::of(file.path(), Arc::default()).expect("the kernel watches");
        let looks = |watch: &Watch| {
            let looks = std::cell::Cell::new(0);
            assert!(!watch.look_later(&|| looks.set(looks.get() + 1)));
            looks.get()
        };
        file.write_all(b"x").expect("it is written");
        assert_eq!(looks(&watch), 1 + LOOKS_AT_OWN, "with the change, and as after one");
        OwnCommits::default().tell(file.path());
        assert_eq!(looks(&watch), LOOKS_AT_OWN + 1, "and at once when somebody else tells");
    }

    #[test]
    fn while_ones_own_changes_go_on_it_is_looked_at_again_and_again() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let watch = Watch::of(file.path(), Arc::default()).expect("the kernel watches");
        file.write_all(b"x").expect("it is written");
        let (looks, file) = (std::cell::Cell::new(0), std::cell::RefCell::new(file));
        // Each of the first looks is followed by another change.
        let changes = 5;
        watch.look_later(&|| {
            looks.set(looks.get() + 1);
            if looks.get() <= changes {
                file.borrow_mut().write_all(b"x").expect("it is written");
            }
        });
        // One look with each of them, the first included.
        assert_eq!(looks.get(), 1 + changes + LOOKS_AT_OWN);
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let own = Arc::new(OwnCommits::default());
        assert!(Watcher::start(Path::new("/nonexistent/wal"), own, || {}).is_err());
    }
}
