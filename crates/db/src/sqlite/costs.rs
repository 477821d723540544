//! What the writer's statements cost, in units that do not depend on the machine: for tests that hold ceilings.
//!
//! SQLite calls a plain function whenever a statement of a traced connection ends, which knows nothing of where it is
//! called for. So one database of a process is counted at a time: the one that was opened last for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

static COUNTING: Mutex<Option<Counting>> = Mutex::new(None);

/// Counts what the statements of a connection cost from now on, and of no other one any more.
pub(super) fn count(connection: &rusqlite::Connection) -> Arc<Costs> {
    let counting = Counting::default();
    let costs = Arc::clone(&counting.costs);
    *COUNTING.lock().unwrap_or_else(PoisonError::into_inner) = Some(counting);
    connection.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, Some(note));
    costs
}

fn note(event: TraceEvent<'_>) {
    let TraceEvent::Profile(statement, _duration) = event else { return };
    let mut counting = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Counting { costs, steps_before }) = &mut *counting else { return };
    let steps = statement.get_status(StatementStatus::VmStep);
    let before = steps_before.insert(statement.sql().into_owned(), steps).unwrap_or(0);
    // Fewer than before: it was prepared anew.
    let new = if steps >= before { steps - before } else { steps };
    costs.statements.fetch_add(1, Ordering::Relaxed);
    costs.vm_steps.fetch_add(u64::try_from(new).unwrap_or(0), Ordering::Relaxed);
}
