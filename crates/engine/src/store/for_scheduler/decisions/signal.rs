//! Jobs that send events.

use crate::decide::SentEvent;
use crate::store::events::insert_from_job;
use windlass_db::Connection;
use windlass_db::error::Result;

/// Sends the event of a job. The same transaction ends the job, and the id of the event is that of the job. So the event is
/// sent once, also if the job is executed again by a retry.
pub(super) fn send(
    connection: &mut dyn Connection,
    job_id: i64,
    event: &SentEvent,
    now_ms: i64,
) -> Result<()> {
    insert_from_job(connection, job_id, event, now_ms)
}
