//! Events: signals that other programs and people send, which end waits.
//!
//! An event gets its number from the row of `event_counter`, which stays locked until the event is committed. So events are
//! committed in the order of their numbers, and a run that notes the last number when it is created misses no event that
//! was answered later. A decision about a wait holds the same lock, so no event is committed between its look and its write.

use crate::decide::SentEvent;
use crate::store::Events;
use crate::store::evidence::Evidence;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, first, one};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::limits;

/// A signal to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// The name of the event.
    pub name: String,
    /// Its key.
    pub key: Option<String>,
    /// Its payload, as JSON.
    pub payload: String,
    /// The sender's id. A second signal with the same id changes nothing.
    pub event_id: Option<String>,
}

/// What a signal did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signalled {
    /// The number of the event.
    pub id: i64,
    /// Whether it was received now. Otherwise a signal with the same id was received before.
    pub created: bool,
}

impl Events<'_> {
    /// Receives a signal. Once this returns, the event survives any crash, and every run that exists now can wait for it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a text is too long or the payload is no JSON; and the database's.
    pub fn signal(&self, signal: NewSignal) -> Result<Signalled> {
        check(&signal).map_err(|reason| Error::invalid("send a signal", reason))?;
        let now_ms = self.store.clock.now_ms();
        self.store
            .write("send a signal", Evidence::Token, move |connection| insert(connection, &signal, 0, now_ms))
    }
}

impl Events<'_> {
    /// The event with this number, without the id of its sender.
    ///
    /// # Errors
    /// The database's.
    pub fn get(&self, number: i64) -> Result<Option<NewSignal>> {
        let sql = "SELECT name, event_key, payload FROM events WHERE id = $1";
        self.store.read(|connection| {
            first(connection, sql, &[number.into()], |row| {
                let (name, key, payload) = (row.text(0)?, row.optional_text(1)?, row.text(2)?);
                Ok(NewSignal { name, key, payload, event_id: None })
            })
        })
    }

    /// The name of the event that was received with this id of its sender.
    ///
    /// # Errors
    /// The database's.
    pub fn name_of(&self, event_id: &str) -> Result<Option<String>> {
        let sql = "SELECT name FROM events WHERE event_id = $1";
        self.store.read(|connection| first(connection, sql, &[event_id.into()], |row| row.text(0)))
    }
}

fn check(signal: &NewSignal) -> std::result::Result<(), String> {
    let NewSignal { name, key, payload, event_id } = signal;
    windlass_workflow::check_event_name(name)?;
    for (text, what) in [(key, "the key"), (event_id, "the id")] {
        let bytes = text.as_ref().map_or(0, String::len);
        if bytes > limits::EVENT_KEY_BYTES {
            return Err(format!("{what} has {bytes} bytes; the limit is {}", limits::EVENT_KEY_BYTES));
        }
    }
    if payload.len() > limits::EVENT_PAYLOAD_BYTES {
        let (bytes, limit) = (payload.len(), limits::EVENT_PAYLOAD_BYTES);
        return Err(format!("the payload has {bytes} bytes; the limit is {limit}"));
    }
    serde_json::from_str::<serde_json::Value>(payload)
        .map(drop)
        .map_err(|error| format!("the payload is no JSON: {error}"))
}

fn insert(connection: &mut dyn Connection, signal: &NewSignal, depth: i64, now_ms: i64) -> Result<Signalled> {
    if let Some(id) = known(connection, signal)? {
        return Ok(Signalled { id, created: false });
    }
    let number = next_number(connection)?;
    let inserted = connection.execute(
        "INSERT INTO events (id, name, event_key, payload, event_id, received_at, depth)
         VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (event_id) DO NOTHING",
        &[
            number.into(),
            (&signal.name).into(),
            signal.key.as_deref().unwrap_or_default().into(),
            (&signal.payload).into(),
            (&signal.event_id).into(),
            now_ms.into(),
            depth.into(),
        ],
    )?;
    if inserted == 1 {
        connection.wake(WakeUps::DUE);
        return Ok(Signalled { id: number, created: true });
    }
    // Another transaction was faster.
    let id = known(connection, signal)?
        .ok_or_else(|| Error::internal("send a signal", "the event with its id was not found"))?;
    Ok(Signalled { id, created: false })
}

/// Inserts the event that a job sends. The caller has locked the events. Its id is the idempotency key of the job: a second one
/// changes nothing. The event notes how many runs of triggers have started each other up to the run of the job.
pub(in crate::store) fn insert_from_job(
    connection: &mut dyn Connection,
    job_id: i64,
    event: &SentEvent,
    now_ms: i64,
) -> Result<()> {
    let (event_id, depth) = one(
        connection,
        "SELECT 'job:' || created_at || '-' || token,
                coalesce((SELECT depth FROM triggered_runs
                          WHERE triggered_runs.run_id = coalesce(jobs.root_run_id, jobs.run_id)), 0)
         FROM jobs WHERE id = $1",
        &[job_id.into()],
        |row| Ok((row.text(0)?, row.integer(1)?)),
    )?;
    let SentEvent { name, key, payload } = event;
    let signal = NewSignal {
        name: name.clone(),
        key: Some(key.clone()),
        payload: payload.clone(),
        event_id: Some(event_id),
    };
    insert(connection, &signal, depth, now_ms).map(drop)
}

/// Finds the event that was received with the same id.
fn known(connection: &mut dyn Connection, signal: &NewSignal) -> Result<Option<i64>> {
    let Some(event_id) = &signal.event_id else { return Ok(None) };
    let sql = "SELECT id FROM events WHERE event_id = $1";
    first(connection, sql, &[event_id.into()], |row| row.integer(0))
}

/// The number of the next event. Locks the counter until the transaction ends.
fn next_number(connection: &mut dyn Connection) -> Result<i64> {
    one(
        connection,
        "INSERT INTO event_counter (id, last) VALUES (1, 1)
         ON CONFLICT (id) DO UPDATE SET last = event_counter.last + 1 RETURNING last",
        &[],
        |row| row.integer(0),
    )
}

/// Locks the counter, so that no event is committed before this transaction ends. It comes before the locks of runs.
pub(in crate::store) fn lock_events(connection: &mut dyn Connection) -> Result<()> {
    connection.execute(
        "INSERT INTO event_counter (id, last) VALUES (1, 0)
         ON CONFLICT (id) DO UPDATE SET last = event_counter.last",
        &[],
    )?;
    Ok(())
}
