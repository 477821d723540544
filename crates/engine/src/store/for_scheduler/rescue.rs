//! Rescue: taking back the jobs of workers that are not alive.
//!
//! One transaction fences a worker and takes back its jobs. A fenced worker can neither claim a job, nor renew its
//! lease, nor write a result, because each of these is guarded by its status.

use crate::store::claim::job::read_retry_state;
use crate::store::evidence::Evidence;
use crate::store::finish::{Finish, finish};
use crate::store::jobs::label;
use crate::store::notifications::mark::mark_dead_workers;
use crate::store::{ForScheduler, json_ids};
use crate::transition::{Outcome, RetryState, after_attempt};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Value, all};
use windlass_system::random::Random;

/// How many jobs one transaction rescues.
const RESCUE_MAX: i64 = 1_000;

/// What a rescue did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rescued {
    /// Workers that were fenced.
    pub fenced: i64,
    /// Jobs that were taken back.
    pub jobs: i64,
    /// Jobs that could not be taken back, each because of an error of its own.
    pub stuck: Vec<StuckJob>,
}

/// A job of a dead worker whose row the database refuses to change.
#[derive(Debug, Clone, PartialEq)]
pub struct StuckJob {
    /// Its id.
    pub job_id: i64,
    /// The job's name for people.
    pub label: String,
    /// Returns the database's error.
    pub error: Error,
}

/// A RUNNING job whose worker is not alive.
#[derive(Debug, Clone)]
struct Orphan {
    job_id: i64,
    run_id: Option<i64>,
    label: String,
    worker_id: i64,
    retry_state: RetryState,
}

impl ForScheduler<'_> {
    /// Fences workers that were found dead, given as (id, heartbeats seen). Then takes back the jobs of every worker
    /// that is not alive. A worker that has renewed its lease since it was checked is not fenced.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn rescue(&self, dead: Vec<(i64, i64)>) -> Result<Rescued> {
        self.rescue_all_but(dead, &[])
    }

    /// The same, leaving out jobs that were found to be stuck.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn rescue_all_but(&self, dead: Vec<(i64, i64)>, stuck: &[i64]) -> Result<Rescued> {
        let now_ms = self.store.clock.now_ms();
        let (random, stuck) = (self.store.random.clone(), json_ids(stuck));
        let rescued = {
            let (dead, stuck) = (dead.clone(), stuck.clone());
            self.store.write("rescue jobs", Evidence::Token, move |connection| {
                let fenced = fence(connection, &dead, now_ms)?;
                let orphans = find_orphans(connection, &stuck)?;
                let jobs = take_back(connection, &orphans, now_ms, &random)?;
                Ok(Rescued { fenced, jobs, stuck: Vec::new() })
            })
        };
        match rescued {
            Err(error) if is_about_rows(&error) => {}
            rescued => return rescued,
        }
        let (fenced, orphans) = self.store.write("fence workers", Evidence::Token, move |connection| {
            Ok((fence(connection, &dead, now_ms)?, find_orphans(connection, &stuck)?))
        })?;
        let mut rescued = Rescued { fenced, ..Rescued::default() };
        self.rescue_by_halves(orphans, &mut rescued)?;
        Ok(rescued)
    }

    /// Takes back jobs in smaller and smaller batches, so that one stuck job does not block the others.
    fn rescue_by_halves(&self, mut orphans: Vec<Orphan>, rescued: &mut Rescued) -> Result<()> {
        let (now_ms, random, batch) = (self.store.clock.now_ms(), self.store.random.clone(), orphans.clone());
        let taken = self.store.write("rescue jobs", Evidence::Token, move |connection| {
            take_back(connection, &batch, now_ms, &random)
        });
        match (taken, orphans.as_slice()) {
            (Ok(jobs), _) => rescued.jobs += jobs,
            (Err(error), _) if !is_about_rows(&error) => return Err(error),
            (Err(_), []) => {}
            (Err(error), [Orphan { job_id, label, .. }]) => {
                rescued.stuck.push(StuckJob { job_id: *job_id, label: label.clone(), error });
            }
            (Err(_), several) => {
                let rest = orphans.split_off(several.len() / 2);
                self.rescue_by_halves(orphans, rescued)?;
                self.rescue_by_halves(rest, rescued)?;
            }
        }
        Ok(())
    }

    /// Returns whether there are jobs to take back, without taking the write lock. Jobs in `stuck` do not count.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn has_orphans(&self, stuck: &[i64]) -> Result<bool> {
        let stuck = json_ids(stuck);
        self.store.read(|connection| Ok(!find_orphans(connection, &stuck)?.is_empty()))
    }
}

/// Whether the error may be caused by some of the rows, so that it makes sense to try the others.
fn is_about_rows(error: &Error) -> bool {
    match error {
        Error::Conflict { .. } | Error::Invalid { .. } | Error::Internal { .. } => true,
        Error::NotFound { .. } | Error::Unavailable { .. } => false,
    }
}

fn fence(connection: &mut dyn Connection, dead: &[(i64, i64)], now_ms: i64) -> Result<i64> {
    if dead.is_empty() {
        return Ok(0);
    }
    let seen: Vec<[Value<'_>; 2]> =
        dead.iter().map(|(id, heartbeats)| [(*id).into(), (*heartbeats).into()]).collect();
    let fenced = connection.execute(
        "UPDATE workers SET status = 'DEAD', stopped_at = $2
         FROM {rows $1: id integer, heartbeats integer} AS seen
         WHERE workers.id = seen.id AND workers.heartbeats = seen.heartbeats
           AND workers.status IN ('ALIVE', 'DRAINING')",
        &[Value::rows(&seen), now_ms.into()],
    )?;
    if fenced > 0 {
        let ids: Vec<i64> = dead.iter().map(|(id, _heartbeats)| *id).collect();
        mark_dead_workers(connection, &ids, now_ms)?;
    }
    Ok(i64::try_from(fenced).unwrap_or(i64::MAX))
}

/// Lists RUNNING jobs whose worker is not alive. The index of running jobs keeps this cheap.
fn find_orphans(connection: &mut dyn Connection, stuck: &str) -> Result<Vec<Orphan>> {
    all(
        connection,
        "SELECT id, worker_id, attempt, failures, max_attempts, interruptions, max_interruptions,
                on_interrupt, retry, run_id, name
         FROM jobs
         WHERE worker_id IS NOT NULL AND status = 'RUNNING'
           AND worker_id NOT IN (SELECT id FROM workers WHERE status IN ('ALIVE', 'DRAINING'))
           AND NOT (id {in $2})
         LIMIT $1",
        &[RESCUE_MAX.into(), stuck.into()],
        |row| {
            let job_id = row.integer(0)?;
            let run_id = row.optional_integer(9)?;
            let label = label(job_id, run_id, row.lossy_text(10)?.as_deref());
            Ok(Orphan {
                job_id,
                run_id,
                label,
                worker_id: row.integer(1)?,
                retry_state: read_retry_state(row, 2)?,
            })
        },
    )
}

/// Finishes the attempts of orphans as interrupted. Returns how many.
fn take_back(
    connection: &mut dyn Connection,
    orphans: &[Orphan],
    now_ms: i64,
    random: &Random,
) -> Result<i64> {
    let finishes: Vec<Finish> = orphans
        .iter()
        .map(|orphan| {
            let error = format!("worker {} is gone", orphan.worker_id);
            let outcome = Outcome::Interrupted { error };
            Finish {
                job_id: orphan.job_id,
                run_id: orphan.run_id,
                attempt: orphan.retry_state.attempt,
                worker_id: orphan.worker_id,
                transition: after_attempt(&orphan.retry_state, outcome, random.fraction()),
                exit_code: None,
                logs: Vec::new(),
                artifacts: Vec::new(),
                variables: Vec::new(),
            }
        })
        .collect();
    finish(connection, &finishes, now_ms)?;
    Ok(finishes.len() as i64)
}
