//! What the writer's statements cost, in units that do not depend on the machine: for tests that hold ceilings.
//!
//! SQLite calls a plain function whenever a statement of a traced connection ends. Only the writer's thread uses
//! the writer's connection, so what is counted lies in a variable of that thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::StatementStatus;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

/// What the writer of a database has done since it was opened.
#[derive(Debug, Default)]
pub struct Costs {
    statements: AtomicU64,
    vm_steps: AtomicU64,
}

impl Costs {
    /// Statements that ended, `BEGIN` and `COMMIT` among them.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Operations of SQLite's virtual machine in them: the same on every machine.
    #[must_use]
    pub fn vm_steps(&self) -> u64 {
        self.vm_steps.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Counting {
    costs: Arc<Costs>,
    /// SQLite counts the steps of a prepared statement from its preparation on.
    steps_before: HashMap<String, i32>,
}

thread_local! {
    static COUNTING: RefCell<Option<Counting>> = const { RefCell::new(None) };
}

/// Has the connection tell of every statement that ends.
pub(super) fn trace(connection: &rusqlite::Connection) {
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note));
}

/// Counts what connections of this thread tell from now on.
pub(super) fn count_on_this_thread(costs: Arc<Costs>) {
    COUNTING.set(Some(Counting { costs, steps_before: HashMap::new() }));
}

fn note(event: TraceEvent<'_>) {
    let TraceEvent::Profile(statement, _duration) = event else { return };
    COUNTING.with_borrow_mut(|counting| {
        let Some(Counting { costs, steps_before }) = counting else { return };
        let steps = statement.get_status(StatementStatus::VmStep);
        let before = steps_before.insert(statement.sql().into_owned(), steps).unwrap_or(0);
        // Fewer than before: it was prepared anew.
        let new = if steps >= before { steps - before } else { steps };
        costs.statements.fetch_add(1, Ordering::Relaxed);
        costs.vm_steps.fetch_add(u64::try_from(new).unwrap_or(0), Ordering::Relaxed);
    });
}
