//! Jobs that became ready in this transaction. The transaction claims them, or it releases them to all workers.

use crate::store::claim::partition::Candidate;
use crate::store::json_ids;
use windlass_db::Connection;
use windlass_db::error::Result;

/// A job whose last parent has ended. It stays BLOCKED until it is claimed or released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Ready {
    /// The run at the top of all calls.
    pub(in crate::store) root_run_id: Option<i64>,
    pub(in crate::store) candidate: Candidate,
}

/// Makes ready jobs claimable for all workers. A job that is no longer BLOCKED, because it was claimed, stays as it is.
pub(in crate::store) fn release(connection: &mut dyn Connection, ready: &[Ready], now_ms: i64) -> Result<()> {
    let ids: Vec<i64> = ready.iter().map(|ready| ready.candidate.position.id).collect();
    unblock(connection, &ids, now_ms)
}

/// Moves BLOCKED jobs on: with a concurrency key to WAITING for a slot, else to PENDING.
pub(in crate::store) fn unblock(connection: &mut dyn Connection, ids: &[i64], now_ms: i64) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    connection.execute_with_next(
        "UPDATE jobs
         SET blocked_by = 0,
             status = CASE WHEN concurrency_key IS NOT NULL THEN 'WAITING' ELSE 'PENDING' END,
             waits_for = CASE WHEN concurrency_key IS NOT NULL THEN 'slot' END,
             priority = {priority},
             updated_at = $2
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(ids)).into(), now_ms.into()],
    )
}
