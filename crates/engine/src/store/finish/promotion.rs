//! Promotion: the children of jobs that ended well have fewer parents to wait for, and those without any go on.
//!
//! A child that goes on waiting is changed by a statement that does not name its state: the state is in the
//! condition of every index that says who may be claimed, so naming it costs three times as much, and on a server a
//! new entry in the indexes that hold the row. Whoever promotes holds the run's lock, so what is read here is what
//! is changed; a child that another program has taken out of BLOCKED meanwhile is left to it.
//!
//! A child that is ready is handed to the claim that follows in the same transaction. What this one takes goes from
//! BLOCKED to RUNNING in one change, and PENDING, where nobody could have seen it, is left out.

use crate::store::claim::partition::{Candidate, ClaimPartition, read_position};
use crate::store::claim::ready::Ready;
use crate::store::claim::ready::unblock;
use crate::store::finish::slots::admit;
use std::rc::Rc;
use windlass_db::Connection;
use windlass_db::Row;
use windlass_db::Value;
use windlass_db::error::Result;

/// What is ready after some parents ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::store) struct Promoted {
    /// May be claimed by anybody.
    pub(in crate::store) claimable: Vec<i64>,
    /// May be claimed at once by this transaction, which releases what it does not take.
    pub(in crate::store) ready: Vec<Ready>,
}

/// A child that waits for parents, some of which ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    /// Parents that it waited for until now.
    blocked_by: i64,
    /// Parents that ended.
    ended: i64,
    concurrency_key: Option<String>,
    run_id: Option<i64>,
    candidate: Candidate,
}

/// What becomes of children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Decision {
    /// They wait for others, by how many fewer.
    blocked: Vec<(i64, i64)>,
    /// They wait for nobody, but for a slot of these keys.
    waiting: Vec<i64>,
    wanted_keys: Vec<String>,
    /// They wait for nobody.
    ready: Vec<Ready>,
}

/// Finds the children of parents that ended, which [`Children`] reads. Edges are counted before their children are
/// read: a row of `jobs` is wide, and a child of a layer is found by several edges. Where no queue has rules, which
/// is asked once, none is looked for by its name.
pub(in crate::store) const CHILDREN: &str =
    "SELECT jobs.id, {rank}, jobs.queue, jobs.kind, jobs.requires, jobs.version,
                CASE WHEN EXISTS (SELECT 1 FROM queues WHERE {ruled})
                      AND jobs.queue IN (SELECT name FROM queues WHERE {ruled}) THEN 1 ELSE 0 END,
                jobs.blocked_by, jobs.concurrency_key, jobs.run_id, children.ended
         FROM (SELECT edges.child_id, count(*) AS ended
               FROM {rows $1: id integer} AS parents CROSS JOIN job_dependencies AS edges
               WHERE {by edges.parent_id = parents.id} GROUP BY edges.child_id) AS children
         CROSS JOIN jobs
         WHERE {by jobs.id = children.child_id} AND {guard jobs.status = 'BLOCKED'}";

/// The children of parents that ended.
#[derive(Default)]
pub(in crate::store) struct Children {
    children: Vec<Child>,
    /// Of the child that was read last: that of the next one is mostly the same.
    partition: Option<Rc<ClaimPartition>>,
}

impl Children {
    /// Reads one of them.
    pub(in crate::store) fn read(&mut self, row: &dyn Row) -> Result<()> {
        let partition = match &self.partition {
            Some(partition) if partition.is_of(row) => Rc::clone(partition),
            Some(_) | None => Rc::new(ClaimPartition::read(row)?),
        };
        self.partition = Some(Rc::clone(&partition));
        self.children.push(Child {
            blocked_by: row.integer(7)?,
            ended: row.integer(10)?,
            concurrency_key: row.lossy_text(8)?,
            run_id: row.optional_integer(9)?,
            candidate: Candidate { position: read_position(row)?, partition },
        });
        Ok(())
    }
}

/// Counts ended parents off their children. O(1) an edge.
pub(in crate::store) fn promote(
    connection: &mut dyn Connection,
    children: Children,
    now_ms: i64,
) -> Result<Promoted> {
    let Decision { blocked, waiting, wanted_keys, ready } = decide(children.children);
    count_off(connection, &blocked, now_ms)?;
    unblock(connection, &waiting, now_ms)?;
    Ok(Promoted { claimable: admit(connection, &wanted_keys, now_ms)?, ready })
}

fn decide(mut children: Vec<Child>) -> Decision {
    let mut decision = Decision::default();
    // Who gets what they wait for does not depend on the order in which a database finds them. One whose parents are
    // many is found by some of them after the others.
    children.sort_unstable_by_key(|child| child.candidate.position.id);
    children.dedup_by(|later, first| {
        let is_same = later.candidate.position.id == first.candidate.position.id;
        first.ended += if is_same { later.ended } else { 0 };
        is_same
    });
    for Child { blocked_by, ended, concurrency_key, run_id, candidate } in children {
        let child_id = candidate.position.id;
        if blocked_by < ended {
            // Another program wrote the number. Reconciling counts anew when the run comes to a stop.
        } else if blocked_by > ended {
            decision.blocked.push((child_id, ended));
        } else if let Some(key) = concurrency_key {
            decision.waiting.push(child_id);
            decision.wanted_keys.push(key);
        } else {
            decision.ready.push(Ready { run_id, candidate });
        }
    }
    decision
}

fn count_off(connection: &mut dyn Connection, blocked: &[(i64, i64)], now_ms: i64) -> Result<()> {
    if blocked.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 2]> =
        blocked.iter().map(|(child_id, ended)| [(*child_id).into(), (*ended).into()]).collect();
    connection.execute_with_next(
        "UPDATE jobs SET blocked_by = jobs.blocked_by - news.ended, updated_at = $2
         FROM {rows $1: id integer, ended integer} AS news
         WHERE {by jobs.id = news.id} AND {guard jobs.status = 'BLOCKED'}",
        &[Value::rows(&news), now_ms.into()],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::claim::partition::ClaimPosition;

    #[test]
    fn a_child_goes_on_when_it_waits_for_nobody() {
        let partition = Rc::new(ClaimPartition {
            queue: "default".to_owned(),
            kind: "noop".to_owned(),
            requires: "[]".to_owned(),
            version: 0,
            may_have_rules: false,
        });
        let candidate =
            |id| Candidate { position: ClaimPosition { id, rank: 0 }, partition: Rc::clone(&partition) };
        let child = |id, blocked_by, ended, key: Option<&str>| {
            let concurrency_key = key.map(str::to_owned);
            Child { blocked_by, ended, concurrency_key, run_id: Some(1), candidate: candidate(id) }
        };
        let children = vec![
            child(5, 0, 1, None),
            child(1, 3, 2, None),
            child(2, 3, 3, None),
            child(3, 1, 1, Some("k")),
            child(4, 2, 1, Some("k")),
            child(6, 600, 512, None),
            child(7, 600, 512, None),
            child(6, 600, 88, None),
            child(7, 600, 87, None),
        ];
        assert_eq!(
            decide(children),
            Decision {
                blocked: vec![(1, 2), (4, 1), (7, 599)],
                waiting: vec![3],
                wanted_keys: vec!["k".to_owned()],
                ready: [2, 6].map(|id| Ready { run_id: Some(1), candidate: candidate(id) }).into(),
            }
        );
    }
}
