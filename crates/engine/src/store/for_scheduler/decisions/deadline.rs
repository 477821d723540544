//! Writes the instants at which jobs that go on must be over.

use windlass_db::error::Result;
use windlass_db::{Connection, Value};
use windlass_system::wake_ups::WakeUps;

/// Begins the deadlines of jobs, given with their durations in milliseconds. A deadline begins once.
pub(super) fn begin(connection: &mut dyn Connection, deadlines: &[(i64, i64)], now_ms: i64) -> Result<()> {
    if deadlines.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 2]> =
        deadlines.iter().map(|(job_id, deadline_ms)| [(*job_id).into(), (*deadline_ms).into()]).collect();
    connection.execute(
        "UPDATE jobs SET deadline_at = $2 + news.deadline_ms
         FROM {rows $1: id integer, deadline_ms integer} AS news
         WHERE {by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'
           AND jobs.deadline_at IS NULL",
        &[Value::rows(&news), now_ms.into()],
    )?;
    connection.wake(WakeUps::DUE);
    Ok(())
}
