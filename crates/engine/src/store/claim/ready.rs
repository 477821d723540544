//! Jobs that became ready in this transaction: they are claimed by it, or made claimable for everybody.

use crate::store::claim::partition::Candidate;
use crate::store::json_ids;
use windlass_db::Connection;
use windlass_db::error::Result;

/// A child that waits for nobody any more, and is BLOCKED until it is taken or released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Ready {
    pub(in crate::store) run_id: Option<i64>,
    pub(in crate::store) candidate: Candidate,
}

/// Lets anybody claim what is ready. What was taken meanwhile is no longer BLOCKED, and stays as it is.
pub(in crate::store) fn release(connection: &mut dyn Connection, ready: &[Ready], now_ms: i64) -> Result<()> {
    let ids: Vec<i64> = ready.iter().map(|ready| ready.candidate.position.id).collect();
    unblock(connection, &ids, now_ms)
}

pub(in crate::store) fn unblock(connection: &mut dyn Connection, ids: &[i64], now_ms: i64) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    connection.execute_with_next(
        "UPDATE jobs
         SET blocked_by = 0,
             status = CASE WHEN concurrency_key IS NOT NULL THEN 'WAITING' ELSE 'PENDING' END,
             priority = {priority},
             updated_at = $2
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(ids)).into(), now_ms.into()],
    )
}
