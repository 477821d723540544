//! Queue rules: how many jobs may be claimed from a queue now. The limits are compared with counted rows. There are
//! no stored counters, so a crash can't make them wrong.
//!
//! A claim locks a queue before it counts. Otherwise two transactions on PostgreSQL could each count the same free
//! capacity. The lock is never waited for: a claim that does not get the lock takes nothing from the queue and tries
//! again later.

use crate::status::JobStatus;
use crate::store::json_list;
use std::collections::HashMap;
use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, all, first, one};
use windlass_system::wake_ups::WakeUps;

/// Whether a row of `queues` has a rule that a claim must check.
pub(crate) const RULED: Fragment = Fragment {
    name: "ruled",
    sql: "(paused_at IS NOT NULL OR max_running IS NOT NULL OR rate_jobs IS NOT NULL OR fifo = 1)",
};

/// The priority of a row of `jobs` that becomes claimable. It is 0 in a queue that keeps the order of arrival.
///
/// Most databases have no such queue. The EXISTS comes first because SQLite would otherwise build a list of the queues'
/// names for each statement, which is a third of what an enqueue costs.
pub(crate) const PRIORITY: Fragment = Fragment {
    name: "priority",
    sql: "CASE WHEN EXISTS (SELECT 1 FROM queues WHERE fifo = 1)
               AND queue IN (SELECT queues.name FROM queues WHERE fifo = 1) THEN 0 ELSE priority END",
};

/// The ends of starts are rounded up to this part of the rate's interval, which limits the rows for each queue.
const RATE_STEPS: i64 = 64;

/// How long expired starts are kept, in milliseconds. A process whose clock is behind by less than this still counts
/// them, so that no interval has too many starts by the times in the tables.
const KEPT_MS: i64 = 1_000;

/// The rules of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct QueueRules {
    pub(in crate::store) name: String,
    pub(in crate::store) is_paused: bool,
    pub(in crate::store) max_running: Option<i64>,
    /// So many jobs may start within so many milliseconds.
    pub(in crate::store) rate: Option<(i64, i64)>,
    pub(in crate::store) is_fifo: bool,
    pub(in crate::store) turn_job_id: Option<i64>,
}

/// What may be claimed from a queue now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Allowance {
    /// This many jobs, in the order of claiming.
    Jobs(usize),
    /// The first job in order of arrival.
    Next,
    /// Only this job, because it is its turn.
    Turn(i64),
}

pub(in crate::store) const NO_JOBS: Allowance = Allowance::Jobs(0);

/// What was counted for a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::store) struct Counted {
    pub(in crate::store) running: i64,
    /// Jobs that were started within the interval of the rate.
    pub(in crate::store) started: i64,
    /// The state of the job whose turn it is.
    pub(in crate::store) turn: Option<JobStatus>,
}

/// Whether a queue is locked while its jobs are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Counting {
    /// It is locked, because jobs will be claimed.
    Locked,
    /// It is not locked, because nothing will be claimed.
    Unlocked,
}

/// Returns what may be claimed from each of these queues that has rules. Queues without rules have no limits.
pub(in crate::store) fn allowances(
    connection: &mut dyn Connection,
    queues: &[&str],
    counting: Counting,
    now_ms: i64,
) -> Result<HashMap<String, (QueueRules, Allowance)>> {
    let mut allowances = HashMap::new();
    for rules in read_rules(connection, queues)? {
        let allowance = if rules.is_paused {
            NO_JOBS
        } else if counting == Counting::Locked && !lock(connection, &rules.name)? {
            // Another claim holds the lock, and will release it in a moment.
            connection.wake(WakeUps::PENDING);
            NO_JOBS
        } else {
            // Read again under the lock, because another claim may have given the turn to the next job.
            let rules = match counting {
                Counting::Locked => read_rules(connection, &[&rules.name])?.pop().unwrap_or(rules.clone()),
                Counting::Unlocked => rules.clone(),
            };
            let counted = count(connection, &rules, now_ms)?;
            allowance(&rules, counted)
        };
        allowances.insert(rules.name.clone(), (rules, allowance));
    }
    Ok(allowances)
}

/// Decides what may be claimed, from the rules and the counts.
fn allowance(rules: &QueueRules, counted: Counted) -> Allowance {
    let left = |limit: i64, taken: i64| usize::try_from(limit - taken).unwrap_or(0);
    let by_running = rules.max_running.map_or(usize::MAX, |limit| left(limit, counted.running));
    let by_rate = rules.rate.map_or(usize::MAX, |(limit, _interval)| left(limit, counted.started));
    let jobs = by_running.min(by_rate);
    if !rules.is_fifo || jobs == 0 {
        return Allowance::Jobs(jobs);
    }
    match (rules.turn_job_id, counted.turn) {
        (Some(job_id), Some(JobStatus::Pending)) => Allowance::Turn(job_id),
        // The job whose turn it is runs or will be retried. No other job may overtake it.
        (Some(_), Some(JobStatus::Scheduled | JobStatus::Running)) => NO_JOBS,
        // The job whose turn it was is finished, or it waits for parents after a retry or for a slot of its key.
        // Another job may go first, because that job may be the one it waits for. But jobs that were started before
        // the order was set must end first.
        (
            Some(_) | None,
            Some(
                JobStatus::Successful
                | JobStatus::Failed
                | JobStatus::Skipped
                | JobStatus::Cancelled
                | JobStatus::Blocked
                | JobStatus::Waiting,
            )
            | None,
        )
        | (None, Some(_)) => {
            if counted.running == 0 {
                Allowance::Next
            } else {
                NO_JOBS
            }
        }
    }
}

pub(in crate::store) fn read_rules(
    connection: &mut dyn Connection,
    queues: &[&str],
) -> Result<Vec<QueueRules>> {
    all(
        connection,
        "SELECT name, paused_at, max_running, rate_jobs, rate_interval_ms, fifo, turn_job_id
         FROM queues
         WHERE name IN (SELECT value FROM {texts $1} AS wanted)
           AND {ruled}",
        &[(&json_list("read queues", queues)?).into()],
        read_queue,
    )
}

fn read_queue(row: &dyn Row) -> Result<QueueRules> {
    Ok(QueueRules {
        name: row.text(0)?,
        is_paused: row.optional_integer(1)?.is_some(),
        max_running: row.optional_integer(2)?,
        rate: row.optional_integer(3)?.zip(row.optional_integer(4)?),
        is_fifo: row.integer(5)? != 0,
        turn_job_id: row.optional_integer(6)?,
    })
}

fn lock(connection: &mut dyn Connection, queue: &str) -> Result<bool> {
    let taken = one(connection, "SELECT {try_lock 'queue ' || CAST($1 AS TEXT)}", &[queue.into()], |row| {
        row.integer(0)
    })?;
    Ok(taken == 1)
}

pub(in crate::store) fn count(
    connection: &mut dyn Connection,
    rules: &QueueRules,
    now_ms: i64,
) -> Result<Counted> {
    let mut counted = Counted::default();
    if rules.max_running.is_some() || rules.is_fifo {
        counted.running = running(connection, &rules.name)?;
    }
    if let Some((_jobs, interval_ms)) = rules.rate {
        // Starts that expire too far in the future are ignored. So a clock that was set back by hours blocks the
        // queue for one interval at most.
        counted.started = one(
            connection,
            "SELECT CAST(coalesce(sum(jobs), 0) AS {integer}) FROM queue_starts
             WHERE queue = $1 AND expires_at > $2 AND expires_at <= $3",
            &[(&rules.name).into(), now_ms.into(), now_ms.saturating_add(2 * interval_ms).into()],
            |row| row.integer(0),
        )?;
    }
    if let Some(job_id) = rules.turn_job_id {
        counted.turn = first(
            connection,
            "SELECT status FROM jobs WHERE id = $1 AND queue = $2",
            &[job_id.into(), (&rules.name).into()],
            |row| row.parsed(0, JobStatus::parse),
        )?;
    }
    Ok(counted)
}

/// Counts the running jobs of a queue, using only the index of running jobs.
pub(in crate::store) fn running(connection: &mut dyn Connection, queue: &str) -> Result<i64> {
    one(
        connection,
        "SELECT count(*) FROM jobs WHERE status = 'RUNNING' AND worker_id IS NOT NULL AND queue = $1",
        &[queue.into()],
        |row| row.integer(0),
    )
}

/// Records what was claimed, for the limits that depend on it.
pub(in crate::store) fn record(
    connection: &mut dyn Connection,
    rules: &QueueRules,
    job_ids: &[i64],
    now_ms: i64,
) -> Result<()> {
    let Some(last) = job_ids.last() else { return Ok(()) };
    if rules.is_fifo {
        connection.execute(
            "UPDATE queues SET turn_job_id = $2 WHERE name = $1",
            &[(&rules.name).into(), (*last).into()],
        )?;
    }
    if let Some((_jobs, interval_ms)) = rules.rate {
        connection.execute_with_next(
            "DELETE FROM queue_starts WHERE queue = $1 AND expires_at <= $2",
            &[(&rules.name).into(), now_ms.saturating_sub(KEPT_MS).into()],
        )?;
        add_starts(connection, &rules.name, expires_at(now_ms, interval_ms), job_ids.len() as i64)?;
        // When these starts expire, more jobs may start.
        connection.wake(WakeUps::DUE);
    }
    Ok(())
}

/// Moves the ends of starts with the clock. There are few rows: [`RATE_STEPS`] for each queue, plus one.
pub(in crate::store) fn move_starts(
    connection: &mut dyn Connection,
    by_ms: i64,
    now_ms: i64,
    unseen_ms: i64,
) -> Result<()> {
    let starts = all(
        connection,
        "SELECT queue_starts.queue, queue_starts.expires_at, queue_starts.jobs, queues.rate_interval_ms
         FROM queue_starts JOIN queues ON queues.name = queue_starts.queue
         WHERE queues.rate_interval_ms IS NOT NULL",
        &[],
        |row| Ok((row.text(0)?, row.integer(1)?, row.integer(2)?, row.integer(3)?)),
    )?;
    let is_older = |expires_at: i64, interval_ms: i64| {
        let began_at = expires_at.saturating_sub(interval_ms);
        !(began_at > now_ms.saturating_sub(unseen_ms) && began_at <= now_ms + interval_ms / RATE_STEPS)
    };
    // All rows are deleted before the first one is inserted again, because a moved row may take the key of another.
    let older: Vec<_> =
        starts.into_iter().filter(|(_, at, _, interval_ms)| is_older(*at, *interval_ms)).collect();
    for (queue, expires_at, ..) in &older {
        connection.execute(
            "DELETE FROM queue_starts WHERE queue = $1 AND expires_at = $2",
            &[queue.into(), (*expires_at).into()],
        )?;
    }
    for (queue, expires_at, jobs, _interval_ms) in &older {
        add_starts(connection, queue, expires_at.saturating_add(by_ms), *jobs)?;
    }
    Ok(())
}

fn add_starts(connection: &mut dyn Connection, queue: &str, expires_at: i64, jobs: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO queue_starts (queue, expires_at, jobs) VALUES ($1, $2, $3)
         ON CONFLICT (queue, expires_at) DO UPDATE SET jobs = queue_starts.jobs + $3",
        &[queue.into(), expires_at.into(), jobs.into()],
    )?;
    Ok(())
}

/// When a start expires: after the interval, rounded up to the next step.
fn expires_at(now_ms: i64, interval_ms: i64) -> i64 {
    let step = (interval_ms / RATE_STEPS).max(1);
    let end = now_ms.saturating_add(interval_ms);
    end.saturating_add((step - end.rem_euclid(step)) % step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> QueueRules {
        QueueRules {
            name: "q".to_owned(),
            is_paused: false,
            max_running: None,
            rate: None,
            is_fifo: false,
            turn_job_id: None,
        }
    }

    #[test]
    fn the_tightest_limit_counts() {
        let counted = Counted { running: 3, started: 8, turn: None };
        let cases = [
            (rules(), usize::MAX),
            (QueueRules { max_running: Some(5), ..rules() }, 2),
            (QueueRules { max_running: Some(3), ..rules() }, 0),
            (QueueRules { max_running: Some(0), ..rules() }, 0),
            (QueueRules { rate: Some((9, 1_000)), ..rules() }, 1),
            (QueueRules { rate: Some((7, 1_000)), ..rules() }, 0),
            (QueueRules { max_running: Some(10), rate: Some((10, 1_000)), ..rules() }, 2),
        ];
        for (rules, jobs) in cases {
            assert_eq!(allowance(&rules, counted), Allowance::Jobs(jobs), "{rules:?}");
        }
    }

    #[test]
    fn in_order_of_arrival_one_job_has_its_turn_until_it_is_finished() {
        let fifo = |turn_job_id| QueueRules { is_fifo: true, turn_job_id, ..rules() };
        let counted = |turn, running| Counted { running, turn, ..Counted::default() };
        use JobStatus::{Blocked, Cancelled, Failed, Pending, Running, Scheduled, Successful, Waiting};
        let cases = [
            (None, None, 0, Allowance::Next),
            (None, None, 1, NO_JOBS),
            (Some(7), Some(Pending), 0, Allowance::Turn(7)),
            (Some(7), Some(Running), 1, NO_JOBS),
            (Some(7), Some(Scheduled), 0, NO_JOBS),
            (Some(7), Some(Blocked), 0, Allowance::Next),
            (Some(7), Some(Waiting), 0, Allowance::Next),
            (Some(7), Some(Waiting), 1, NO_JOBS),
            (Some(7), Some(Successful), 0, Allowance::Next),
            (Some(7), Some(Failed), 0, Allowance::Next),
            (Some(7), Some(Cancelled), 0, Allowance::Next),
            (Some(7), None, 0, Allowance::Next),
        ];
        for (turn_job_id, turn, running, expected) in cases {
            let found = allowance(&fifo(turn_job_id), counted(turn, running));
            assert_eq!(found, expected, "{turn_job_id:?} {turn:?}");
        }
        let full = QueueRules { rate: Some((1, 1_000)), ..fifo(None) };
        assert_eq!(allowance(&full, Counted { started: 1, ..Counted::default() }), NO_JOBS);
    }

    #[test]
    fn a_start_expires_after_the_interval_rounded_up_to_a_step() {
        for (now_ms, interval_ms) in [(0, 60_000), (1, 60_000), (123_456_789, 60_000), (5, 1), (-7, 1_000)] {
            let counts_ms = expires_at(now_ms, interval_ms) - now_ms;
            let step = (interval_ms / RATE_STEPS).max(1);
            assert!((interval_ms..interval_ms + step).contains(&counts_ms), "{now_ms} {interval_ms}");
        }
    }
}
