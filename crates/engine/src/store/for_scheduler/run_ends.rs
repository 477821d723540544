//! Ends of runs, for the triggers that take them.
//!
//! The transaction that ends a run writes a row of `run_ends` if there is such a trigger. It holds locks of runs, so it must
//! not take that of the event counter, and ends are no events. A row is deleted in the transaction that starts what it starts.

use crate::status::RunStatus;
use crate::store::ForScheduler;
use crate::store::evidence::Evidence;
use crate::store::triggers::start::{Dispatched, PreparedStarts, TriggerInput};
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};

/// How many ends one transaction dispatches.
const ENDS_MAX: i64 = 100;

impl ForScheduler<'_> {
    /// Starts what ends of runs start, one batch of them. Returns whether it did anything. Call it again until it did nothing.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn dispatch_run_ends(&self) -> Result<bool> {
        Ok(self.dispatch_new_run_ends()?.has_dispatched)
    }

    /// The same, and returns the runs that were started.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn dispatch_new_run_ends(&self) -> Result<Dispatched> {
        let ends = self.store.read(new_ends)?;
        if ends.is_empty() {
            return Ok(Dispatched::default());
        }
        let starts = PreparedStarts::prepare(self.store, &ends)?;
        let now_ms = self.store.clock.now_ms();
        self.store.write("dispatch the ends of runs", Evidence::Repeat, move |connection| {
            if one(connection, "SELECT {try_lock 'events'}", &[], |row| row.integer(0))? == 0 {
                // Another process dispatches.
                return Ok(Dispatched::default());
            }
            dispatch(connection, &ends, &starts, now_ms)
        })
    }
}

fn new_ends(connection: &mut dyn Connection) -> Result<Vec<TriggerInput>> {
    all(
        connection,
        "SELECT run_ends.run_id, run_ends.workflow, run_ends.status, run_ends.finished_at,
                coalesce((SELECT depth FROM triggered_runs WHERE triggered_runs.run_id = run_ends.run_id), 0)
         FROM run_ends ORDER BY run_ends.finished_at, run_ends.run_id LIMIT $1",
        &[ENDS_MAX.into()],
        |row| {
            Ok(TriggerInput::RunEnd {
                run_id: row.integer(0)?,
                workflow: row.lossy_text(1)?.unwrap_or_default(),
                status: row.parsed(2, RunStatus::parse)?,
                finished_at: row.integer(3)?,
                depth: row.integer(4)?,
            })
        },
    )
}

fn dispatch(
    connection: &mut dyn Connection,
    ends: &[TriggerInput],
    starts: &PreparedStarts,
    now_ms: i64,
) -> Result<Dispatched> {
    let mut dispatched = Dispatched::default();
    for end in ends {
        let TriggerInput::RunEnd { run_id, finished_at, .. } = end else { continue };
        let key = end.key();
        if !starts.has(&key) {
            // There was much to insert. The next transaction goes on here.
            break;
        }
        let deleted = connection.execute(
            "DELETE FROM run_ends WHERE finished_at = $1 AND run_id = $2",
            &[(*finished_at).into(), (*run_id).into()],
        )?;
        // Otherwise another scheduler has dispatched it.
        if deleted == 1 {
            dispatched.started.extend(starts.start(connection, &key, now_ms)?);
            dispatched.has_dispatched = true;
        }
    }
    Ok(dispatched)
}
