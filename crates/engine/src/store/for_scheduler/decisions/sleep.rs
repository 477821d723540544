//! Writes the beginning of a sleep. The job is SCHEDULED like one that waits for its next attempt; when its time comes, it
//! waits for a decision again, which ends it.

use windlass_db::error::Result;
use windlass_db::{Connection, Value};
use windlass_system::wake_ups::WakeUps;

/// A job that begins to sleep.
pub(super) struct Sleeper {
    pub(super) job_id: i64,
    pub(super) until_ms: i64,
    /// How long it sleeps; `None` if a person named the instant.
    pub(super) delay_ms: Option<i64>,
}

pub(super) fn begin_sleeps(connection: &mut dyn Connection, sleepers: &[Sleeper], now_ms: i64) -> Result<()> {
    if sleepers.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 3]> = sleepers
        .iter()
        .map(|sleeper| [sleeper.job_id.into(), sleeper.until_ms.into(), sleeper.delay_ms.into()])
        .collect();
    connection.execute(
        "UPDATE jobs
         SET status = 'SCHEDULED', waits_for = NULL, execute_after = news.until_ms, delay_ms = news.delay_ms,
             started_at = $2, updated_at = $2
         FROM {rows $1: id integer, until_ms integer, delay_ms integer} AS news
         WHERE {by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'",
        &[Value::rows(&news), now_ms.into()],
    )?;
    connection.wake(WakeUps::DUE);
    Ok(())
}
