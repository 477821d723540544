//! The ends of items: the next items of their groups may run, and a group ends with its last item. All of it is in the
//! transaction of these ends.

use std::collections::BTreeMap;

use crate::decide::for_each::end_reason;
use crate::decide::{Control, Then};
use crate::join_rule::{EndColumns, JobEnd};
use crate::status::JobStatus;
use crate::store::claim::ready::unblock;
use crate::store::finish::promotion::ask_for_decisions;
use crate::store::finish::propagation::{Belonging, Ended};
use crate::store::finish::run_end::RunDelta;
use crate::store::finish::slots::admit;
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, UpdateReturning, Value, all, all_updated, one};
use windlass_system::wake_ups::WakeUps;

/// Whether a finished job failed, was cancelled, or was skipped because of such a job.
pub(crate) const IS_BROKEN: Fragment = Fragment {
    name: "is_broken",
    sql: "(status = 'CANCELLED' OR (status = 'FAILED' AND allow_failure = 0)
           OR (status = 'SKIPPED' AND upstream_failed = 1))",
};

/// Whether a run counts a finished job as failed. It counts the failed items of a group in place of the group.
pub(crate) const COUNTS_AS_FAILED: Fragment = Fragment {
    name: "counts_as_failed",
    sql: "((jobs.status = 'CANCELLED' OR (jobs.status = 'FAILED' AND jobs.allow_failure = 0))
           AND NOT EXISTS (SELECT 1 FROM jobs AS item WHERE item.group_id IS NOT NULL AND item.group_id = jobs.id))",
};

/// What followed from the ends of items.
#[derive(Default)]
pub(in crate::store) struct EndedItems {
    /// Groups that ended with their last item.
    pub(in crate::store) groups: Vec<Ended>,
    /// Items that ended because another item of their group failed, counted for their runs.
    pub(in crate::store) stopped: BTreeMap<i64, RunDelta>,
    /// Items that became claimable.
    pub(in crate::store) released: Vec<i64>,
}

/// The items of one group that ended.
#[derive(Default)]
struct ItemEnds {
    count: i64,
    /// One of them that failed, was cancelled, or was skipped because of a failure.
    broken: Option<String>,
}

/// A group whose items ended, or that is looked at again.
struct Group {
    id: i64,
    run_id: Option<i64>,
    /// Its items that have not ended.
    unfinished: i64,
    max_parallel: Option<i64>,
}

/// Reads what [`COUNT_OFF`] returns.
fn read_group(row: &dyn Row) -> Result<Group> {
    Ok(Group {
        id: row.integer(0)?,
        run_id: row.optional_integer(1)?,
        unfinished: row.integer(2)?,
        max_parallel: row.optional_integer(3)?,
    })
}

/// Propagates the ends of items to their groups.
pub(in crate::store) fn end_items(
    connection: &mut dyn Connection,
    ended: &[Ended],
    now_ms: i64,
) -> Result<EndedItems> {
    let mut of_groups: BTreeMap<i64, ItemEnds> = BTreeMap::new();
    for job in ended {
        let (Belonging::ItemOf(group_id), Some(end)) = (job.belonging, job.columns.end()) else { continue };
        let ends = of_groups.entry(group_id).or_default();
        ends.count += 1;
        if end == JobEnd::Broken && ends.broken.is_none() {
            ends.broken = Some(job.name.clone().unwrap_or_else(|| "an item".to_owned()));
        }
    }
    let mut after = EndedItems::default();
    if of_groups.is_empty() {
        return Ok(after);
    }
    for mut group in count_off(connection, &of_groups, now_ms)? {
        let broken = of_groups.get(&group.id).and_then(|ends| ends.broken.as_deref());
        if let Some(broken) = broken.filter(|_broken| group.unfinished > 0)
            && is_fail_fast(connection, group.id)?
        {
            let reason = format!("`{broken}` failed, and `fail_fast` is set");
            let stopped = stop_items(connection, group.id, Stop::AfterFailure, &reason, now_ms)?;
            group.unfinished = recount(connection, group.id)?;
            after.stopped.entry(group.run_id.unwrap_or_default()).or_default().add(stopped.delta);
        }
        if group.unfinished == 0 {
            after.groups.push(end_group(connection, group.id, now_ms)?);
        } else if let Some(max_parallel) = group.max_parallel {
            after.released.extend(release_items(connection, group.id, max_parallel, now_ms)?);
        }
    }
    Ok(after)
}

static COUNT_OFF: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("blocked_by", "CASE WHEN jobs.blocked_by > news.ended THEN jobs.blocked_by - news.ended ELSE 0 END"),
        ("updated_at", "$2"),
    ],
    from: Some("{rows $1: id integer, ended integer} AS news"),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'items'",
    returning: &["jobs.id", "jobs.run_id", "jobs.blocked_by", "jobs.max_parallel"],
};

/// Whether the first item of a group that fails ends the others.
fn is_fail_fast(connection: &mut dyn Connection, group_id: i64) -> Result<bool> {
    let control = one(connection, "SELECT control FROM jobs WHERE id = $1", &[group_id.into()], |row| {
        row.lossy_text(0)
    })?;
    let control: Option<Control> = control.and_then(|json| serde_json::from_str(&json).ok());
    Ok(matches!(control, Some(Control { then: Some(Then::ForEach(group)), .. }) if group.for_each.fail_fast))
}

/// Subtracts items that ended from what their groups wait for.
fn count_off(
    connection: &mut dyn Connection,
    of_groups: &BTreeMap<i64, ItemEnds>,
    now_ms: i64,
) -> Result<Vec<Group>> {
    let news: Vec<[Value<'_>; 2]> =
        of_groups.iter().map(|(group_id, ends)| [(*group_id).into(), ends.count.into()]).collect();
    let mut groups = all_updated(connection, &COUNT_OFF, &[Value::rows(&news), now_ms.into()], read_group)?;
    // The order must not depend on the database.
    groups.sort_unstable_by_key(|group| group.id);
    Ok(groups)
}

/// Counts the unfinished items of a group again, and returns their number.
fn recount(connection: &mut dyn Connection, group_id: i64) -> Result<i64> {
    one(
        connection,
        "UPDATE jobs
         SET blocked_by = (SELECT count(*) FROM jobs AS item
                           WHERE item.group_id IS NOT NULL AND item.group_id = jobs.id AND item.finished_at IS NULL)
         WHERE id = $1 RETURNING blocked_by",
        &[group_id.into()],
        |row| row.integer(0),
    )
}

/// Lets the next items of a group run, in order, as many as `max_parallel` allows. Returns those that became claimable.
pub(in crate::store) fn release_items(
    connection: &mut dyn Connection,
    group_id: i64,
    max_parallel: i64,
    now_ms: i64,
) -> Result<Vec<i64>> {
    // An item whose end another program reported has its place until the end is applied: it may be retried.
    let taken = one(
        connection,
        "SELECT (SELECT count(*) FROM jobs
                 WHERE group_id IS NOT NULL AND group_id = $1
                   AND status IN ('PENDING', 'RUNNING', 'SCHEDULED', 'WAITING'))
              + (SELECT count(*) FROM jobs
                 WHERE {is_reported}
                   AND +group_id = $1)",
        &[group_id.into()],
        |row| row.integer(0),
    )?;
    if taken >= max_parallel {
        return Ok(Vec::new());
    }
    let next = all(
        connection,
        "SELECT id, concurrency_key, CASE WHEN control IS NOT NULL THEN 1 ELSE 0 END FROM jobs
         WHERE group_id IS NOT NULL AND group_id = $1 AND status = 'BLOCKED' ORDER BY id LIMIT $2",
        &[group_id.into(), (max_parallel - taken).into()],
        |row| Ok((row.integer(0)?, row.lossy_text(1)?, row.integer(2)? != 0)),
    )?;
    let (mut undecided, mut waiting, mut claimable, mut keys) = (vec![], vec![], vec![], vec![]);
    for (id, concurrency_key, needs_decision) in next {
        match concurrency_key {
            _ if needs_decision => undecided.push(id),
            Some(key) => {
                waiting.push(id);
                keys.push(key);
            }
            None => claimable.push(id),
        }
    }
    ask_for_decisions(connection, &undecided, now_ms)?;
    unblock(connection, &waiting, now_ms)?;
    unblock(connection, &claimable, now_ms)?;
    claimable.extend(admit(connection, &keys, now_ms)?);
    Ok(claimable)
}

/// Why the items of a group are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Stop {
    /// An item failed, and the group has `fail_fast`. Items that did not have their turn are skipped.
    AfterFailure,
    /// A person cancels the group, or its deadline is over.
    Cancelled,
}

/// The items that were stopped.
#[derive(Default)]
pub(in crate::store) struct StoppedItems {
    /// Those that ended at once, counted for their run.
    pub(in crate::store) delta: RunDelta,
    /// Those that run, themselves or in a run that they have started, and were asked to stop.
    pub(in crate::store) stopping: i64,
}

/// Ends the items of a group that do not run, and asks the others to stop. One statement does both, because a job that waits
/// may be claimed between two statements.
pub(in crate::store) fn stop_items(
    connection: &mut dyn Connection,
    group_id: i64,
    stop: Stop,
    reason: &str,
    now_ms: i64,
) -> Result<StoppedItems> {
    let (before_turn, skipped) = match stop {
        Stop::AfterFailure => ("SKIPPED", 1),
        Stop::Cancelled => ("CANCELLED", 0),
    };
    let mut stopped = StoppedItems::default();
    connection.query(
        "UPDATE jobs
         SET cancel_requested_at = CASE WHEN {is_stopped_later} THEN $2 ELSE cancel_requested_at END,
             upstream_failed = CASE WHEN status = 'BLOCKED' THEN $5 ELSE upstream_failed END,
             last_error = CASE WHEN {is_stopped_later} THEN last_error ELSE $3 END,
             finished_at = CASE WHEN {is_stopped_later} THEN finished_at ELSE $2 END,
             updated_at = $2,
             status = CASE WHEN {is_stopped_later} THEN status
                           WHEN status = 'BLOCKED' THEN CAST($4 AS TEXT) ELSE 'CANCELLED' END,
             waits_for = CASE WHEN {is_stopped_later} THEN waits_for END
         WHERE group_id IS NOT NULL AND group_id = $1
           AND (status IN ('BLOCKED', 'SCHEDULED', 'PENDING', 'RUNNING', 'WAITING')
                OR (status = 'FAILED' AND finished_at IS NULL))
           AND NOT ({is_stopped_later} AND cancel_requested_at IS NOT NULL)
         RETURNING status",
        &[group_id.into(), now_ms.into(), reason.into(), before_turn.into(), skipped.into()],
        &mut |row| {
            match row.parsed(0, JobStatus::parse)? {
                JobStatus::Skipped => stopped.delta.add(RunDelta { finished: 1, failed: 0 }),
                JobStatus::Cancelled => stopped.delta.add(RunDelta { finished: 1, failed: 1 }),
                JobStatus::Blocked
                | JobStatus::Scheduled
                | JobStatus::Pending
                | JobStatus::Running
                | JobStatus::Waiting
                | JobStatus::Successful
                | JobStatus::Failed => stopped.stopping += 1,
            }
            Ok(())
        },
    )?;
    // A slot of a concurrency key may be free, and the turn of a queue may be over.
    connection.wake(WakeUps::CANCEL | WakeUps::PROGRESS | WakeUps::DUE | WakeUps::PENDING);
    Ok(stopped)
}

/// Ends a group whose items have all ended. It is FAILED if one of them failed or was cancelled, and CANCELLED if a person
/// asked for that before its deadline.
fn end_group(connection: &mut dyn Connection, group_id: i64, now_ms: i64) -> Result<Ended> {
    let (items, broken, first) = one(
        connection,
        "SELECT count(*), coalesce(sum(CASE WHEN {is_broken} THEN 1 ELSE 0 END), 0),
                (SELECT name FROM jobs WHERE group_id IS NOT NULL AND group_id = $1 AND {is_broken}
                 ORDER BY CASE WHEN status = 'SKIPPED' THEN 1 ELSE 0 END, id LIMIT 1)
         FROM jobs WHERE group_id IS NOT NULL AND group_id = $1",
        &[group_id.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?, row.lossy_text(2)?)),
    )?;
    let reason = (broken > 0).then(|| end_reason(broken, items, first.as_deref().unwrap_or_default()));
    one(
        connection,
        "UPDATE jobs
         SET status = CASE WHEN CAST($2 AS TEXT) IS NULL THEN 'SUCCESSFUL'
                           WHEN cancel_requested_at < coalesce(deadline_at, cancel_requested_at + 1)
                           THEN 'CANCELLED' ELSE 'FAILED' END,
             waits_for = NULL,
             last_error = CASE WHEN deadline_at <= cancel_requested_at
                               THEN 'it was not over at its deadline: ' || CAST($2 AS TEXT) ELSE CAST($2 AS TEXT) END, blocked_by = 0, updated_at = $3, finished_at = $3
         WHERE id = $1
         RETURNING run_id, name, status, allow_failure",
        &[group_id.into(), (&reason).into(), now_ms.into()],
        |row| {
            Ok(Ended {
                job_id: group_id,
                run_id: row.optional_integer(0)?,
                name: row.lossy_text(1)?,
                columns: EndColumns {
                    status: row.parsed(2, JobStatus::parse)?,
                    allow_failure: row.integer(3)? != 0,
                    upstream_failed: false,
                },
                belonging: Belonging::Group,
            })
        },
    )
}

/// Counts the unfinished items of all groups of a run that wait for them. Ends the groups without any, and lets the next items
/// of the others run. For transactions that changed items themselves.
pub(in crate::store) fn settle_groups(
    connection: &mut dyn Connection,
    run_id: i64,
    now_ms: i64,
) -> Result<Vec<Ended>> {
    let mut ended = Vec::new();
    for group_id in waiting_groups(connection, run_id)? {
        if recount(connection, group_id)? == 0 {
            ended.push(end_group(connection, group_id, now_ms)?);
            continue;
        }
        let max_parallel =
            one(connection, "SELECT max_parallel FROM jobs WHERE id = $1", &[group_id.into()], |row| {
                row.optional_integer(0)
            })?;
        release_items(connection, group_id, max_parallel.unwrap_or(i64::MAX), now_ms)?;
    }
    Ok(ended)
}

/// Counts the unfinished items of all groups of a run that wait for them, and lets none run.
pub(in crate::store) fn count_items(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    for group_id in waiting_groups(connection, run_id)? {
        recount(connection, group_id)?;
    }
    Ok(())
}

fn waiting_groups(connection: &mut dyn Connection, run_id: i64) -> Result<Vec<i64>> {
    all(
        connection,
        "SELECT id FROM jobs WHERE run_id = $1 AND status = 'WAITING' AND waits_for = 'items' ORDER BY id",
        &[run_id.into()],
        |row| row.integer(0),
    )
}
