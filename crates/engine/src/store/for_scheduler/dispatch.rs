//! Dispatching events: jobs that wait for one are decided, and triggers that take one start runs.
//!
//! One process at a time dispatches, in the order of the events.

use crate::decide::event_column;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::triggers::start::{Dispatched, PreparedStarts, TriggerInput};
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};
use windlass_system::wake_ups::WakeUps;

/// How many events one transaction dispatches.
const EVENTS_MAX: i64 = 100;
/// How many waiting jobs one transaction wakes.
const WAITERS_MAX: usize = 1_000;

/// An event that is not dispatched.
struct NewEvent {
    id: i64,
    name: String,
    key: String,
    /// Whether a trigger takes events of its name.
    has_triggers: bool,
}

impl ForScheduler<'_> {
    /// Dispatches events that are not dispatched, one batch of them. Returns whether it did anything. Call it again until it
    /// did nothing.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn dispatch_events(&self) -> Result<bool> {
        Ok(self.dispatch_new_events()?.has_dispatched)
    }

    /// The same, and returns the runs that were started.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn dispatch_new_events(&self) -> Result<Dispatched> {
        let events = self.store.read(new_events)?;
        if events.is_empty() {
            return Ok(Dispatched::default());
        }
        let starts = self.prepare_starts(&events)?;
        let now_ms = self.store.clock.now_ms();
        self.store.write("dispatch events", Evidence::Repeat, move |connection| {
            let is_locked = one(connection, "SELECT {try_lock 'events'}", &[], |row| row.integer(0))?;
            if is_locked == 0 {
                // Another process dispatches.
                return Ok(Dispatched::default());
            }
            dispatch(connection, &starts, now_ms)
        })
    }

    /// Decides what triggers make of events. Without triggers there is nothing to read.
    fn prepare_starts(&self, events: &[NewEvent]) -> Result<PreparedStarts> {
        let taken: Vec<i64> =
            events.iter().filter(|event| event.has_triggers).map(|event| event.id).collect();
        if taken.is_empty() {
            return Ok(PreparedStarts::default());
        }
        let inputs = self.store.read(|connection| trigger_inputs(connection, &taken))?;
        PreparedStarts::prepare(self.store, &inputs)
    }
}

fn new_events(connection: &mut dyn Connection) -> Result<Vec<NewEvent>> {
    all(
        connection,
        "SELECT id, name, event_key,
                CASE WHEN EXISTS (SELECT 1 FROM triggers WHERE triggers.event_name = events.name) THEN 1 ELSE 0 END
         FROM events WHERE dispatched_at IS NULL ORDER BY id LIMIT $1",
        &[EVENTS_MAX.into()],
        |row| {
            let text = |column| row.lossy_text(column).map(Option::unwrap_or_default);
            Ok(NewEvent { id: row.integer(0)?, name: text(1)?, key: text(2)?, has_triggers: row.integer(3)? == 1 })
        },
    )
}

fn trigger_inputs(connection: &mut dyn Connection, event_ids: &[i64]) -> Result<Vec<TriggerInput>> {
    all(
        connection,
        "SELECT id, name, event_key, payload, event_id, received_at, depth FROM events WHERE id {in $1} ORDER BY id",
        &[(&json_ids(event_ids)).into()],
        |row| {
            let text = |column| row.lossy_text(column).map(Option::unwrap_or_default);
            Ok(TriggerInput::Event {
                id: row.integer(0)?,
                name: text(1)?,
                key: text(2)?,
                payload: text(3)?,
                event_id: row.lossy_text(4)?,
                received_at: row.integer(5)?,
                depth: row.integer(6)?,
            })
        },
    )
}

fn dispatch(connection: &mut dyn Connection, starts: &PreparedStarts, now_ms: i64) -> Result<Dispatched> {
    let (mut dispatched, mut waiters, mut has_more) = (Vec::new(), Vec::new(), false);
    let mut started = Vec::new();
    for event in new_events(connection)? {
        let key = format!("event:{}", event.id);
        if event.has_triggers && !starts.has(&key) {
            // It came, or its trigger was registered, after the runs were prepared. The next transaction dispatches it.
            has_more = true;
            break;
        }
        let left = WAITERS_MAX - waiters.len();
        let found = waiters_of(connection, &event, left)?;
        let is_full = found.len() == left;
        waiters.extend(found);
        if is_full {
            // The next transaction wakes the others.
            break;
        }
        started.extend(starts.start(connection, &key, now_ms)?);
        dispatched.push(event.id);
    }
    wake(connection, &waiters, now_ms)?;
    connection.execute(
        "UPDATE events SET dispatched_at = $2 WHERE id {in $1} AND {guard dispatched_at IS NULL}",
        &[(&json_ids(&dispatched)).into(), now_ms.into()],
    )?;
    let has_dispatched = has_more || !dispatched.is_empty() || !waiters.is_empty();
    Ok(Dispatched { has_dispatched, started })
}

fn waiters_of(connection: &mut dyn Connection, event: &NewEvent, limit: usize) -> Result<Vec<i64>> {
    all(
        connection,
        "SELECT id FROM jobs
         WHERE event IS NOT NULL AND status = 'WAITING' AND waits_for = 'event' AND event = $1
         ORDER BY id LIMIT $2",
        &[(&event_column(&event.name, &event.key)).into(), (limit as i64).into()],
        |row| row.integer(0),
    )
}

/// Lets the scheduler decide about jobs that wait for an event.
fn wake(connection: &mut dyn Connection, job_ids: &[i64], now_ms: i64) -> Result<()> {
    if job_ids.is_empty() {
        return Ok(());
    }
    lock_runs_of(connection, job_ids)?;
    connection.execute(
        "UPDATE jobs SET waits_for = 'decision', updated_at = $2
         WHERE id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'event'",
        &[(&json_ids(job_ids)).into(), now_ms.into()],
    )?;
    connection.wake(WakeUps::DUE);
    Ok(())
}
