//! Propagation: the ends of jobs promote or skip their children, and count down and end their runs. All of it is in the
//! transaction of these ends.

use crate::join_rule::{EndColumns, JobEnd};
use crate::status::JobStatus;
use crate::store::claim::request::ClaimRequest;
use crate::store::claim::snapshot::ClaimSnapshot;
use crate::store::finish::items::{EndedItems, end_items};
use crate::store::finish::promotion::{CHILDREN, Children, Promoted, promote};
use crate::store::finish::run_end::{COUNT_DOWN, EndedRun, RunDelta, end_runs, news_of, read_over};
use crate::store::json_ids;
use std::collections::BTreeMap;
use windlass_db::error::Result;
use windlass_db::{Connection, Query, Statement, Value, all};

/// What followed from the ends of jobs.
pub(in crate::store) struct Propagated {
    pub(in crate::store) ended_runs: Vec<EndedRun>,
    /// The caller hands the ready jobs to a claim, or releases them.
    pub(in crate::store) promoted: Promoted,
    /// The snapshot for the claim that follows, if there is one and it could be read together with something else.
    pub(in crate::store) snapshot: Option<ClaimSnapshot>,
}

/// A job that left RUNNING, or ended without running.
pub(in crate::store) struct Ended {
    pub(in crate::store) job_id: i64,
    pub(in crate::store) run_id: Option<i64>,
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) columns: EndColumns,
    pub(in crate::store) belonging: Belonging,
}

/// Whether a job belongs to a group, or is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Belonging {
    /// Neither.
    Alone,
    /// It is an item of this group. It has no edges.
    ItemOf(i64),
    /// It is a group with items. The run counts the failed items in place of the group.
    Group,
}

impl Belonging {
    /// By the column `group_id` of a row that has no items.
    pub(in crate::store) fn of(group_id: Option<i64>) -> Belonging {
        group_id.map_or(Belonging::Alone, Belonging::ItemOf)
    }
}

/// Propagates the ends of jobs to their children and runs. `request` is the claim that follows in the same transaction.
pub(in crate::store) fn propagate(
    connection: &mut dyn Connection,
    ended: &[Ended],
    request: Option<&ClaimRequest>,
    now_ms: i64,
) -> Result<Propagated> {
    // The jobs whose children wait for one parent less, and those of them that were not needed.
    let (mut parents, mut not_needed) = (Vec::new(), Vec::new());
    let mut counts: BTreeMap<i64, RunDelta> = BTreeMap::new();
    let EndedItems { groups, stopped, released } = end_items(connection, ended, now_ms)?;
    for (run_id, delta) in stopped {
        counts.entry(run_id).or_default().add(delta);
    }
    for job in ended.iter().chain(&groups) {
        let Some(run_id) = job.run_id else { continue };
        let Some(end) = job.columns.end() else { continue };
        if let Belonging::ItemOf(_) = job.belonging {
            counts.entry(run_id).or_default().add(item_delta(end, job.columns.status));
            continue;
        }
        let delta = match end {
            JobEnd::Passed => {
                parents.push(job.job_id);
                RunDelta { finished: 1, failed: 0 }
            }
            JobEnd::NotNeeded => {
                parents.push(job.job_id);
                not_needed.push(job.job_id);
                RunDelta { finished: 1, failed: 0 }
            }
            JobEnd::Broken => {
                let skipped = skip_descendants(connection, job, now_ms)?;
                if skipped.has_other_children {
                    parents.push(job.job_id);
                    parents.extend(&skipped.job_ids);
                }
                let is_counted =
                    job.columns.status != JobStatus::Skipped && job.belonging == Belonging::Alone;
                let failed = i64::from(is_counted);
                RunDelta { finished: 1 + skipped.job_ids.len() as i64, failed }
            }
        };
        counts.entry(run_id).or_default().add(delta);
    }
    mark_children_of_not_needed(connection, &not_needed)?;
    let (mut children, mut over) = (Children::default(), Vec::new());
    let has_parents = !parents.is_empty();
    let parents: Vec<[Value<'_>; 1]> = parents.iter().map(|job_id| [(*job_id).into()]).collect();
    let news = news_of(&counts);
    let find = Query {
        statement: Statement::Plain(CHILDREN),
        parameters: &[Value::rows(&parents)],
        on_row: &mut |row| children.read(row),
    };
    let count = Query {
        statement: Statement::UpdateReturning(&COUNT_DOWN),
        parameters: &[Value::rows(&news), now_ms.into()],
        on_row: &mut |row| read_over(row, &mut over),
    };
    // Each of these parents is counted, so `find` never comes without `count`.
    let snapshot = if has_parents {
        ask(connection, request, &mut [find, count])?
    } else if !counts.is_empty() {
        ask(connection, request, &mut [count])?
    } else {
        None
    };
    let ended_runs = end_runs(connection, over, now_ms)?;
    let mut promoted = promote(connection, children, now_ms)?;
    promoted.claimable.extend(released);
    Ok(Propagated { ended_runs, promoted, snapshot })
}

/// What the end of an item means for the counters of its run.
fn item_delta(end: JobEnd, status: JobStatus) -> RunDelta {
    let is_failed = end == JobEnd::Broken && status != JobStatus::Skipped;
    RunDelta { finished: 1, failed: i64::from(is_failed) }
}

/// Runs statements, together with the snapshot of the claim that follows, if there is one.
fn ask(
    connection: &mut dyn Connection,
    request: Option<&ClaimRequest>,
    questions: &mut [Query<'_>],
) -> Result<Option<ClaimSnapshot>> {
    match request {
        Some(request) => ClaimSnapshot::after(connection, request, questions).map(Some),
        None => connection.query_all(questions).map(|()| None),
    }
}

/// The jobs that were skipped because of a job before them.
#[derive(Debug, Default)]
pub(in crate::store) struct SkippedDescendants {
    pub(in crate::store) job_ids: Vec<i64>,
    /// Some children of the job, or of a skipped job, have another rule than `all_successful`. They are not skipped: they
    /// wait for one parent less.
    pub(in crate::store) has_other_children: bool,
}

/// Skips the BLOCKED descendants of a broken job with two statements, whatever the depth of the graph is. It stops at jobs
/// with another rule than `all_successful`, and at jobs that are not BLOCKED, so repeated calls never visit a job twice.
pub(in crate::store) fn skip_descendants(
    connection: &mut dyn Connection,
    broken: &Ended,
    now_ms: i64,
) -> Result<SkippedDescendants> {
    let mut skipped = SkippedDescendants::default();
    connection.query(
        "WITH RECURSIVE doomed (id, has_other_rule) AS (
             SELECT edges.child_id, CASE WHEN child.join_rule <> 'all_successful' THEN 1 ELSE 0 END
             FROM job_dependencies AS edges
             JOIN jobs AS child ON {by child.id = edges.child_id}
             WHERE edges.parent_id = $1 AND child.status = 'BLOCKED'
             UNION
             SELECT edges.child_id, CASE WHEN child.join_rule <> 'all_successful' THEN 1 ELSE 0 END
             FROM doomed
             JOIN job_dependencies AS edges ON {by edges.parent_id = doomed.id}
             JOIN jobs AS child ON {by child.id = edges.child_id}
             WHERE doomed.has_other_rule = 0 AND child.status = 'BLOCKED'
         )
         SELECT id, has_other_rule FROM doomed",
        &[broken.job_id.into()],
        &mut |row| {
            if row.integer(1)? == 0 {
                skipped.job_ids.push(row.integer(0)?);
            } else {
                skipped.has_other_children = true;
            }
            Ok(())
        },
    )?;
    if skipped.job_ids.is_empty() {
        return Ok(skipped);
    }
    let name = broken.name.as_deref().unwrap_or("a parent");
    let reason = format!("skipped: `{name}` is {}", broken.columns.status);
    connection.execute(
        "UPDATE jobs
         SET status = 'SKIPPED', upstream_failed = 1, last_error = $2, updated_at = $3, finished_at = $3
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(&skipped.job_ids)).into(), (&reason).into(), now_ms.into()],
    )?;
    Ok(skipped)
}

/// Marks the children of jobs that were not needed, so that a child is decided when its last parent ends. It can't be
/// skipped now: what its own children do would depend on the order in which its parents end.
fn mark_children_of_not_needed(connection: &mut dyn Connection, not_needed: &[i64]) -> Result<()> {
    if not_needed.is_empty() {
        return Ok(());
    }
    let children = all(
        connection,
        "SELECT DISTINCT child_id FROM job_dependencies WHERE parent_id {in $1}",
        &[(&json_ids(not_needed)).into()],
        |row| row.integer(0),
    )?;
    connection.execute(
        "UPDATE jobs SET join_rule = 'all_successful'
         WHERE id {in $1} AND {guard status = 'BLOCKED'} AND join_rule IS NULL",
        &[(&json_ids(&children)).into()],
    )?;
    Ok(())
}
