//! Why a job is not running: facts from the tables, in the order a person would ask.

use super::Store;
use super::jobs::Job;
use super::workers::Worker;
use crate::db::one;
use crate::error::Result;
use crate::status::JobStatus;

/// A job and why it is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The job.
    pub job: Job,
    /// Why, the most important first.
    pub reasons: Vec<Reason>,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// These parents are not over, as (label, state).
    WaitsForParents(Vec<(String, JobStatus)>),
    /// Its time comes then; after so many failures, if it is a retry.
    WaitsForTime {
        /// The instant, in milliseconds since the Unix epoch.
        execute_after: i64,
        /// Failures so far.
        failures: i64,
    },
    /// It is due and the scheduler of no process has noticed: none is alive.
    NobodyKeepsTime,
    /// Its queue is paused.
    QueuePaused(String),
    /// No live worker takes this kind from this queue (or of this run).
    NoWorker {
        /// The kind.
        kind: String,
        /// The queue.
        queue: String,
        /// How many workers are alive at all.
        alive: i64,
    },
    /// The workers that would take it have no thread free.
    WorkersBusy {
        /// Workers that take this kind from this queue.
        workers: i64,
        /// Their threads.
        threads: i64,
        /// Jobs they run.
        running: i64,
    },
    /// So many jobs of its queue come first.
    Behind(i64),
    /// It runs.
    Runs {
        /// The worker.
        worker_id: i64,
        /// Its process, when it is alive.
        process: Option<(String, i64)>,
        /// It was asked to stop.
        stopping: bool,
    },
    /// It waits for something from outside.
    WaitsForEvent,
    /// It is over, and this is what was last said of it.
    Over(Option<String>),
}

impl Store {
    /// Why a job is not running, or that it is.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn why(&self, job_id: i64) -> Result<Why> {
        let job = self.job(job_id)?;
        let reasons = match job.status {
            JobStatus::Blocked => vec![Reason::WaitsForParents(self.open_parents(job_id)?)],
            JobStatus::Scheduled => self.why_scheduled(&job)?,
            JobStatus::Pending => self.why_pending(&job)?,
            JobStatus::Running => self.why_running(&job)?,
            JobStatus::Waiting => vec![Reason::WaitsForEvent],
            JobStatus::Successful | JobStatus::Failed | JobStatus::Skipped | JobStatus::Cancelled => {
                vec![Reason::Over(job.last_error.clone())]
            }
        };
        Ok(Why { job, reasons })
    }

    fn open_parents(&self, job_id: i64) -> Result<Vec<(String, JobStatus)>> {
        let parents = self.parents(job_id)?;
        Ok(parents
            .into_iter()
            .filter(|parent| !parent.status.is_terminal())
            .map(|parent| (parent.label(), parent.status))
            .collect())
    }

    fn why_scheduled(&self, job: &Job) -> Result<Vec<Reason>> {
        let mut reasons =
            vec![Reason::WaitsForTime { execute_after: job.execute_after, failures: job.failures }];
        let workers = self.live_workers()?;
        if workers.is_empty() && job.execute_after <= self.clock.now_ms() {
            reasons.push(Reason::NobodyKeepsTime);
        } else if !workers.iter().any(|worker| takes(worker, job)) {
            reasons.push(no_worker(job, &workers));
        }
        Ok(reasons)
    }

    fn why_pending(&self, job: &Job) -> Result<Vec<Reason>> {
        if self.paused_queues()?.contains(&job.queue) {
            return Ok(vec![Reason::QueuePaused(job.queue.clone())]);
        }
        let alive = self.live_workers()?;
        let takers: Vec<&Worker> = alive.iter().filter(|worker| takes(worker, job)).collect();
        if takers.is_empty() {
            return Ok(vec![no_worker(job, &alive)]);
        }
        let threads = takers.iter().map(|worker| worker.threads).sum();
        let running = takers.iter().map(|worker| worker.running).sum();
        let busy = Reason::WorkersBusy { workers: takers.len() as i64, threads, running };
        Ok(vec![busy, Reason::Behind(self.jobs_before(job)?)])
    }

    fn jobs_before(&self, job: &Job) -> Result<i64> {
        self.read(|connection| {
            one(
                connection,
                "SELECT count(*) FROM jobs
                 WHERE status = 'PENDING' AND queue = $1 AND kind = $2
                   AND (priority > $3
                        OR (priority = $3 AND (execute_after < $4 OR (execute_after = $4 AND id < $5))))",
                &[
                    (&job.queue).into(),
                    (&job.kind).into(),
                    job.priority.into(),
                    job.execute_after.into(),
                    job.id.into(),
                ],
                |row| row.integer(0),
            )
        })
    }

    fn why_running(&self, job: &Job) -> Result<Vec<Reason>> {
        let worker_id = job.worker_id.unwrap_or_default();
        let workers = self.live_workers()?;
        let process =
            workers.into_iter().find(|worker| worker.id == worker_id).map(|worker| (worker.host, worker.pid));
        Ok(vec![Reason::Runs { worker_id, process, stopping: job.cancel_requested_at.is_some() }])
    }
}

/// Whether a live worker would claim the job.
fn takes(worker: &Worker, job: &Job) -> bool {
    let lists = |json: &str, wanted: &str| {
        serde_json::from_str::<Vec<String>>(json).is_ok_and(|list| list.iter().any(|item| item == wanted))
    };
    let runs = worker.run_ids.as_deref().map(serde_json::from_str::<Vec<i64>>);
    lists(&worker.kinds, &job.kind)
        && worker.queues.as_deref().is_none_or(|queues| lists(queues, &job.queue))
        && runs
            .is_none_or(|runs| runs.is_ok_and(|runs| job.run_id.is_some_and(|run_id| runs.contains(&run_id))))
}

fn no_worker(job: &Job, alive: &[Worker]) -> Reason {
    Reason::NoWorker { kind: job.kind.clone(), queue: job.queue.clone(), alive: alive.len() as i64 }
}
