//! What can be claimed, in the order of claiming.
//!
//! A *lane* is a part of the claim index that is in claiming order by itself: one queue and kind, or
//! one run. The heads of all lanes are compared, and lanes are read from the most urgent head on, until
//! no head is left that could come before what was found. So the most urgent jobs are found in any
//! number of lanes, and only lanes that give something are read past their head.

use super::claim::{CLAIM_MAX, ClaimRequest, Scope};
use super::json_rows;
use crate::db::{Connection, Row, all, first};
use crate::error::Result;

/// A job's place in the order of claiming.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    negated_priority: i64,
    execute_after: i64,
    pub(super) id: i64,
}

/// The most urgent claimable jobs, kept from other transactions, over all lanes of the request.
pub(super) fn places(connection: &mut dyn Connection, request: &ClaimRequest) -> Result<Vec<Place>> {
    let limit = request.limit.min(CLAIM_MAX);
    match &request.scope {
        Scope::Everything => lane_places(connection, None, &request.kinds, limit),
        Scope::Queues(queues) => lane_places(connection, Some(queues), &request.kinds, limit),
        Scope::Runs(run_ids) => run_places(connection, run_ids, &request.kinds, limit),
    }
}

/// Whether there is anything to claim. Locks nothing.
pub(super) fn has_places(connection: &mut dyn Connection, request: &ClaimRequest) -> Result<bool> {
    match &request.scope {
        Scope::Everything => Ok(!lane_heads(connection, None, &request.kinds)?.is_empty()),
        Scope::Queues(queues) => Ok(!lane_heads(connection, Some(queues), &request.kinds)?.is_empty()),
        Scope::Runs(run_ids) => {
            let kinds = json_rows("look for jobs", &request.kinds)?;
            for run_id in run_ids {
                let found = first(
                    connection,
                    "SELECT 1 FROM jobs
                     WHERE status = 'PENDING' AND run_id IS NOT NULL AND run_id = $1
                       AND kind IN (SELECT value FROM {texts $2} AS kinds)
                       AND queue NOT IN (SELECT name FROM queues WHERE paused_at IS NOT NULL)
                     ORDER BY priority DESC, execute_after, id LIMIT 1",
                    &[(*run_id).into(), (&kinds).into()],
                    |row| row.integer(0),
                )?;
                if found.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

fn lane_places(
    connection: &mut dyn Connection,
    queues: Option<&Vec<String>>,
    kinds: &[String],
    limit: usize,
) -> Result<Vec<Place>> {
    let mut places: Vec<Place> = Vec::new();
    for head in lane_heads(connection, queues, kinds)? {
        if places.len() >= limit && places.last().is_some_and(|last| *last < head) {
            break;
        }
        // The lane is named by its head: its texts need not be read.
        connection.query(
            "SELECT id, priority, execute_after FROM jobs
             WHERE status = 'PENDING' AND queue = (SELECT queue FROM jobs WHERE id = $1)
               AND kind = (SELECT kind FROM jobs WHERE id = $1)
             ORDER BY priority DESC, execute_after, id LIMIT $2 {lock}",
            &[head.id.into(), (limit as i64).into()],
            &mut |row| {
                places.push(read_place(row)?);
                Ok(())
            },
        )?;
        keep_first(&mut places, limit);
    }
    Ok(places)
}

/// The head of each lane, the most urgent first.
fn lane_heads(
    connection: &mut dyn Connection,
    queues: Option<&Vec<String>>,
    kinds: &[String],
) -> Result<Vec<Place>> {
    let kinds = json_rows("claim jobs", kinds)?;
    let queues = queues.map(|queues| json_rows("claim jobs", queues)).transpose()?;
    // Steps from queue to queue by one seek each, never over the rows of a queue.
    let mut heads = all(
        connection,
        "WITH RECURSIVE waiting (queue) AS (
             SELECT (SELECT queue FROM jobs WHERE status = 'PENDING' ORDER BY queue LIMIT 1)
             UNION ALL
             SELECT (SELECT jobs.queue FROM jobs
                     WHERE jobs.status = 'PENDING' AND jobs.queue > waiting.queue
                     ORDER BY jobs.queue LIMIT 1)
             FROM waiting WHERE waiting.queue IS NOT NULL
         ),
         heads (id) AS MATERIALIZED (
             SELECT (SELECT jobs.id FROM jobs
                     WHERE jobs.status = 'PENDING' AND jobs.queue = waiting.queue
                       AND jobs.kind = kinds.value
                     ORDER BY jobs.priority DESC, jobs.execute_after, jobs.id LIMIT 1)
             FROM waiting CROSS JOIN {texts $1} AS kinds
             WHERE waiting.queue IS NOT NULL
               AND waiting.queue NOT IN (SELECT name FROM queues WHERE paused_at IS NOT NULL)
               AND (CAST($2 AS TEXT) IS NULL OR waiting.queue IN (SELECT value FROM {texts $2} AS wanted))
         )
         SELECT heads.id, (SELECT priority FROM jobs WHERE jobs.id = heads.id),
                (SELECT execute_after FROM jobs WHERE jobs.id = heads.id)
         FROM heads WHERE heads.id IS NOT NULL",
        &[(&kinds).into(), (&queues).into()],
        read_place,
    )?;
    heads.sort_unstable();
    Ok(heads)
}

fn run_places(
    connection: &mut dyn Connection,
    run_ids: &[i64],
    kinds: &[String],
    limit: usize,
) -> Result<Vec<Place>> {
    let kinds = json_rows("claim jobs", kinds)?;
    let mut places = Vec::new();
    for run_id in run_ids {
        connection.query(
            "SELECT id, priority, execute_after FROM jobs
             WHERE status = 'PENDING' AND run_id IS NOT NULL AND run_id = $1
               AND kind IN (SELECT value FROM {texts $2} AS kinds)
               AND queue NOT IN (SELECT name FROM queues WHERE paused_at IS NOT NULL)
             ORDER BY priority DESC, execute_after, id LIMIT $3 {lock}",
            &[(*run_id).into(), (&kinds).into(), (limit as i64).into()],
            &mut |row| {
                places.push(read_place(row)?);
                Ok(())
            },
        )?;
        keep_first(&mut places, limit);
    }
    Ok(places)
}

/// Two sorted stretches become one: the sort that keeps equal items in order merges them.
fn keep_first(places: &mut Vec<Place>, limit: usize) {
    places.sort();
    places.truncate(limit);
}

fn read_place(row: &dyn Row) -> Result<Place> {
    Ok(Place {
        negated_priority: row.integer(1)?.saturating_neg(),
        execute_after: row.integer(2)?,
        id: row.integer(0)?,
    })
}
