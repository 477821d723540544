//! The writer: the only connection of a process that writes to a SQLite file, with group commit.
//!
//! If no other thread writes, an operation runs and is committed in the thread of its caller. Otherwise one thread commits for
//! all that wait: see [`super::group_commit`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::group_commit::{GroupCommit, Leader, Request, drop_answered};
use super::open::companion_file;
use super::statements::Statements;
use super::transaction::{CommittedGroup, GroupTransaction};
use super::wal::Wal;
use super::watch::{Watcher, announce_commit};
use crate::error::Result;
use crate::{Fragment, WriteOperation};
use windlass_system::clock::Clock;
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

/// The writer of a database.
pub(super) struct Writer {
    // Dropped first, because its thread uses the state too.
    watcher: Mutex<Option<Watcher>>,
    group_commit: GroupCommit<WriteOperation>,
    /// The thread that holds the lock writes.
    state: Arc<Mutex<WriterState>>,
    /// The WAL file.
    wal: PathBuf,
    is_watching: Arc<AtomicBool>,
    /// The number of committed groups, without those that changed nothing.
    commits: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn new(
        connection: rusqlite::Connection,
        path: &Path,
        fragments: &'static [Fragment],
        wake_ups: WakeUpChannel,
    ) -> Writer {
        let is_watching = Arc::new(AtomicBool::new(false));
        let commits = Arc::new(AtomicU64::new(0));
        let state = WriterState {
            wal: Wal::of(path, &connection),
            connection,
            statements: Statements::new(fragments),
            wake_ups,
            clock: Clock::system(),
            data_version: 0,
            is_watching: Arc::clone(&is_watching),
            commits: Arc::clone(&commits),
        };
        Writer {
            watcher: Mutex::default(),
            group_commit: GroupCommit::new(),
            state: Arc::new(Mutex::new(state)),
            wal: companion_file(path, "-wal"),
            is_watching,
            commits,
        }
    }

    pub(super) fn write(&self, name: &'static str, operation: WriteOperation) -> Result<()> {
        self.group_commit.write(name, operation, |leader| self.commit(leader))
    }

    /// Commits a group and answers it.
    fn commit(&self, leader: Leader<'_, WriteOperation>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut group = leader.group();
        let began_us = state.clock.monotonic_us();
        let CommittedGroup { results, wake_ups } = state.commit(&mut group);
        let took_us = state.clock.monotonic_us() - began_us;
        let answered = leader.answer(group, results, took_us);
        state.wake_ups.publish(wake_ups);
        state.after_commit();
        drop(state);
        drop_answered(answered);
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> usize {
        self.group_commit.callers()
    }

    pub(super) fn watch(&self) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_some() {
            return;
        }
        let state = Arc::clone(&self.state);
        let check = move || match state.try_lock() {
            Ok(mut state) => state.notice_foreign_commits(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().notice_foreign_commits(),
            // The thread that is writing checks after its commit.
            Err(TryLockError::WouldBlock) => {}
        };
        self.is_watching.store(true, Ordering::Relaxed);
        *watcher = Watcher::start(&self.wal, check)
            .inspect_err(|error| tracing::warn!(%error, "commits of other processes may be seen late"))
            .ok();
    }
}

struct WriterState {
    // Dropped before the connection, so that the connection closes the file last and moves the log into it.
    wal: Wal,
    connection: rusqlite::Connection,
    statements: Statements,
    wake_ups: WakeUpChannel,
    clock: Clock,
    data_version: i64,
    is_watching: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
}

impl WriterState {
    /// Commits the first operations of the group, as many as fit into one transaction.
    fn commit(&mut self, group: &mut [Request<WriteOperation>]) -> CommittedGroup {
        let changes_before = self.connection.total_changes();
        let WriterState { connection, statements, clock, .. } = self;
        let committed =
            GroupTransaction { connection, statements, clock }.commit(group).unwrap_or_else(|error| {
                CommittedGroup { results: vec![Err(error); group.len()], wake_ups: WakeUps::NONE }
            });
        if self.connection.total_changes() != changes_before {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
        if committed.wake_ups.intersects(WakeUps::PENDING | WakeUps::DUE | WakeUps::CANCEL) {
            announce_commit(self.wal.file());
        }
        committed
    }

    /// To be called after each commit: requests a checkpoint if necessary, and notices commits of other processes.
    fn after_commit(&mut self) {
        self.wal.after_commit();
        self.notice_foreign_commits();
    }

    /// Publishes a wake-up if another process has committed. `data_version` changes only by commits of other connections.
    fn notice_foreign_commits(&mut self) {
        if !self.is_watching.load(Ordering::Relaxed) {
            return;
        }
        let version = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        // The next write would report the same error.
        if let Ok(version) = version
            && version != std::mem::replace(&mut self.data_version, version)
        {
            self.wake_ups.publish(WakeUps::FOREIGN);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;
    use windlass_system::wake_ups::WakeUpListener;

    /// A writer without events of the kernel, and another connection that writes.
    struct WatchedWriter {
        writer: Writer,
        other: rusqlite::Connection,
        listener: WakeUpListener,
        _folder: tempfile::TempDir,
    }

    impl WatchedWriter {
        fn new() -> WatchedWriter {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("some.db");
            let other = rusqlite::Connection::open(&file).unwrap();
            other.execute_batch("CREATE TABLE kept (id INTEGER)").unwrap();
            let wake_ups = WakeUpChannel::default();
            let listener = wake_ups.listen(WakeUps::FOREIGN);
            let connection = rusqlite::Connection::open(&file).unwrap();
            // No file has this name, so the kernel can't watch it.
            let writer = Writer::new(connection, Path::new("elsewhere"), &[], wake_ups);
            WatchedWriter { writer, other, listener, _folder: folder }
        }
    }

    #[test]
    fn commits_of_others_are_noticed_even_if_the_kernel_can_not_watch_the_file() {
        let WatchedWriter { writer, other, listener, _folder } = WatchedWriter::new();
        writer.watch();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the first look");
        other.execute("INSERT INTO kept VALUES (1)", []).unwrap();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the next commit");
    }

    #[test]
    fn commits_of_others_are_noticed_even_after_a_panic_in_the_writer() {
        let WatchedWriter { writer, other, listener, _folder } = WatchedWriter::new();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = writer.state.lock();
            std::panic::resume_unwind(Box::new("on purpose"));
        }));
        assert!(panicked.is_err() && writer.state.is_poisoned());
        writer.watch();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the first look");
        other.execute("INSERT INTO kept VALUES (1)", []).unwrap();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the next commit");
    }
}
