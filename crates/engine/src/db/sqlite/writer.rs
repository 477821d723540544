//! The one connection of a process that writes to SQLite, with group commit.
//!
//! When nobody else writes, an operation is run and committed in its caller's own thread: handing it over and
//! back costs as much as a commit on a fast disk. Otherwise it waits for the writer's thread, which runs those
//! that are waiting inside one `BEGIN IMMEDIATE`, each in a savepoint so that one that fails hurts no other,
//! commits once, and answers everybody. While a commit waits for the disk the next group gathers: the slower
//! the disk, the larger the groups.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::connection::SqliteConnection;
use super::error::from_sqlite;
use super::statements::Statements;
use super::wal::{Wal, wal_of};
use super::watch::{OwnCommits, Watcher};
use crate::clock::Clock;
use crate::db::standing::{STANDING, StandingWrites};
use crate::db::{Standing, WriteOperation};
use crate::error::{Error, Result, Unavailable};
use crate::signal::{Hints, Signals};

/// Operations that wait at most; then callers wait for a place.
const QUEUE_MAX: usize = 1_024;
/// Operations in one transaction at most.
const GROUP_MAX: usize = 256;
/// After this time no operation joins a transaction any more: those done in it wait for its commit, and
/// so do other processes. One operation may take longer.
const GROUP_MAX_MS: i64 = 50;
/// A group waits for as many as the last one had, this part of the time that the last one took, …
const GATHER_PART: i64 = 2;
/// … and no longer than this.
const GATHER_MAX_US: i64 = 1_000;
/// How often an idle writer looks whether another process committed: the net under the kernel's word.
const WATCH_TICK_MS: u64 = 1_000;
/// The same where the kernel tells nothing.
const BLIND_TICK_MS: u64 = 10;

/// What the writer is told.
enum Message {
    Write(Request),
    /// Nothing: the writer is to look by itself from now on.
    Wake,
}

struct Request {
    name: &'static str,
    operation: WriteOperation,
    answer: SyncSender<Result<()>>,
}

/// The handle of the writer thread. Dropping it ends the thread after what is queued.
pub(super) struct Writer {
    /// Who holds it writes.
    state: Arc<Mutex<State>>,
    requests: Mutex<Option<SyncSender<Message>>>,
    /// The WAL file.
    wal: PathBuf,
    watcher: Mutex<Option<Watcher>>,
    /// How often it looks for foreign commits by itself; 0 is never.
    tick_ms: Arc<AtomicU64>,
    /// Groups that this writer has begun to commit.
    commits: Arc<OwnCommits>,
    waiting: AtomicUsize,
    standing: Arc<StandingWrites>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(connection: rusqlite::Connection, path: &Path, signals: Signals) -> Result<Writer> {
        let (requests, inbox) = sync_channel(QUEUE_MAX);
        let tick_ms = Arc::new(AtomicU64::new(0));
        let commits = Arc::new(OwnCommits::default());
        let standing = Arc::new(StandingWrites::default());
        let state = State {
            wal: Wal::of(path, &connection),
            connection,
            statements: Statements::default(),
            signals,
            clock: Clock::system(),
            data_version: 0,
            tick_ms: Arc::clone(&tick_ms),
            commits: Arc::clone(&commits),
            standing: Arc::clone(&standing),
        };
        let state = Arc::new(Mutex::new(state));
        let (served, tick) = (Arc::clone(&state), Arc::clone(&tick_ms));
        let thread = std::thread::Builder::new()
            .name("windlass-writer".to_owned())
            .spawn(move || serve(&served, &inbox, &tick))
            .map_err(|error| Error::internal("start the writer", error.to_string()))?;
        Ok(Writer {
            state,
            requests: Mutex::new(Some(requests)),
            wal: wal_of(path),
            watcher: Mutex::default(),
            tick_ms,
            commits,
            waiting: AtomicUsize::new(0),
            standing,
            thread: Some(thread),
        })
    }

    pub(super) fn write(&self, name: &'static str, operation: WriteOperation) -> Result<()> {
        let closed = || Error::unavailable(name, Unavailable::Closed);
        let (answer, answered) = sync_channel(1);
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let requests = requests.ok_or_else(closed)?;
        let request = Request { name, operation, answer };
        let is_alone = self.waiting.fetch_add(1, Ordering::Relaxed) == 0;
        let free = if is_alone { self.state.try_lock().ok() } else { None };
        let handed = match free {
            Some(mut state) => {
                state.commit(vec![request]);
                Ok(())
            }
            None => requests.send(Message::Write(request)),
        };
        let result =
            handed.map_err(|_gone| closed()).and_then(|()| answered.recv().map_err(|_gone| closed()));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result?
    }

    pub(super) fn write_with_next(&self, wants: Hints, operation: WriteOperation) -> Option<Standing> {
        self.standing.leave(wants, operation)
    }

    pub(super) fn standing(&self) -> usize {
        self.standing.len()
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.begun()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn watch(&self) {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if self.tick_ms.load(Ordering::Relaxed) > 0 {
            return;
        }
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(requests) = requests else { return };
        let started = Watcher::start(&self.wal, Arc::clone(&self.commits), {
            let state = Arc::clone(&self.state);
            move || {
                // Who writes now looks afterwards.
                if let Ok(mut state) = state.try_lock() {
                    state.notice_foreign_commits();
                }
            }
        });
        let tick_ms = match started {
            Ok(started) => {
                *watcher = Some(started);
                WATCH_TICK_MS
            }
            Err(error) => {
                tracing::debug!(%error, "the kernel does not watch the WAL; looking often instead");
                BLIND_TICK_MS
            }
        };
        self.tick_ms.store(tick_ms, Ordering::Relaxed);
        // Wakes a writer that sleeps without a tick.
        let _full_or_gone = requests.try_send(Message::Wake);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.watcher.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.requests.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

impl Message {
    fn request(self) -> Option<Request> {
        match self {
            Message::Write(request) => Some(request),
            Message::Wake => None,
        }
    }
}

/// What the writer's thread does until its handle is dropped.
fn serve(state: &Mutex<State>, inbox: &Receiver<Message>, tick_ms: &AtomicU64) {
    let clock = Clock::system();
    let mut last = Group { writes: 0, took_us: 0 };
    loop {
        let first = match tick_ms.load(Ordering::Relaxed) {
            0 => inbox.recv().map_err(|_closed| RecvTimeoutError::Disconnected),
            tick_ms => inbox.recv_timeout(Duration::from_millis(tick_ms)),
        };
        let mut group: Vec<Request> = match first {
            Ok(message) => message.request().into_iter().collect(),
            Err(RecvTimeoutError::Timeout) => Vec::new(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        if !group.is_empty() {
            gather(&mut group, inbox, last, &clock);
        }
        // While another thread commits, the group gathers.
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        group.extend(inbox.try_iter().take(GROUP_MAX - group.len()).filter_map(Message::request));
        let (writes, began_us) = (group.len(), clock.monotonic_us());
        state.commit(group);
        if writes > 0 {
            last = Group { writes, took_us: clock.monotonic_us() - began_us };
        }
    }
}

/// What the last group was.
#[derive(Clone, Copy)]
struct Group {
    writes: usize,
    took_us: i64,
}

/// Who was answered together writes again at the same time: the first of them waits a moment for the others, or
/// it would have a commit of its own, and all others the next one.
fn gather(group: &mut Vec<Request>, inbox: &Receiver<Message>, last: Group, clock: &Clock) {
    let until_us = clock.monotonic_us() + (last.took_us / GATHER_PART).min(GATHER_MAX_US);
    while group.len() < last.writes.min(GROUP_MAX) {
        let left_us = until_us - clock.monotonic_us();
        let Ok(left_us @ 1..) = u64::try_from(left_us) else { return };
        match inbox.recv_timeout(Duration::from_micros(left_us)) {
            Ok(message) => group.extend(message.request()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

struct State {
    // Dropped before the connection: who closes the file last moves the log into it, and that is the writer.
    wal: Wal,
    connection: rusqlite::Connection,
    statements: Statements,
    signals: Signals,
    clock: Clock,
    data_version: i64,
    tick_ms: Arc<AtomicU64>,
    commits: Arc<OwnCommits>,
    standing: Arc<StandingWrites>,
}

impl State {
    /// Commits all of these, and looks after what has to be looked after when something was.
    fn commit(&mut self, mut group: Vec<Request>) {
        while !group.is_empty() {
            group = self.commit_group(group);
            self.wal.after_commit(&self.connection, self.clock.monotonic_ms());
        }
        self.notice_foreign_commits();
    }

    /// `data_version` moves only for commits of other connections: the truth about other processes.
    fn notice_foreign_commits(&mut self) {
        if self.tick_ms.load(Ordering::Relaxed) == 0 {
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
            self.signals.publish(Hints::FOREIGN);
        }
    }

    /// Commits what can be done in one group's time and answers it; returns the rest.
    fn commit_group(&mut self, mut group: Vec<Request>) -> Vec<Request> {
        // Before anything is written: who watches the WAL must know whose change it sees.
        self.commits.begin();
        let changes_before = self.connection.total_changes();
        let (results, hints) = match self.run_group(&mut group) {
            Ok((results, hints)) => (results, hints),
            Err(error) => (vec![Err(error); group.len()], Hints::NONE),
        };
        if self.connection.total_changes() == changes_before {
            self.commits.was_empty();
        } else {
            self.commits.end();
        }
        if hints.intersects(Hints::PENDING | Hints::DUE | Hints::CANCEL) {
            self.commits.tell(self.wal.file());
        }
        let rest = group.split_off(results.len());
        for (request, result) in group.into_iter().zip(results) {
            // A caller that gave up waiting is no reason to stop.
            let _gone = request.answer.send(result);
        }
        self.signals.publish(hints);
        rest
    }

    /// Runs the operations from the first on in one transaction, and one that waited for it; a result for each of the
    /// group that was run.
    fn run_group(&mut self, group: &mut [Request]) -> Result<(Vec<Result<()>>, Hints)> {
        let State { connection, statements, clock, standing, .. } = self;
        if !connection.is_autocommit() {
            // Taking an earlier transaction back has failed: until that is done none can begin.
            run(connection, "ROLLBACK")?;
        }
        run(connection, "BEGIN IMMEDIATE")?;
        let began_ms = clock.monotonic_ms();
        let mut session = SqliteConnection::new(connection, statements);
        let isolation = if group.len() == 1 { Isolation::Alone } else { Isolation::Savepoint };
        let mut results = Vec::with_capacity(group.len());
        for Request { name, operation, .. } in group.iter_mut() {
            if !results.is_empty() && clock.monotonic_ms() - began_ms >= GROUP_MAX_MS {
                break;
            }
            results.push(run_operation(connection, &mut session, name, operation, isolation)?);
        }
        let due = if connection.is_autocommit() { None } else { standing.due(session.hints()) };
        let stood = match due {
            Some(mut due) => {
                let operation = &mut due.operation;
                let result =
                    run_operation(connection, &mut session, STANDING, operation, Isolation::Savepoint)?;
                Some((due, result))
            }
            None => None,
        };
        if !connection.is_autocommit()
            && let Err(error) = run(connection, "COMMIT")
        {
            // Not in the file for any other connection; a crash right now could still bring it back.
            // Guards on every transition make finding out and repeating harmless.
            let _ended = run(connection, "ROLLBACK");
            return Err(error);
        }
        if let Some((due, result)) = stood {
            due.end(result);
        }
        Ok((results, session.hints()))
    }
}

fn run(connection: &rusqlite::Connection, sql: &str) -> Result<usize> {
    connection
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute([]))
        .map_err(|error| from_sqlite("write to the database", &error))
}

/// What an operation that fails takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isolation {
    /// The whole transaction: there is nothing else in it.
    Alone,
    /// What it did itself.
    Savepoint,
}

/// Runs one operation of a transaction. The outer error is the transaction's: nothing of it exists then.
fn run_operation(
    connection: &rusqlite::Connection,
    session: &mut SqliteConnection<'_>,
    name: &'static str,
    operation: &mut WriteOperation,
    isolation: Isolation,
) -> Result<Result<()>> {
    if isolation == Isolation::Savepoint {
        run(connection, "SAVEPOINT operation")?;
    }
    let result = match catch_unwind(AssertUnwindSafe(|| operation(session))) {
        Ok(result) => result,
        Err(_panic) => Err(Error::internal(name, "the operation panicked")),
    };
    if connection.is_autocommit() {
        // SQLite took back the whole transaction (disk full, I/O error): nothing of it exists.
        return Err(result
            .err()
            .unwrap_or_else(|| Error::internal("write to the database", "the transaction ended by itself")));
    }
    let undone = match (&result, isolation) {
        (Ok(()), Isolation::Savepoint) => run(connection, "RELEASE operation"),
        (Err(_), Isolation::Savepoint) => {
            run(connection, "ROLLBACK TO operation").and_then(|_| run(connection, "RELEASE operation"))
        }
        (Ok(()), Isolation::Alone) => Ok(0),
        (Err(_), Isolation::Alone) => run(connection, "ROLLBACK"),
    };
    if let Err(error) = undone {
        let _ended = run(connection, "ROLLBACK");
        return Err(error);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn gathered(already: usize, waiting: usize, last: Group) -> usize {
        let (requests, inbox) = sync_channel(QUEUE_MAX);
        let request = || {
            let (answer, _answered) = sync_channel(1);
            Request { name: "nothing", operation: Box::new(|_connection| Ok(())), answer }
        };
        for _ in 0..waiting {
            requests.send(Message::Wake).unwrap();
            requests.send(Message::Write(request())).unwrap();
        }
        let mut group: Vec<Request> = (0..already).map(|_| request()).collect();
        gather(&mut group, &inbox, last, &Clock::system());
        group.len()
    }

    #[test]
    fn a_group_waits_for_as_many_as_the_last_one_had() {
        let long = i64::MAX;
        assert_eq!(gathered(1, 5, Group { writes: 1, took_us: long }), 1, "who wrote alone waits for nobody");
        assert_eq!(gathered(1, 5, Group { writes: 4, took_us: long }), 4);
        assert_eq!(gathered(1, 5, Group { writes: 4, took_us: 0 }), 1, "no longer than the last one took");
        assert_eq!(gathered(1, 2, Group { writes: 9, took_us: long }), 3, "and not for ever");
        assert_eq!(gathered(1, GROUP_MAX, Group { writes: 2 * GROUP_MAX, took_us: long }), GROUP_MAX);
    }

    #[test]
    fn a_transaction_that_could_not_be_taken_back_is_taken_back_later() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection
            .execute_batch("CREATE TABLE kept (id INTEGER); BEGIN; INSERT INTO kept VALUES (1)")
            .unwrap();
        let writer = Writer::start(connection, Path::new("in memory"), Signals::default()).unwrap();
        let insert = Box::new(|connection: &mut dyn crate::db::Connection| {
            connection.execute("INSERT INTO kept VALUES (2)", &[])?;
            let rows = crate::db::one(connection, "SELECT count(*) FROM kept", &[], |row| row.integer(0))?;
            assert_eq!(rows, 1, "nothing is left of the other one");
            Ok(())
        });
        assert_eq!(writer.write("insert", insert), Ok(()));
    }
}
