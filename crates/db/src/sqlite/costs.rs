//! Counts what the statements of the writer cost, independently of the machine. For tests that limit the costs.
//!
//! SQLite calls a plain function when a statement of a traced connection ends, and does not tell it which connection that
//! is. So only one database of a process is counted at a time: the one that was opened last by
//! [`super::SqliteDatabase::open_counted`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::StatementStatus;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

/// The costs of a database's writer since the database was opened.
#[derive(Debug, Default)]
pub struct StatementCosts {
    statements: AtomicU64,
    vm_steps: AtomicU64,
}

impl StatementCosts {
    /// The number of statements, including `BEGIN` and `COMMIT`.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// The number of operations of SQLite's virtual machine in these statements. It is the same on every machine.
    #[must_use]
    pub fn vm_steps(&self) -> u64 {
        self.vm_steps.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct CountedConnection {
    costs: Arc<StatementCosts>,
    /// The steps of each statement so far. SQLite counts them from the preparation of the statement.
    steps_before: HashMap<String, i32>,
}

static COUNTED: Mutex<Option<CountedConnection>> = Mutex::new(None);

/// Counts the costs of a connection's statements from now on, and stops counting for another connection.
pub(super) fn count(connection: &rusqlite::Connection) -> Arc<StatementCosts> {
    let counted = CountedConnection::default();
    let costs = Arc::clone(&counted.costs);
    *COUNTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(counted);
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(count_statement));
    costs
}

fn count_statement(event: TraceEvent<'_>) {
    let TraceEvent::Profile(statement, _duration) = event else { return };
    let mut counted = COUNTED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(CountedConnection { costs, steps_before }) = &mut *counted else { return };
    let steps = statement.get_status(StatementStatus::VmStep);
    let before = steps_before.insert(statement.sql().into_owned(), steps).unwrap_or(0);
    // Fewer than before means that it was prepared again.
    let new = if steps >= before { steps - before } else { steps };
    costs.statements.fetch_add(1, Ordering::Relaxed);
    costs.vm_steps.fetch_add(u64::try_from(new).unwrap_or(0), Ordering::Relaxed);
}
