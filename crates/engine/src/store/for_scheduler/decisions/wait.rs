//! Reads and writes of jobs that wait for an event or for a person.

use windlass_db::error::Result;
use windlass_db::{Connection, Value, first};
use windlass_system::wake_ups::WakeUps;

use crate::decide::{MatchedEvent, Wait, event_column};

/// Finds the first event that a wait fits: one that came after the run at the top was created.
pub(super) fn find_event(
    connection: &mut dyn Connection,
    run_id: i64,
    name: &str,
    key: &str,
) -> Result<Option<MatchedEvent>> {
    first(
        connection,
        "SELECT event_key, payload, received_at FROM events
         WHERE name = $1 AND event_key = $2 AND id > (SELECT first_event_id FROM runs WHERE runs.id = $3)
         ORDER BY id LIMIT 1",
        &[name.into(), key.into(), run_id.into()],
        |row| {
            Ok(MatchedEvent {
                key: row.lossy_text(0)?.unwrap_or_default(),
                payload: row.lossy_text(1)?.unwrap_or_default(),
                received_at: row.integer(2)?,
            })
        },
    )
}

/// Lets jobs wait. A wait that has begun before keeps the time of its beginning.
pub(super) fn begin_waits(
    connection: &mut dyn Connection,
    waits: &[(i64, &Wait)],
    now_ms: i64,
) -> Result<()> {
    if waits.is_empty() {
        return Ok(());
    }
    let events: Vec<Option<String>> = waits
        .iter()
        .map(|(_job_id, wait)| {
            let name = wait.event_name.as_deref()?;
            Some(event_column(name, wait.event_key.as_deref().unwrap_or_default()))
        })
        .collect();
    let news: Vec<[Value<'_>; 5]> = waits
        .iter()
        .zip(&events)
        .map(|((job_id, wait), event)| {
            [
                (*job_id).into(),
                wait.waits_for.as_str().into(),
                event.into(),
                wait.deadline_at.into(),
                (&wait.payload).into(),
            ]
        })
        .collect();
    connection.execute(
        "UPDATE jobs
         SET waits_for = news.waits_for, event = news.event,
             wait_ends_at = news.wait_ends_at, payload = coalesce(news.payload, jobs.payload),
             started_at = coalesce(jobs.started_at, $2), updated_at = $2
         FROM {rows $1: id integer, waits_for text, event text, wait_ends_at integer,
                        payload text} AS news
         WHERE {by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'",
        &[Value::rows(&news), now_ms.into()],
    )?;
    if waits.iter().any(|(_job_id, wait)| wait.deadline_at.is_some()) {
        connection.wake(WakeUps::DUE);
    }
    Ok(())
}
