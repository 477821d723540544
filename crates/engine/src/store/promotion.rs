//! Promotion: the children of jobs that ended well have fewer parents to wait for, and those without any go on.
//!
//! A child that goes on waiting is changed by a statement that does not name its state: the state is in the
//! condition of every index that says who may be claimed, so naming it costs three times as much, and on a server a
//! new entry in the indexes that hold the row. Whoever promotes holds the run's lock, so what is read here is what
//! is changed; a child that another program has taken out of BLOCKED meanwhile is left to it.

use std::collections::BTreeMap;

use super::admission::admit;
use super::json_ids;
use crate::db::{Connection, Value};
use crate::error::Result;

/// A child that waits for parents, some of which ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    /// Parents that it waited for until now.
    blocked_by: i64,
    /// Parents that ended.
    ended: i64,
    concurrency_key: Option<String>,
}

/// What becomes of children, by their ids.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Promotion {
    /// They wait for others, by how many fewer.
    blocked: Vec<(i64, i64)>,
    /// They wait for nobody.
    ready: Vec<i64>,
    /// Those among these that may be claimed,
    claimable: Vec<i64>,
    /// and the concurrency keys that the others want a slot of.
    wanted_keys: Vec<String>,
}

/// Counts ended parents off their children; returns those that may be claimed by now. O(1) an edge.
pub(super) fn promote_children(
    connection: &mut dyn Connection,
    parents: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    if parents.is_empty() {
        return Ok(Vec::new());
    }
    let Promotion { blocked, ready, mut claimable, wanted_keys } = decide(children_of(connection, parents)?);
    count_off(connection, &blocked, now_ms)?;
    release(connection, &ready, now_ms)?;
    claimable.extend(admit(connection, &wanted_keys, now_ms)?);
    Ok(claimable)
}

fn children_of(connection: &mut dyn Connection, parents: &[i64]) -> Result<BTreeMap<i64, Child>> {
    let mut children: BTreeMap<i64, Child> = BTreeMap::new();
    connection.query(
        "SELECT edges.child_id, jobs.blocked_by, jobs.concurrency_key
         FROM job_dependencies AS edges CROSS JOIN jobs
         WHERE edges.parent_id {in $1} AND {by jobs.id = edges.child_id} AND {guard jobs.status = 'BLOCKED'}",
        &[(&json_ids(parents)).into()],
        &mut |row| {
            let child_id = row.integer(0)?;
            if let Some(child) = children.get_mut(&child_id) {
                child.ended += 1;
                return Ok(());
            }
            let child = Child { blocked_by: row.integer(1)?, ended: 1, concurrency_key: row.lossy_text(2)? };
            children.insert(child_id, child);
            Ok(())
        },
    )?;
    Ok(children)
}

fn decide(children: BTreeMap<i64, Child>) -> Promotion {
    let mut promotion = Promotion::default();
    for (child_id, child) in children {
        // What has lost count of its parents as well: the table refuses to count below nothing.
        if child.blocked_by != child.ended {
            promotion.blocked.push((child_id, child.ended));
            continue;
        }
        promotion.ready.push(child_id);
        match child.concurrency_key {
            Some(key) => promotion.wanted_keys.push(key),
            None => promotion.claimable.push(child_id),
        }
    }
    promotion
}

fn count_off(connection: &mut dyn Connection, blocked: &[(i64, i64)], now_ms: i64) -> Result<()> {
    if blocked.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 2]> =
        blocked.iter().map(|(child_id, ended)| [(*child_id).into(), (*ended).into()]).collect();
    connection.execute(
        "UPDATE jobs SET blocked_by = jobs.blocked_by - news.ended, updated_at = $2
         FROM {rows $1: id integer, ended integer} AS news
         WHERE {by jobs.id = news.id} AND {guard jobs.status = 'BLOCKED'}",
        &[Value::rows(&news), now_ms.into()],
    )?;
    Ok(())
}

fn release(connection: &mut dyn Connection, ready: &[i64], now_ms: i64) -> Result<()> {
    if ready.is_empty() {
        return Ok(());
    }
    connection.execute(
        "UPDATE jobs
         SET blocked_by = 0,
             status = CASE WHEN concurrency_key IS NOT NULL THEN 'WAITING' ELSE 'PENDING' END,
             priority = CASE WHEN queue IN (SELECT name FROM queues WHERE fifo = 1) THEN 0 ELSE priority END,
             updated_at = $2
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(ready)).into(), now_ms.into()],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_goes_on_when_it_waits_for_nobody() {
        let child = |blocked_by, ended, key: Option<&str>| Child {
            blocked_by,
            ended,
            concurrency_key: key.map(str::to_owned),
        };
        let children = BTreeMap::from([
            (1, child(3, 2, None)),
            (2, child(3, 3, None)),
            (3, child(1, 1, Some("k"))),
            (4, child(2, 1, Some("k"))),
            (5, child(0, 1, None)),
        ]);
        assert_eq!(
            decide(children),
            Promotion {
                blocked: vec![(1, 2), (4, 1), (5, 1)],
                ready: vec![2, 3],
                claimable: vec![2],
                wanted_keys: vec!["k".to_owned()],
            }
        );
    }
}
