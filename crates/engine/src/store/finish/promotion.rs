//! Promotion: the children of jobs that ended wait for fewer parents, and children that wait for none become ready. A child
//! with a rule of its own waits for a decision of the scheduler first.
//!
//! A child that still waits is changed by a statement that does not set its status. The status is in the condition of each
//! partial index for claims. An update that sets it costs three times as much, and on a server it adds an entry to each
//! index of the row. The caller holds the run's lock, so the rows can't change between the read and the update. A child
//! that another program took out of BLOCKED is left alone.
//!
//! A ready child is handed to the claim that follows in the same transaction. If the claim takes it, the child goes from
//! BLOCKED to RUNNING in one update. It is never PENDING, because no other transaction could have seen it so.

use crate::store::claim::partition::{Candidate, ClaimPartition, read_position};
use crate::store::claim::ready::{Ready, unblock};
use crate::store::finish::slots::admit;
use crate::store::json_ids;
use std::rc::Rc;
use windlass_db::error::Result;
use windlass_db::{Connection, Row, Value};
use windlass_system::wake_ups::WakeUps;

/// The children that wait for no parent any more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::store) struct Promoted {
    /// Children that were made PENDING.
    pub(in crate::store) claimable: Vec<i64>,
    /// Children that are still BLOCKED. The caller claims or releases each of them.
    pub(in crate::store) ready: Vec<Ready>,
}

/// A BLOCKED child of parents that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Child {
    /// The number of parents that it waited for until now.
    blocked_by: i64,
    /// The number of its parents that ended.
    ended: i64,
    needs_decision: bool,
    concurrency_key: Option<String>,
    root_run_id: Option<i64>,
    candidate: Candidate,
}

/// What happens to the children.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Decision {
    /// Children that still wait, with the number of parents to subtract.
    blocked: Vec<(i64, i64)>,
    /// Children that wait for no parent, but for a decision.
    undecided: Vec<i64>,
    /// Children that wait for no parent, but for a slot of a key.
    waiting: Vec<i64>,
    wanted_keys: Vec<String>,
    /// Children that wait for no parent and need no slot.
    ready: Vec<Ready>,
}

/// Finds the BLOCKED children of parents that ended; [`Children`] reads the rows. Edges are counted before the children
/// are read, because a row of `jobs` is wide and a child may be found by several edges. The first EXISTS asks once whether
/// any queue has rules. Only then each child's queue is looked up by name.
pub(in crate::store) const CHILDREN: &str =
    "SELECT jobs.id, {rank}, jobs.queue, jobs.kind, jobs.requires, jobs.code_version,
                CASE WHEN EXISTS (SELECT 1 FROM queues WHERE {ruled})
                      AND jobs.queue IN (SELECT name FROM queues WHERE {ruled}) THEN 1 ELSE 0 END,
                jobs.blocked_by, jobs.concurrency_key, coalesce(jobs.root_run_id, jobs.run_id), children.ended,
                CASE WHEN jobs.join_rule IS NOT NULL OR jobs.control IS NOT NULL THEN 1 ELSE 0 END
         FROM (SELECT edges.child_id, count(*) AS ended
               FROM {rows $1: id integer} AS parents CROSS JOIN job_dependencies AS edges
               WHERE {by edges.parent_id = parents.id} GROUP BY edges.child_id) AS children
         CROSS JOIN jobs
         WHERE {by jobs.id = children.child_id} AND {guard jobs.status = 'BLOCKED'}";

/// The children of parents that ended.
#[derive(Default)]
pub(in crate::store) struct Children {
    children: Vec<Child>,
    /// The partition of the last child. The next child is mostly in the same one.
    partition: Option<Rc<ClaimPartition>>,
}

impl Children {
    /// Reads one child.
    pub(in crate::store) fn read(&mut self, row: &dyn Row) -> Result<()> {
        let partition = match &self.partition {
            Some(partition) if partition.is_of(row) => Rc::clone(partition),
            Some(_) | None => Rc::new(ClaimPartition::read(row)?),
        };
        self.partition = Some(Rc::clone(&partition));
        self.children.push(Child {
            blocked_by: row.integer(7)?,
            ended: row.integer(10)?,
            needs_decision: row.integer(11)? != 0,
            concurrency_key: row.lossy_text(8)?,
            root_run_id: row.optional_integer(9)?,
            candidate: Candidate { position: read_position(row)?, partition },
        });
        Ok(())
    }
}

/// Subtracts the parents that ended from what their children wait for. The cost is O(1) for each edge.
pub(in crate::store) fn promote(
    connection: &mut dyn Connection,
    children: Children,
    now_ms: i64,
) -> Result<Promoted> {
    let Decision { blocked, undecided, waiting, wanted_keys, ready } = decide(children.children);
    count_off(connection, &blocked, now_ms)?;
    ask_for_decisions(connection, &undecided, now_ms)?;
    unblock(connection, &waiting, now_ms)?;
    Ok(Promoted { claimable: admit(connection, &wanted_keys, now_ms)?, ready })
}

fn decide(mut children: Vec<Child>) -> Decision {
    let mut decision = Decision::default();
    // The order must not depend on the database. A child with many parents may be found in several parts, because the
    // parents are bound in parts.
    children.sort_unstable_by_key(|child| child.candidate.position.id);
    children.dedup_by(|later, first| {
        let is_same = later.candidate.position.id == first.candidate.position.id;
        first.ended += if is_same { later.ended } else { 0 };
        is_same
    });
    for Child { blocked_by, ended, needs_decision, concurrency_key, root_run_id, candidate } in children {
        let child_id = candidate.position.id;
        if blocked_by < ended {
            // Another program changed `blocked_by`. The reconcile step counts again when the run stands still.
        } else if blocked_by > ended {
            decision.blocked.push((child_id, ended));
        } else if needs_decision {
            decision.undecided.push(child_id);
        } else if let Some(key) = concurrency_key {
            decision.waiting.push(child_id);
            decision.wanted_keys.push(key);
        } else {
            decision.ready.push(Ready { root_run_id, candidate });
        }
    }
    decision
}

/// Lets BLOCKED jobs wait for a decision of the scheduler.
pub(in crate::store) fn ask_for_decisions(
    connection: &mut dyn Connection,
    ids: &[i64],
    now_ms: i64,
) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    connection.wake(WakeUps::DUE);
    connection.execute_with_next(
        "UPDATE jobs SET status = 'WAITING', waits_for = 'decision', blocked_by = 0, updated_at = $2
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(ids)).into(), now_ms.into()],
    )
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
            code_version: 0,
            may_have_rules: false,
        });
        let candidate =
            |id| Candidate { position: ClaimPosition { id, rank: 0 }, partition: Rc::clone(&partition) };
        let child = |id, blocked_by, ended, key: Option<&str>| {
            let concurrency_key = key.map(str::to_owned);
            let (root_run_id, candidate) = (Some(1), candidate(id));
            Child { blocked_by, ended, needs_decision: false, concurrency_key, root_run_id, candidate }
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
            Child { needs_decision: true, ..child(8, 1, 1, Some("k")) },
            Child { needs_decision: true, ..child(9, 2, 1, None) },
        ];
        assert_eq!(
            decide(children),
            Decision {
                blocked: vec![(1, 2), (4, 1), (7, 599), (9, 1)],
                undecided: vec![8],
                waiting: vec![3],
                wanted_keys: vec!["k".to_owned()],
                ready: [2, 6].map(|id| Ready { root_run_id: Some(1), candidate: candidate(id) }).into(),
            }
        );
    }
}
