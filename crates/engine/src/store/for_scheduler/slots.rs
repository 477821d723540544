//! Concurrency keys with waiting jobs: free slots are given to them, and jobs are skipped or cancelled if they ask
//! for that.

use crate::join_rule::EndColumns;
use crate::status::JobStatus;
use crate::store::cancel::cancel_job;
use crate::store::claim::ready::release;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::propagation::{Belonging, Ended, propagate};
use crate::store::finish::slots::{lock_key, make_pending, read_decision};
use crate::store::{ForScheduler, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, UpdateReturning, all, all_updated};
use windlass_system::wake_ups::WakeUps;

/// How many keys of each kind the scheduler handles in one step.
const KEYS_MAX: i64 = 200;

impl ForScheduler<'_> {
    /// Handles concurrency keys after `cursor` whose slots another transaction could not give away: gives free slots to
    /// waiting jobs, and skips or cancels jobs as their `on_full` says. Returns the last key handled, or an empty text
    /// after the last of all.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn admit_waiting(&self, cursor: &str) -> Result<String> {
        let (keys, next) = self.store.read(|connection| {
            let (mut keys, next) = keys_with_free_slots(connection, cursor)?;
            for key in keys_with_on_full(connection, cursor)? {
                if !read_decision(connection, &key)?.is_empty() {
                    keys.push(key);
                }
            }
            // A key may be in both lists.
            keys.sort_unstable();
            keys.dedup();
            Ok((keys, next))
        })?;
        let now_ms = self.store.clock.now_ms();
        for key in keys {
            self.store.write("admit jobs", Evidence::Repeat, move |connection| {
                carry_out(connection, &key, now_ms)
            })?;
        }
        Ok(next)
    }
}

/// Carries out the decision about one key, in a transaction of its own.
fn carry_out(connection: &mut dyn Connection, key: &str, now_ms: i64) -> Result<()> {
    if !lock_key(connection, key)? {
        connection.wake(WakeUps::DUE);
        return Ok(());
    }
    let decision = read_decision(connection, key)?;
    let ended: Vec<i64> = decision.skip.iter().chain(&decision.cancel).copied().collect();
    lock_runs_of(connection, &ended)?;
    skip(connection, &decision.skip, key, now_ms)?;
    for job_id in &decision.cancel {
        // A job that has ended in between has freed its slot already.
        match cancel_job(connection, *job_id, now_ms) {
            Ok(_cancelled) => {}
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error),
        }
    }
    if !make_pending(connection, &decision.admit, now_ms)?.is_empty() {
        connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    }
    Ok(())
}

static SKIP: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'SKIPPED'"),
        ("waits_for", "NULL"),
        ("last_error", "$2"),
        ("updated_at", "$3"),
        ("finished_at", "$3"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'WAITING'} AND waits_for = 'slot'",
    returning: &["id", "run_id", "name", "allow_failure", "group_id"],
};

fn skip(connection: &mut dyn Connection, ids: &[i64], key: &str, now_ms: i64) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let reason = format!("skipped: its concurrency key `{key}` had no free slot");
    let ended =
        all_updated(connection, &SKIP, &[(&json_ids(ids)).into(), (&reason).into(), now_ms.into()], |row| {
            Ok(Ended {
                job_id: row.integer(0)?,
                run_id: row.optional_integer(1)?,
                name: row.lossy_text(2)?,
                columns: EndColumns {
                    status: JobStatus::Skipped,
                    allow_failure: row.integer(3)? != 0,
                    upstream_failed: false,
                },
                belonging: Belonging::of(row.optional_integer(4)?),
            })
        })?;
    let propagated = propagate(connection, &ended, None, now_ms)?;
    // No job before it failed, so its children wait for a decision. Only the children of a group can be ready.
    release(connection, &propagated.promoted.ready, now_ms)?;
    connection.wake(WakeUps::PROGRESS | WakeUps::PENDING);
    Ok(())
}

/// Lists keys after the cursor that have a waiting job and a free slot, and returns where to continue.
fn keys_with_free_slots(connection: &mut dyn Connection, cursor: &str) -> Result<(Vec<String>, String)> {
    let keys = all(
        connection,
        "WITH RECURSIVE keys (name) AS (
             SELECT (SELECT concurrency_key FROM jobs
                     WHERE concurrency_key IS NOT NULL AND status = 'WAITING' AND waits_for = 'slot' AND concurrency_key > $1
                     ORDER BY concurrency_key LIMIT 1)
             UNION ALL
             SELECT (SELECT jobs.concurrency_key FROM jobs
                     WHERE jobs.concurrency_key IS NOT NULL AND jobs.status = 'WAITING' AND jobs.waits_for = 'slot'
                       AND jobs.concurrency_key > keys.name
                     ORDER BY jobs.concurrency_key LIMIT 1)
             FROM keys WHERE keys.name IS NOT NULL
         ),
         batch (name) AS MATERIALIZED (SELECT name FROM keys WHERE name IS NOT NULL LIMIT $2)
         SELECT name,
                (SELECT count(*) FROM jobs
                 WHERE concurrency_key IS NOT NULL AND concurrency_key = batch.name
                   AND status IN ('PENDING', 'RUNNING')),
                (SELECT coalesce(concurrency_limit, 1) FROM jobs
                 WHERE concurrency_key IS NOT NULL AND concurrency_key = batch.name AND status = 'WAITING'
                   AND waits_for = 'slot'
                 ORDER BY {rank}, id LIMIT 1)
         FROM batch ORDER BY name",
        &[cursor.into(), KEYS_MAX.into()],
        |row| Ok((row.lossy_text(0)?.unwrap_or_default(), row.integer(1)?, row.optional_integer(2)?)),
    )?;
    let next = match keys.last() {
        Some((name, _taken, _limit)) if keys.len() as i64 == KEYS_MAX => name.clone(),
        Some(_) | None => String::new(),
    };
    let with_free_slots = keys
        .into_iter()
        .filter(|(_name, taken, limit)| limit.is_some_and(|limit| *taken < limit))
        .map(|(name, _taken, _limit)| name)
        .collect();
    Ok((with_free_slots, next))
}

/// Lists keys of waiting jobs with another `on_full` than `wait`: the first keys of all, which mostly are all of them, and
/// the first ones after the cursor, so that every key has its turn.
fn keys_with_on_full(connection: &mut dyn Connection, cursor: &str) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    for after in ["", cursor] {
        // Steps from key to key with one seek each, because many jobs may wait for one key.
        keys.extend(all(
            connection,
            "WITH RECURSIVE keys (name) AS (
                 SELECT (SELECT concurrency_key FROM jobs
                         WHERE concurrency_key IS NOT NULL AND status = 'WAITING' AND waits_for = 'slot' AND on_full <> 'wait'
                           AND concurrency_key > $1
                         ORDER BY concurrency_key LIMIT 1)
                 UNION ALL
                 SELECT (SELECT jobs.concurrency_key FROM jobs
                         WHERE jobs.concurrency_key IS NOT NULL AND jobs.status = 'WAITING' AND jobs.waits_for = 'slot'
                           AND jobs.on_full <> 'wait' AND jobs.concurrency_key > keys.name
                         ORDER BY jobs.concurrency_key LIMIT 1)
                 FROM keys WHERE keys.name IS NOT NULL
             )
             SELECT name FROM keys WHERE name IS NOT NULL LIMIT $2",
            &[after.into(), KEYS_MAX.into()],
            |row| Ok(row.lossy_text(0)?.unwrap_or_default()),
        )?);
        if cursor.is_empty() {
            break;
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}
