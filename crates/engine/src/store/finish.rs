//! Ending attempts: results, retries and what follows for others, all in one transaction, and the next claim with
//! them. A chain costs one commit a link.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::admission::admit;
use super::claim::{ClaimRequest, Claims, claim};
use super::claim_snapshot::ClaimSnapshot;
use super::evidence::{AttemptKey, Evidence, attempt_claimed, attempt_ended};
use super::logs::{LogLine, append};
use super::promotion::{Promoted, Ready, release};
use super::propagation::{Ended, EndedRun, Propagated, propagate};
use super::{Store, json_ids};
use crate::status::JobStatus;
use crate::transition::Transition;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fate, Reach, Value};
use windlass_system::wake_ups::WakeUps;

/// From so many ends and so many claims on they are worth a transaction each.
const BESIDE_MIN: usize = 200;

/// The end of an attempt, decided and to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// The job.
    pub job_id: i64,
    /// Its run, unless it stands alone.
    pub run_id: Option<i64>,
    /// The attempt that ended: only its owner may end it.
    pub attempt: i64,
    /// The owner.
    pub worker_id: i64,
    /// The state the job goes to.
    pub transition: Transition,
    /// Output that is not written yet.
    pub logs: Vec<LogLine>,
}

/// What came of ending attempts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Finished {
    /// Jobs that somebody else owns by now: their results were discarded.
    pub conflicts: Vec<i64>,
    /// Runs that ended with these jobs.
    pub ended_runs: Vec<EndedRun>,
    /// Jobs that became claimable: children, and what was given back.
    pub claimable: Vec<i64>,
}

impl Finished {
    /// Wakes whoever claims, unless the same transaction has claimed everything that it made claimable:
    /// a chain would wake its worker for nothing at each link.
    fn announce(&self, connection: &mut dyn Connection, claims: &Claims) {
        let claimed: HashSet<i64> = match claims {
            Claims::Jobs(jobs) => jobs.iter().map(|job| job.id).collect(),
            Claims::Fenced => HashSet::new(),
        };
        if self.claimable.iter().any(|job_id| !claimed.contains(job_id)) {
            connection.wake(WakeUps::PENDING);
        }
    }
}

/// What attempts that ended leave behind.
struct Written {
    ended: Vec<Ended>,
    /// Concurrency keys of which a slot became free.
    freed_keys: Vec<String>,
    /// There are queues whose next job may go when another ends.
    has_limits: bool,
}

impl Store {
    /// Ends attempts, promotes what they unblocked, decides runs, and claims the next jobs, durably
    /// and at once.
    ///
    /// # Errors
    /// The database's. After one the outcome may be unknown; calling again is harmless.
    pub fn finish_and_claim(
        &self,
        finishes: Vec<Finish>,
        request: Option<ClaimRequest>,
    ) -> Result<(Finished, Claims)> {
        let request = match request {
            Some(request) if self.has_room_beside(&finishes, &request) => {
                return self.finish_beside_claim(finishes, request);
            }
            Some(_) | None => request,
        };
        let clock = self.clock.clone();
        let finishes = Arc::new(finishes);
        let evidence = evidence_of(&finishes, request.as_ref().map(|request| request.worker_id));
        self.write("finish and claim jobs", evidence, move |connection| {
            let now_ms = clock.now_ms();
            let Ending { finished, ready, look } = end(connection, &finishes, request.as_ref(), now_ms)?;
            let claims = match &request {
                Some(request) => claim(connection, request, look, ready, &clock)?,
                None => {
                    release(connection, &ready, now_ms)?;
                    Claims::Jobs(Vec::new())
                }
            };
            finished.announce(connection, &claims);
            Ok((finished, claims))
        })
    }
}

/// The transaction was kept if one of its claims was, or one of its ends.
fn evidence_of(finishes: &Arc<Vec<Finish>>, worker_id: Option<i64>) -> Evidence<(Finished, Claims)> {
    let finishes = Arc::clone(finishes);
    Evidence::rows(move |connection, (finished, claims): &(Finished, Claims)| {
        if let (Claims::Jobs(jobs), Some(worker_id)) = (claims, worker_id)
            && let Some(job) = jobs.first()
        {
            return attempt_claimed(connection, job.key(worker_id));
        }
        let ended = finishes.iter().find(|finish| !finished.conflicts.contains(&finish.job_id));
        let Some(Finish { job_id, attempt, worker_id, transition, .. }) = ended else {
            return Ok(Fate::NotKept);
        };
        let key = AttemptKey { job_id: *job_id, attempt: *attempt, worker_id: *worker_id };
        attempt_ended(connection, key, transition.attempt)
    })
}

impl Store {
    /// Both are large, and transactions run side by side.
    fn has_room_beside(&self, finishes: &[Finish], request: &ClaimRequest) -> bool {
        match self.reach() {
            Reach::OneKernel => false,
            Reach::ManyHosts => finishes.len() >= BESIDE_MIN && request.limit >= BESIDE_MIN,
        }
    }

    /// The same as two transactions at the same time: a server has more than one core. Where so much is
    /// claimed it does not matter that what these ends unblock comes with the next claim.
    ///
    /// When one of them fails the other may have been done: a result that is offered again is refused as no
    /// longer owned, and a claim that nobody heard of is found in the tables.
    fn finish_beside_claim(
        &self,
        finishes: Vec<Finish>,
        request: ClaimRequest,
    ) -> Result<(Finished, Claims)> {
        std::thread::scope(|scope| {
            let claiming = std::thread::Builder::new()
                .name("windlass-claiming".to_owned())
                .spawn_scoped(scope, || self.claim(request.clone()));
            let finished = self.finish_and_claim(finishes, None);
            let Ok(claiming) = claiming else {
                // The system has no thread to give: one after the other.
                return Ok((finished?.0, self.claim(request.clone())?));
            };
            let claims = claiming.join().map_err(|_panic| Error::internal("claim jobs", "it panicked"))?;
            Ok((finished?.0, claims?))
        })
    }
}

/// Ends attempts inside the caller's transaction, which claims nothing. What follows from them is for anybody.
pub(super) fn finish(connection: &mut dyn Connection, finishes: &[Finish], now_ms: i64) -> Result<()> {
    let Ending { finished, ready, .. } = end(connection, finishes, None, now_ms)?;
    release(connection, &ready, now_ms)?;
    finished.announce(connection, &Claims::Jobs(Vec::new()));
    Ok(())
}

/// What ending attempts came to, for who claims next.
#[derive(Default)]
struct Ending {
    finished: Finished,
    ready: Vec<Ready>,
    look: Option<ClaimSnapshot>,
}

/// Ends attempts. The caller claims or releases what is ready, and announces what became claimable. `request` is of the
/// claim that follows.
fn end(
    connection: &mut dyn Connection,
    finishes: &[Finish],
    request: Option<&ClaimRequest>,
    now_ms: i64,
) -> Result<Ending> {
    if finishes.is_empty() {
        return Ok(Ending::default());
    }
    lock_runs(connection, finishes.iter().filter_map(|finish| finish.run_id).collect())?;
    let Written { ended, freed_keys, has_limits } = write_transitions(connection, finishes, now_ms)?;
    let owned: HashMap<i64, JobStatus> = ended.iter().map(|job| (job.job_id, job.status)).collect();
    let kept: Vec<&Finish> = finishes.iter().filter(|finish| owned.contains_key(&finish.job_id)).collect();
    record_attempts(connection, &kept, now_ms)?;
    let logs: Vec<&LogLine> = kept.iter().flat_map(|finish| &finish.logs).collect();
    append(connection, &logs)?;
    let Propagated { ended_runs, promoted, look } = propagate(connection, &ended, request, now_ms)?;
    let Promoted { mut claimable, ready } = promoted;
    let admitted = admit(connection, &freed_keys, now_ms)?;
    let is_more_claimable = !claimable.is_empty() || !admitted.is_empty();
    let look = if is_more_claimable { look.map(ClaimSnapshot::without_candidates) } else { look };
    claimable.extend(admitted);
    claimable.extend(ready.iter().map(|ready| ready.head.place.id));
    claimable.extend(ended.iter().filter(|job| job.status == JobStatus::Pending).map(|job| job.job_id));
    connection.wake(if has_limits { WakeUps::PROGRESS | WakeUps::PENDING } else { WakeUps::PROGRESS });
    let conflicts =
        finishes.iter().map(|finish| finish.job_id).filter(|job_id| !owned.contains_key(job_id)).collect();
    Ok(Ending { finished: Finished { conflicts, ended_runs, claimable }, ready, look })
}

/// Takes the locks of runs, where several transactions write side by side. A run's row is the lock of its jobs:
/// who changes several of them, or counts them, holds it. So none waits for another in a circle.
fn lock_runs(connection: &mut dyn Connection, mut run_ids: Vec<i64>) -> Result<()> {
    run_ids.sort_unstable();
    run_ids.dedup();
    if !connection.dialect().has_many_writers() || run_ids.is_empty() {
        return Ok(());
    }
    connection.execute_with_next(
        "SELECT id FROM runs WHERE id {in $1} ORDER BY id {wait}",
        &[(&json_ids(&run_ids)).into()],
    )
}

/// The same for the runs of some jobs of which nothing else is known.
pub(super) fn lock_runs_of(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<()> {
    if !connection.dialect().has_many_writers() {
        return Ok(());
    }
    connection.execute(
        "WITH named AS MATERIALIZED (SELECT DISTINCT run_id FROM jobs WHERE id {in $1})
         SELECT runs.id FROM named CROSS JOIN runs WHERE {by runs.id = named.run_id}
         ORDER BY named.run_id {wait}",
        &[(&json_ids(job_ids)).into()],
    )?;
    Ok(())
}

/// The fenced update: only the owner of the attempt changes the row. A job that was asked to stop is
/// not tried again.
fn write_transitions(connection: &mut dyn Connection, finishes: &[Finish], now_ms: i64) -> Result<Written> {
    let news: Vec<[Value<'_>; 10]> = finishes
        .iter()
        .map(|Finish { job_id, attempt, worker_id, transition, .. }| {
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
            ]
        })
        .collect();
    let mut written = Written { ended: Vec::new(), freed_keys: Vec::new(), has_limits: false };
    connection.query(
        "UPDATE jobs
         SET status = CASE WHEN jobs.cancel_requested_at IS NOT NULL
                            AND news.status IN ('SCHEDULED', 'PENDING')
                           THEN 'CANCELLED' ELSE news.status END,
             attempt = news.attempt_after,
             failures = news.failures,
             interruptions = news.interruptions,
             execute_after = coalesce($2 + news.delay_ms, jobs.execute_after),
             delay_ms = news.delay_ms,
             last_error = news.last_error,
             output = news.output,
             updated_at = $2,
             finished_at = CASE WHEN news.status IN ('SCHEDULED', 'PENDING')
                                 AND jobs.cancel_requested_at IS NULL
                                THEN NULL ELSE $2 END
         {from} {rows $1: id integer, attempt integer, worker_id integer, status text,
                        attempt_after integer, failures integer, interruptions integer,
                        delay_ms integer, last_error text, output text} AS news
         {where} {by jobs.id = news.id} AND {guard jobs.status = 'RUNNING'} AND jobs.attempt = news.attempt
           AND jobs.worker_id = news.worker_id
         {returning} jobs.id, jobs.run_id, jobs.name,
                   {after jobs.status: CASE WHEN jobs.cancel_requested_at IS NOT NULL
                                             AND news.status IN ('SCHEDULED', 'PENDING')
                                            THEN 'CANCELLED' ELSE news.status END},
                   jobs.allow_failure, jobs.concurrency_key,
                   (SELECT 1 FROM queues WHERE max_running IS NOT NULL OR fifo = 1 LIMIT 1)",
        &[Value::rows(&news), now_ms.into()],
        &mut |row| {
            let status = row.parsed(3, JobStatus::parse)?;
            if let Some(key) = row.lossy_text(5)?.filter(|_key| status != JobStatus::Pending) {
                written.freed_keys.push(key);
            }
            written.has_limits |= row.optional_integer(6)?.is_some();
            written.ended.push(Ended {
                job_id: row.integer(0)?,
                run_id: row.optional_integer(1)?,
                // Others are told the name of what was no success.
                name: if status == JobStatus::Successful { None } else { row.lossy_text(2)? },
                status,
                allow_failure: row.integer(4)? != 0,
            });
            Ok(())
        },
    )?;
    if written.ended.iter().any(|job| job.status == JobStatus::Scheduled) {
        connection.wake(WakeUps::DUE);
    }
    Ok(written)
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
        "INSERT INTO job_attempts (job_id, attempt, worker_id, outcome, error, started_at, finished_at)
         SELECT news.job_id, news.attempt, news.worker_id, news.outcome, news.error, jobs.started_at, $2
         FROM {rows $1: job_id integer, attempt integer, worker_id integer, outcome text, error text}
              AS news
         JOIN jobs ON {by jobs.id = news.job_id}
         WHERE true
         ON CONFLICT (job_id, attempt) DO NOTHING",
        &[Value::rows(&records), now_ms.into()],
    )?;
    Ok(())
}
