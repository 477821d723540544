//! Finishing attempts: writes their results, and what follows from them for other jobs and for runs.
//!
//! One transaction writes the transitions of the jobs, records the attempts, appends the output, propagates the ends to
//! children and runs ([`propagation`], [`promotion`]) and gives free slots of concurrency keys away ([`slots`]). The next
//! claim is part of the same transaction, so each job of a chain costs one commit.

use crate::join_rule::EndColumns;
use crate::set_variables::SetVariable;
use crate::status::JobStatus;
use crate::store::artifacts::{self, Artifact};
use crate::store::claim::ready::{Ready, release};
use crate::store::claim::request::{ClaimRequest, Claims};
use crate::store::claim::snapshot::ClaimSnapshot;
use crate::store::claim::take::UnreadableJob;
use crate::store::finish::locks::lock_runs;
use crate::store::finish::promotion::Promoted;
use crate::store::finish::propagation::{Belonging, Ended, Propagated, propagate};
use crate::store::finish::run_end::EndedRun;
use crate::store::finish::slots::admit;
use crate::store::logs::{LogLine, append};
use crate::store::variables;
use crate::transition::{Outcome, Repeat, Transition, after_attempt};
use std::collections::{HashMap, HashSet};
use windlass_db::error::Result;
use windlass_db::{Connection, Row, UpdateReturning, Value};
use windlass_system::wake_ups::WakeUps;

pub(in crate::store) mod items;
pub(in crate::store) mod locks;
pub(in crate::store) mod phases;
pub(in crate::store) mod promotion;
pub(in crate::store) mod propagation;
pub(in crate::store) mod run_end;
pub(in crate::store) mod slot_decision;
pub(in crate::store) mod slots;

/// The end of an attempt, as decided, before it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The job.
    pub job_id: i64,
    /// Its run; `None` for a job that was enqueued alone.
    pub run_id: Option<i64>,
    /// The number of the attempt. Only the owner of this attempt may end it.
    pub attempt: i64,
    /// The owner.
    pub worker_id: i64,
    /// The state the job goes to.
    pub transition: Transition,
    /// The exit code of its process, if it had one and no signal ended it.
    pub exit_code: Option<i64>,
    /// Output that is not written yet.
    pub logs: Vec<LogLine>,
    /// The files that it keeps, if it succeeded.
    pub artifacts: Vec<Artifact>,
    /// The variables that it sets, if it succeeded.
    pub variables: Vec<SetVariable>,
}

/// The result of finishing attempts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Finished {
    /// Jobs that the worker no longer owns. Their results were discarded.
    pub conflicts: Vec<i64>,
    /// Runs that ended with these jobs.
    pub ended_runs: Vec<EndedRun>,
    /// Jobs that became claimable: children, jobs that got a slot, and jobs that were given back.
    pub claimable: Vec<i64>,
}

impl Finished {
    /// Wakes workers, unless the same transaction has claimed every job that it made claimable. Otherwise each job of a
    /// chain would wake its worker for nothing.
    pub(in crate::store) fn announce(&self, connection: &mut dyn Connection, claims: &Claims) {
        let claimed: HashSet<i64> = match claims {
            Claims::Jobs(jobs) => jobs.iter().map(|job| job.id).collect(),
            Claims::Fenced => HashSet::new(),
        };
        if self.claimable.iter().any(|job_id| !claimed.contains(job_id)) {
            connection.wake(WakeUps::PENDING);
        }
    }
}

/// What the update of the jobs returned.
#[derive(Default)]
struct WrittenTransitions {
    ended: Vec<Ended>,
    /// Concurrency keys with a slot that became free.
    freed_keys: Vec<String>,
    /// Some queue has a limit, so that the end of a job may allow another claim.
    has_limits: bool,
}

/// Finishes attempts inside the caller's transaction, which claims no job. Jobs that became ready are released.
pub(in crate::store) fn finish(
    connection: &mut dyn Connection,
    finishes: &[Finish],
    now_ms: i64,
) -> Result<()> {
    let Ending { finished, ready, .. } = end(connection, finishes, None, now_ms)?;
    release(connection, &ready, now_ms)?;
    finished.announce(connection, &Claims::Jobs(Vec::new()));
    Ok(())
}

/// Fails claimed jobs whose rows can't be executed, in the transaction of the claim.
pub(in crate::store) fn fail_unreadable(
    connection: &mut dyn Connection,
    unreadable: Vec<UnreadableJob>,
    worker_id: i64,
    now_ms: i64,
) -> Result<()> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let finishes: Vec<Finish> = unreadable
        .into_iter()
        .map(|UnreadableJob { id, run_id, retry_state, error }| {
            let outcome = Outcome::Failed { error, repeat: Repeat::Pointless };
            let transition = after_attempt(&retry_state, outcome, 0.0);
            Finish {
                job_id: id,
                run_id,
                attempt: retry_state.attempt,
                worker_id,
                transition,
                exit_code: None,
                logs: Vec::new(),
                artifacts: Vec::new(),
                variables: Vec::new(),
            }
        })
        .collect();
    finish(connection, &finishes, now_ms)?;
    // The claim took these jobs in place of others, which may be claimable still.
    connection.wake(WakeUps::PENDING);
    Ok(())
}

/// The result of finishing attempts, with what the claim that follows needs.
#[derive(Default)]
pub(in crate::store) struct Ending {
    pub(in crate::store) finished: Finished,
    pub(in crate::store) ready: Vec<Ready>,
    pub(in crate::store) snapshot: Option<ClaimSnapshot>,
}

/// Finishes attempts. The caller claims or releases the ready jobs and announces the claimable ones. `request` is the claim
/// that follows in the same transaction, if there is one.
pub(in crate::store) fn end(
    connection: &mut dyn Connection,
    finishes: &[Finish],
    request: Option<&ClaimRequest>,
    now_ms: i64,
) -> Result<Ending> {
    if finishes.is_empty() {
        return Ok(Ending::default());
    }
    lock_runs(connection, finishes.iter().filter_map(|finish| finish.run_id).collect())?;
    let WrittenTransitions { ended, freed_keys, has_limits } =
        write_transitions(connection, finishes, now_ms)?;
    let owned: HashMap<i64, JobStatus> = ended.iter().map(|job| (job.job_id, job.columns.status)).collect();
    let kept: Vec<&Finish> = finishes.iter().filter(|finish| owned.contains_key(&finish.job_id)).collect();
    record_attempts(connection, &kept, now_ms)?;
    write_rounds(connection, &kept)?;
    let logs: Vec<&LogLine> = kept.iter().flat_map(|finish| &finish.logs).collect();
    append(connection, &logs)?;
    artifacts::replace(connection, &kept)?;
    variables::write(connection, &kept, now_ms)?;
    let Propagated { ended_runs, promoted, snapshot } = propagate(connection, &ended, request, now_ms)?;
    let Promoted { mut claimable, ready } = promoted;
    let admitted = admit(connection, &freed_keys, now_ms)?;
    let is_more_claimable = !claimable.is_empty() || !admitted.is_empty();
    let snapshot = if is_more_claimable { snapshot.map(ClaimSnapshot::without_candidates) } else { snapshot };
    claimable.extend(admitted);
    claimable.extend(ready.iter().map(|ready| ready.candidate.position.id));
    claimable
        .extend(ended.iter().filter(|job| job.columns.status == JobStatus::Pending).map(|job| job.job_id));
    connection.wake(if has_limits { WakeUps::PROGRESS | WakeUps::PENDING } else { WakeUps::PROGRESS });
    let conflicts =
        finishes.iter().map(|finish| finish.job_id).filter(|job_id| !owned.contains_key(job_id)).collect();
    Ok(Ending { finished: Finished { conflicts, ended_runs, claimable }, ready, snapshot })
}

/// Writes the transitions. The guard is the fence: only the owner of the attempt changes the row. A job that was asked to
/// stop is not retried. If that was because of its deadline, it failed.
static WRITE_TRANSITIONS: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        (
            "status",
            "CASE WHEN jobs.cancel_requested_at IS NOT NULL AND news.status IN ('SCHEDULED', 'PENDING', 'CANCELLED')
                  THEN CASE WHEN jobs.deadline_at <= jobs.cancel_requested_at THEN 'FAILED' ELSE 'CANCELLED' END
                  ELSE news.status END",
        ),
        ("attempt", "news.attempt_after"),
        ("failures", "news.failures"),
        ("interruptions", "news.interruptions"),
        ("execute_after", "coalesce($2 + news.delay_ms, jobs.execute_after)"),
        ("delay_ms", "news.delay_ms"),
        ("last_error", "news.last_error"),
        ("output", "news.output"),
        ("exit_code", "news.exit_code"),
        ("updated_at", "$2"),
        (
            "finished_at",
            "CASE WHEN news.status IN ('SCHEDULED', 'PENDING') AND jobs.cancel_requested_at IS NULL
                  THEN NULL ELSE $2 END",
        ),
    ],
    from: Some(
        "{rows $1: id integer, attempt integer, worker_id integer, status text,
                   attempt_after integer, failures integer, interruptions integer,
                   delay_ms integer, last_error text, output text, exit_code integer} AS news",
    ),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'RUNNING'} AND jobs.attempt = news.attempt
                AND jobs.worker_id = news.worker_id",
    returning: &[
        "jobs.id",
        "jobs.run_id",
        "jobs.name",
        "jobs.status",
        "jobs.allow_failure",
        "jobs.concurrency_key",
        "jobs.group_id",
        "(SELECT 1 FROM queues WHERE max_running IS NOT NULL OR fifo = 1 LIMIT 1)",
    ],
};

/// Writes the ends of attempts that have all succeeded: fewer columns, because a success changes no counter and no time to
/// start. It returns the same.
static WRITE_SUCCESSES: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'SUCCESSFUL'"),
        ("delay_ms", "NULL"),
        ("last_error", "NULL"),
        ("output", "news.output"),
        ("exit_code", "news.exit_code"),
        ("updated_at", "$2"),
        ("finished_at", "$2"),
    ],
    from: Some(
        "{rows $1: id integer, attempt integer, worker_id integer, output text, exit_code integer} AS news",
    ),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'RUNNING'} AND jobs.attempt = news.attempt
                AND jobs.worker_id = news.worker_id",
    returning: &[
        "jobs.id",
        "jobs.run_id",
        "jobs.name",
        "jobs.status",
        "jobs.allow_failure",
        "jobs.concurrency_key",
        "jobs.group_id",
        "(SELECT 1 FROM queues WHERE max_running IS NOT NULL OR fifo = 1 LIMIT 1)",
    ],
};

fn write_transitions(
    connection: &mut dyn Connection,
    finishes: &[Finish],
    now_ms: i64,
) -> Result<WrittenTransitions> {
    let mut written = WrittenTransitions::default();
    if finishes.iter().all(|finish| finish.transition.status == JobStatus::Successful) {
        let news: Vec<[Value<'_>; 5]> = finishes.iter().map(success_values).collect();
        let parameters = [Value::rows(&news), now_ms.into()];
        connection.update_returning(&WRITE_SUCCESSES, &parameters, &mut |row| written.add(row))?;
        return Ok(written);
    }
    let news: Vec<[Value<'_>; 11]> = finishes.iter().map(transition_values).collect();
    let parameters = [Value::rows(&news), now_ms.into()];
    connection.update_returning(&WRITE_TRANSITIONS, &parameters, &mut |row| written.add(row))?;
    if written.ended.iter().any(|job| job.columns.status == JobStatus::Scheduled) {
        connection.wake(WakeUps::DUE);
    }
    Ok(written)
}

/// The values of a row of `news` in [`WRITE_SUCCESSES`].
fn success_values(finish: &Finish) -> [Value<'_>; 5] {
    let Finish { job_id, attempt, worker_id, transition, exit_code, .. } = finish;
    [
        (*job_id).into(),
        (*attempt).into(),
        (*worker_id).into(),
        (&transition.output).into(),
        (*exit_code).into(),
    ]
}

/// The values of a row of `news` in [`WRITE_TRANSITIONS`].
fn transition_values(finish: &Finish) -> [Value<'_>; 11] {
    let Finish { job_id, attempt, worker_id, transition, exit_code, .. } = finish;
    [
        (*job_id).into(),
        (*attempt).into(),
        (*worker_id).into(),
        transition.status.as_str().into(),
        transition.attempt.into(),
        transition.failures.into(),
        transition.interruptions.into(),
        transition.delay_ms.into(),
        (&transition.last_error).into(),
        (&transition.output).into(),
        (*exit_code).into(),
    ]
}

impl WrittenTransitions {
    /// Adds a job that the update returned.
    fn add(&mut self, row: &dyn Row) -> Result<()> {
        let status = row.parsed(3, JobStatus::parse)?;
        if let Some(key) = row.lossy_text(5)?.filter(|_key| status != JobStatus::Pending) {
            self.freed_keys.push(key);
        }
        self.has_limits |= row.optional_integer(7)?.is_some();
        self.ended.push(Ended {
            job_id: row.integer(0)?,
            run_id: row.optional_integer(1)?,
            // The name is needed only for the message of skipped children.
            name: if status == JobStatus::Successful { None } else { row.lossy_text(2)? },
            columns: EndColumns { status, allow_failure: row.integer(4)? != 0, upstream_failed: false },
            belonging: Belonging::of(row.optional_integer(6)?),
        });
        Ok(())
    }
}

/// Counts the rounds of jobs that repeat. Other jobs need no statement for this.
fn write_rounds(connection: &mut dyn Connection, finishes: &[&Finish]) -> Result<()> {
    for finish in finishes {
        let Some(rounds) = finish.transition.rounds else { continue };
        connection.execute(
            "UPDATE jobs SET retry = {with_integer retry rounds $2} WHERE id = $1",
            &[finish.job_id.into(), rounds.into()],
        )?;
    }
    Ok(())
}

fn record_attempts(connection: &mut dyn Connection, finishes: &[&Finish], now_ms: i64) -> Result<()> {
    let records: Vec<[Value<'_>; 5]> = finishes
        .iter()
        .filter_map(|finish| {
            let outcome = finish.transition.record?;
            Some([
                finish.job_id.into(),
                finish.attempt.into(),
                finish.worker_id.into(),
                outcome.as_str().into(),
                (&finish.transition.last_error).into(),
            ])
        })
        .collect();
    if records.is_empty() {
        return Ok(());
    }
    connection.execute(
        "INSERT INTO job_attempts (job_id, attempt, worker_id, outcome, error, ready_at, started_at, finished_at)
         SELECT news.job_id, news.attempt, news.worker_id, news.outcome, news.error, jobs.ready_at, jobs.started_at, $2
         FROM {rows $1: job_id integer, attempt integer, worker_id integer, outcome text, error text}
              AS news
         JOIN jobs ON {by jobs.id = news.job_id}
         WHERE true
         ON CONFLICT (job_id, attempt) DO NOTHING",
        &[Value::rows(&records), now_ms.into()],
    )?;
    Ok(())
}
