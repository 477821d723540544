//! Inserting the items of a group, in the transaction of the decision.

use super::WaitingJob;
use crate::decide::Control;
use crate::decide::for_each::Expansion;
use crate::store::finish::slots::admit;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Value, first};
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::limits;

/// After it has decided about so many items, a transaction leaves the other jobs to the next one.
pub(super) const TRANSACTION_ITEMS_MAX: usize = 10_000;
/// Items in one statement.
const CHUNK: usize = 2_000;

/// Makes a job a group, and inserts its items. The first of them can be claimed, and the others are BLOCKED until it is their
/// turn. The inner error is for people: the run would have too many jobs.
pub(super) fn insert_items(
    connection: &mut dyn Connection,
    job: &WaitingJob,
    expansion: &Expansion,
    random: &Random,
    now_ms: i64,
) -> Result<std::result::Result<(), String>> {
    let items = expansion.items.len() as i64;
    if !count_jobs(connection, job.run_id, items, now_ms)? {
        let reason = format!(
            "`for_each` gives {items} items, and its run would have more than {} jobs; let each item do more",
            limits::JOBS
        );
        return Ok(Err(reason));
    }
    let concurrency_key = make_group(connection, job.id, expansion, now_ms)?;
    insert_rows(connection, job.id, expansion, random, now_ms)?;
    admit(connection, &concurrency_key.into_iter().collect::<Vec<_>>(), now_ms)?;
    if expansion.control != Control::default() {
        connection.wake(WakeUps::DUE);
    }
    Ok(Ok(()))
}

/// Counts the items as jobs of the run. `false` if the run would have too many.
fn count_jobs(connection: &mut dyn Connection, run_id: Option<i64>, items: i64, now_ms: i64) -> Result<bool> {
    let counted = connection.execute(
        "UPDATE runs SET total_jobs = total_jobs + $2, unfinished_jobs = unfinished_jobs + $2, updated_at = $4
         WHERE id = $1 AND total_jobs + $2 <= $3",
        &[run_id.into(), items.into(), (limits::JOBS as i64).into(), now_ms.into()],
    )?;
    Ok(counted == 1)
}

/// Lets a job wait for its items. Returns the concurrency key of the items.
fn make_group(
    connection: &mut dyn Connection,
    job_id: i64,
    expansion: &Expansion,
    now_ms: i64,
) -> Result<Option<String>> {
    let group = first(
        connection,
        "UPDATE jobs
         SET waits_for = 'items', blocked_by = $2, max_parallel = $3, started_at = $4, updated_at = $4
         WHERE id = $1 AND {guard status = 'WAITING'} AND waits_for = 'decision'
         RETURNING concurrency_key",
        &[job_id.into(), (expansion.items.len() as i64).into(), expansion.max_parallel.into(), now_ms.into()],
        |row| row.lossy_text(0),
    )?;
    // The transaction has read the row under the lock of its run.
    group
        .ok_or_else(|| Error::internal("expand a job", format!("job j{job_id} does not wait for a decision")))
}

/// Everything but the item itself is copied from the row of the group.
fn insert_rows(
    connection: &mut dyn Connection,
    group_id: i64,
    expansion: &Expansion,
    random: &Random,
    now_ms: i64,
) -> Result<()> {
    let at_once = expansion.max_parallel.unwrap_or(i64::MAX);
    let control = match &expansion.control {
        control if *control == Control::default() => None,
        control => Some(
            serde_json::to_string(control)
                .map_err(|error| Error::internal("expand a job", error.to_string()))?,
        ),
    };
    let rows: Vec<[Value<'_>; 4]> = (0..)
        .zip(&expansion.items)
        .map(|(index, item)| {
            let waits: i64 = i64::from(index >= at_once);
            [Value::from(index), item.into(), random.token().into(), waits.into()]
        })
        .collect();
    for chunk in rows.chunks(CHUNK) {
        connection.execute(
            "INSERT INTO jobs (run_id, kind, name, queue, priority, payload, max_attempts, max_interruptions,
                               on_interrupt, allow_failure, retry, timeout_ms, requires, code_version, concurrency_key,
                               concurrency_limit, on_full, phase, handles, group_id, item, token,
                               root_run_id, blocked_by, control, definition, status, waits_for, execute_after, created_at,
                               updated_at)
             SELECT jobs.run_id, $3, jobs.name || '[' || news.item_index || ']', jobs.queue, jobs.priority,
                    jobs.payload, jobs.max_attempts, jobs.max_interruptions, jobs.on_interrupt, jobs.allow_failure,
                    jobs.retry, jobs.timeout_ms, jobs.requires, jobs.code_version, jobs.concurrency_key,
                    jobs.concurrency_limit, jobs.on_full, jobs.phase, jobs.handles, jobs.id,
                    '[' || news.item_index || ',' || news.item || ']', news.token, jobs.root_run_id, news.waits, CAST($4 AS TEXT),
                    jobs.definition, CASE WHEN news.waits = 1 THEN 'BLOCKED'
                         WHEN CAST($4 AS TEXT) IS NOT NULL OR jobs.concurrency_key IS NOT NULL THEN 'WAITING'
                         ELSE 'PENDING' END,
                    CASE WHEN news.waits = 1 THEN NULL
                         WHEN CAST($4 AS TEXT) IS NOT NULL THEN 'decision'
                         WHEN jobs.concurrency_key IS NOT NULL THEN 'slot' END,
                    $5, $5, $5
             FROM {rows $1: item_index integer, item text, token integer, waits integer} AS news
             CROSS JOIN jobs
             WHERE jobs.id = $2
             ORDER BY news.item_index",
            &[
                Value::rows(chunk),
                group_id.into(),
                (&expansion.kind).into(),
                (&control).into(),
                now_ms.into(),
            ],
        )?;
    }
    Ok(())
}
