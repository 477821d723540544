//! The one connection of a process that writes to SQLite, with group commit.
//!
//! An operation is run and committed in its caller's own thread when nobody else writes; of several that wait one
//! thread commits for all ([`super::group_commit`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use super::group_commit::{GroupCommit, Leader, Request, drop_answered};
use super::statements::Statements;
use super::transaction::{Committed, Transactions};
use super::wal::{Wal, wal_of};
use super::watch::{Watcher, announce_commit};
use crate::error::Result;
use crate::{Fragment, WriteOperation};
use windlass_system::clock::Clock;
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

/// Writes in groups.
pub(super) struct Writer {
    // Dropped first: it holds the state as well.
    watcher: Mutex<Option<Watcher>>,
    group_commit: GroupCommit<WriteOperation>,
    /// Who holds it writes.
    state: Arc<Mutex<State>>,
    /// The WAL file.
    wal: PathBuf,
    is_watching: Arc<AtomicBool>,
    /// Groups that this writer has committed, without those that changed nothing.
    commits: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn over(
        connection: rusqlite::Connection,
        path: &Path,
        fragments: &'static [Fragment],
        wake_ups: WakeUpChannel,
    ) -> Writer {
        let is_watching = Arc::new(AtomicBool::new(false));
        let commits = Arc::new(AtomicU64::new(0));
        let state = State {
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
            wal: wal_of(path),
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
        let Committed { results, wake_ups } = state.commit(&mut group);
        let took_us = state.clock.monotonic_us() - began_us;
        let answered = leader.answer(group, results, took_us);
        state.wake_ups.publish(wake_ups);
        state.look_after();
        drop(state);
        drop_answered(answered);
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    pub(super) fn waiting(&self) -> usize {
        self.group_commit.inside()
    }

    pub(super) fn watch(&self) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_some() {
            return;
        }
        let state = Arc::clone(&self.state);
        let look = move || match state.try_lock() {
            Ok(mut state) => state.notice_foreign_commits(),
            Err(TryLockError::Poisoned(state)) => state.into_inner().notice_foreign_commits(),
            // The thread that is writing looks when it has committed.
            Err(TryLockError::WouldBlock) => {}
        };
        self.is_watching.store(true, Ordering::Relaxed);
        *watcher = Watcher::start(&self.wal, look)
            .inspect_err(|error| tracing::warn!(%error, "commits of other processes may be seen late"))
            .ok();
    }
}

struct State {
    // Dropped before the connection: who closes the file last moves the log into it, and that is the writer.
    wal: Wal,
    connection: rusqlite::Connection,
    statements: Statements,
    wake_ups: WakeUpChannel,
    clock: Clock,
    data_version: i64,
    is_watching: Arc<AtomicBool>,
    commits: Arc<AtomicU64>,
}

impl State {
    /// Commits what can be done in one group's time, from the first on.
    fn commit(&mut self, group: &mut [Request<WriteOperation>]) -> Committed {
        let changes_before = self.connection.total_changes();
        let State { connection, statements, clock, .. } = self;
        let committed =
            Transactions { connection, statements, clock }.commit(group).unwrap_or_else(|error| Committed {
                results: vec![Err(error); group.len()],
                wake_ups: WakeUps::NONE,
            });
        if self.connection.total_changes() != changes_before {
            self.commits.fetch_add(1, Ordering::Relaxed);
        }
        if committed.wake_ups.intersects(WakeUps::PENDING | WakeUps::DUE | WakeUps::CANCEL) {
            announce_commit(self.wal.file());
        }
        committed
    }

    /// Looks after what has to be looked after when something was committed.
    fn look_after(&mut self) {
        self.wal.after_commit();
        self.notice_foreign_commits();
    }

    /// `data_version` moves only for commits of other connections: the truth about other processes.
    fn notice_foreign_commits(&mut self) {
        if !self.is_watching.load(Ordering::Relaxed) {
            return;
        }
        let version = self
            .connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get::<_, i64>(0)));
        // An error here shows again, with an answer, at the next write.
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

    /// A writer that the kernel tells nothing, and somebody who writes beside it.
    struct Beside {
        writer: Writer,
        other: rusqlite::Connection,
        listener: WakeUpListener,
        _folder: tempfile::TempDir,
    }

    impl Beside {
        fn new() -> Beside {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("some.db");
            let other = rusqlite::Connection::open(&file).unwrap();
            other.execute_batch("CREATE TABLE kept (id INTEGER)").unwrap();
            let wake_ups = WakeUpChannel::default();
            let listener = wake_ups.listen(WakeUps::FOREIGN);
            let connection = rusqlite::Connection::open(&file).unwrap();
            // There is no log of this name.
            let writer = Writer::over(connection, Path::new("elsewhere"), &[], wake_ups);
            Beside { writer, other, listener, _folder: folder }
        }
    }

    #[test]
    fn others_are_heard_of_also_where_the_kernel_watches_no_file() {
        let Beside { writer, other, listener, _folder } = Beside::new();
        writer.watch();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the first look");
        other.execute("INSERT INTO kept VALUES (1)", []).unwrap();
        assert!(!listener.wait(Duration::from_secs(60)).is_empty(), "the next commit");
    }

    #[test]
    fn others_are_heard_of_also_after_a_panic_within_the_writer() {
        let Beside { writer, other, listener, _folder } = Beside::new();
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
