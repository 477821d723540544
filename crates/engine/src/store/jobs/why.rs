//! Why a job is not running: reasons from the tables, in the order in which a person would ask.

use crate::decide::parts_of_event;
use crate::status::{JobStatus, RunStatus, WaitsFor};
use crate::store::claim::capabilities::Unfit;
use crate::store::jobs::broken::BrokenBefore;
use crate::store::jobs::rounds::Rounds;
use crate::store::jobs::{Job, label, read_job};
use crate::store::queues::Rate;
use crate::store::queues::rules::{count, read_rules};
use crate::store::runs::Run;
use crate::store::workers::Worker;
use crate::store::{Jobs, Runs, json_ids};
use windlass_db::error::Result;
use windlass_db::{Connection, all, one};
use windlass_workflow::kinds::approval::prompt_of;
use windlass_workflow::kinds::is_wait;

/// How many holders of a concurrency key are named.
const HOLDERS_MAX: i64 = 5;

/// A job and the reasons for its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The job.
    pub job: Job,
    /// The reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// What decides whether a PENDING job can be claimed: the names of the paused queues, and the workers that are alive.
#[derive(Default)]
struct QueuesAndWorkers {
    paused: Vec<String>,
    alive: Vec<Worker>,
}

/// A reason for a job's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// These parents are unfinished, as (label, state).
    WaitsForParents(Vec<(String, JobStatus)>),
    /// Its time has not come. It is a retry if `failures` is above 0.
    WaitsForTime {
        /// The instant, in milliseconds since the Unix epoch.
        execute_after: i64,
        /// Failures so far.
        failures: i64,
    },
    /// It repeats, and its next round has not come.
    WaitsForRound {
        /// When the next round is due, in milliseconds since the Unix epoch.
        execute_after: i64,
        /// The number of the next round.
        round: i64,
        /// How many rounds there may be.
        max: i64,
        /// The condition that ends the rounds.
        until: String,
    },
    /// It sleeps until this instant.
    Sleeps {
        /// The instant, in milliseconds since the Unix epoch.
        until: i64,
    },
    /// It is due, but no worker or service is running to promote it.
    NoScheduler,
    /// Its queue is paused.
    QueuePaused(String),
    /// No live worker takes this kind from this queue, or from this run.
    NoWorker {
        /// The kind.
        kind: String,
        /// The queue.
        queue: String,
        /// How many workers are alive.
        alive: i64,
    },
    /// Live workers take this kind from this queue, but lack a capability that it requires.
    NoCapability {
        /// The capabilities that it requires.
        requires: Vec<String>,
    },
    /// Live workers would take it, but their version is too old.
    WorkersTooOld {
        /// The version that it requires.
        code_version: i64,
        /// The newest version among those workers.
        newest: i64,
    },
    /// Its queue runs as many jobs as its limit allows.
    QueueFull {
        /// The queue.
        queue: String,
        /// The limit.
        limit: i64,
        /// How many of its jobs are running.
        running: i64,
    },
    /// Its queue has started as many jobs as its rate allows.
    QueueRate {
        /// The queue.
        queue: String,
        /// The rate.
        rate: Rate,
        /// When the next job may start.
        next_at: Option<i64>,
    },
    /// Its queue runs one job at a time in order of arrival, and it is another job's turn.
    NotItsTurn {
        /// The queue.
        queue: String,
        /// The job whose turn it is.
        turn_job_id: i64,
    },
    /// As many jobs as allowed hold slots of its concurrency key.
    KeyTaken {
        /// The key.
        key: String,
        /// The limit.
        limit: i64,
        /// The jobs that hold the slots, by label.
        holders: Vec<String>,
    },
    /// All threads of the workers that would take it are busy.
    WorkersBusy {
        /// Workers that take this kind from this queue.
        workers: i64,
        /// The number of their threads.
        threads: i64,
        /// How many jobs they are running.
        running: i64,
    },
    /// How many jobs of its queue come first.
    Behind(i64),
    /// It is running.
    Runs {
        /// The worker.
        worker_id: i64,
        /// The host and process id of the worker, if it is alive.
        process: Option<(String, i64)>,
        /// Whether it was asked to stop.
        stopping: bool,
    },
    /// It is a handler, and the jobs of its run, or the handlers before it, have not ended.
    WaitsForEndOfRun,
    /// It has started a run, which is not over.
    WaitsForRun {
        /// The run.
        run_id: i64,
        /// The name of its workflow.
        workflow: String,
        /// Its state.
        status: RunStatus,
        /// Whether the job was asked to stop.
        stopping: bool,
    },
    /// The scheduler decides next whether it runs.
    WaitsForDecision,
    /// It waits for an event.
    WaitsForEvent {
        /// The name of the event.
        event: String,
        /// Its key, if it has one.
        key: Option<String>,
        /// When it stops waiting.
        deadline_at: Option<i64>,
    },
    /// It waits for a person.
    WaitsForApproval {
        /// The question.
        prompt: String,
        /// When it stops waiting.
        deadline_at: Option<i64>,
    },
    /// It has `for_each`, and its items have not all ended.
    WaitsForItems {
        /// How many items have not ended.
        unfinished: i64,
        /// How many of them run.
        running: i64,
        /// How many items it has.
        items: i64,
    },
    /// Its run waits: as many runs as allowed have slots of the run's concurrency key.
    RunWaitsForSlot(RunSlot),
    /// It is an item, and as many items as allowed run.
    WaitsForTurn {
        /// The job with `for_each`, by label.
        group: String,
        /// How many items may run at a time.
        max_parallel: i64,
    },
    /// It fails if it is not over at this instant, in milliseconds since the Unix epoch.
    HasDeadline(i64),
    /// It is finished.
    Over {
        /// Its last error, if any.
        error: Option<String>,
        /// If it was skipped because of jobs before it: these jobs.
        broken: BrokenBefore,
    },
}

/// A slot of a concurrency key that a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSlot {
    /// The key.
    pub key: String,
    /// How many runs with the key may be active at a time.
    pub limit: i64,
    /// The runs that have the slots, five at most.
    pub holders: Vec<i64>,
}

impl Runs<'_> {
    /// The slot of its concurrency key that a run waits for; `None` if it waits for none.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn awaited_slot(&self, run: &Run) -> Result<Option<RunSlot>> {
        let Some((key, limit)) = run.concurrency.clone().filter(|_key| run.waits_for.is_some()) else {
            return Ok(None);
        };
        Ok(Some(RunSlot { holders: self.slot_holders(&key)?, key, limit }))
    }
}

impl Jobs<'_> {
    /// Explains the state of a job.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn why(&self, job_id: i64) -> Result<Why> {
        let job = self.get(job_id)?;
        let is_pending = job.status == JobStatus::Pending;
        let common = if is_pending { self.queues_and_workers()? } else { QueuesAndWorkers::default() };
        self.why_of(job, &common)
    }

    /// The same for several jobs, in the order of their ids. Those that are not there any more are left out. What all PENDING jobs
    /// ask for is read once.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn why_each(&self, job_ids: &[i64]) -> Result<Vec<Why>> {
        let jobs = self.store.read(|connection| {
            let sql = "SELECT {job_columns} FROM jobs WHERE id {in $1} ORDER BY id";
            all(connection, sql, &[(&json_ids(job_ids)).into()], read_job)
        })?;
        let common = if jobs.is_empty() { QueuesAndWorkers::default() } else { self.queues_and_workers()? };
        jobs.into_iter().map(|job| self.why_of(job, &common)).collect()
    }

    fn why_of(&self, job: Job, common: &QueuesAndWorkers) -> Result<Why> {
        let mut reasons = match job.status {
            JobStatus::Blocked => self.why_blocked(&job)?,
            JobStatus::Scheduled => self.why_scheduled(&job)?,
            JobStatus::Pending => self.why_pending(&job, common)?,
            JobStatus::Running => self.why_running(&job)?,
            JobStatus::Waiting => self.why_waiting(&job)?,
            JobStatus::Successful | JobStatus::Failed | JobStatus::Skipped | JobStatus::Cancelled => {
                let is_after_broken = job.status == JobStatus::Skipped && job.upstream_failed;
                let broken =
                    if is_after_broken { self.broken_before(job.id)? } else { BrokenBefore::default() };
                vec![Reason::Over { error: job.last_error.clone(), broken }]
            }
        };
        if let Some(at_ms) = job.deadline_at.filter(|_at_ms| job.finished_at.is_none()) {
            reasons.push(Reason::HasDeadline(at_ms));
        }
        Ok(Why { job, reasons })
    }

    fn why_blocked(&self, job: &Job) -> Result<Vec<Reason>> {
        let run = job.run_id.map(|run_id| self.store.runs().find(run_id)).transpose()?.flatten();
        if let Some(slot) = run.map(|run| self.store.runs().awaited_slot(&run)).transpose()?.flatten() {
            let mut reasons = vec![Reason::RunWaitsForSlot(slot)];
            if self.store.workers().live()?.is_empty() {
                reasons.push(Reason::NoScheduler);
            }
            return Ok(reasons);
        }
        if let Some(group) = job.group_id.map(|group_id| self.find(group_id)).transpose()?.flatten() {
            let max_parallel = group.max_parallel.unwrap_or_default();
            return Ok(vec![Reason::WaitsForTurn { group: group.label(), max_parallel }]);
        }
        let parents = self.open_parents(job.id)?;
        if parents.is_empty() && job.handler.is_some() {
            return Ok(vec![Reason::WaitsForEndOfRun]);
        }
        Ok(vec![Reason::WaitsForParents(parents)])
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
        let is_wait = is_wait(&job.kind);
        let mut reasons =
            if is_wait {
                vec![Reason::Sleeps { until: job.execute_after }]
            } else {
                vec![self.next_round(job)?.unwrap_or(Reason::WaitsForTime {
                    execute_after: job.execute_after,
                    failures: job.failures,
                })]
            };
        let workers = self.store.workers().live()?;
        if workers.is_empty() && job.execute_after <= self.store.clock.now_ms() {
            reasons.push(Reason::NoScheduler);
        } else if !is_wait && !workers.iter().any(|worker| worker.takes(job)) {
            reasons.push(no_worker(job, &workers));
        }
        Ok(reasons)
    }

    /// The round that a job which repeats waits for; `None` if it waits for another attempt of a round.
    fn next_round(&self, job: &Job) -> Result<Option<Reason>> {
        let Some(Rounds { ended, max, until }) = self.rounds(job.id)?.filter(|_rounds| job.failures == 0)
        else {
            return Ok(None);
        };
        let (execute_after, round) = (job.execute_after, ended + 1);
        Ok((ended > 0).then_some(Reason::WaitsForRound { execute_after, round, max, until }))
    }

    fn queues_and_workers(&self) -> Result<QueuesAndWorkers> {
        Ok(QueuesAndWorkers { paused: self.store.queues().paused()?, alive: self.store.workers().live()? })
    }

    fn why_pending(
        &self,
        job: &Job,
        QueuesAndWorkers { paused, alive }: &QueuesAndWorkers,
    ) -> Result<Vec<Reason>> {
        if paused.contains(&job.queue) {
            return Ok(vec![Reason::QueuePaused(job.queue.clone())]);
        }
        let takers: Vec<&Worker> = alive.iter().filter(|worker| worker.takes(job)).collect();
        if takers.is_empty() {
            return Ok(vec![no_worker(job, alive)]);
        }
        let now_ms = self.store.clock.now_ms();
        let limits = self.store.read(|connection| reached_limits(connection, &job.queue, job.id, now_ms))?;
        if !limits.is_empty() {
            return Ok(limits);
        }
        let threads = takers.iter().map(|worker| worker.threads).sum();
        let running = takers.iter().map(|worker| worker.running).sum();
        let busy = Reason::WorkersBusy { workers: takers.len() as i64, threads, running };
        Ok(vec![busy, Reason::Behind(self.jobs_before(job)?)])
    }

    fn jobs_before(&self, job: &Job) -> Result<i64> {
        self.store.read(|connection| {
            one(
                connection,
                "SELECT count(*) FROM jobs
                 WHERE status = 'PENDING' AND kind > '' AND queue = $1
                   AND ({rank}, id) < (SELECT {rank}, id FROM jobs AS this WHERE this.id = $2)",
                &[(&job.queue).into(), job.id.into()],
                |row| row.integer(0),
            )
        })
    }

    fn why_waiting(&self, job: &Job) -> Result<Vec<Reason>> {
        let mut reasons = match (job.waits_for, &job.concurrency_key) {
            (Some(WaitsFor::Slot), Some(key)) => vec![self.key_taken(key, job.concurrency_limit)?],
            (Some(WaitsFor::Event | WaitsFor::Approval), _) => return self.why_wait(job),
            (Some(WaitsFor::Items), _) => return Ok(vec![self.waits_for_items(job)?]),
            (Some(WaitsFor::Run), _) => vec![self.waits_for_run(job)?.unwrap_or(Reason::WaitsForDecision)],
            (Some(WaitsFor::Slot | WaitsFor::Decision) | None, _) => vec![Reason::WaitsForDecision],
        };
        if self.store.workers().live()?.is_empty() {
            reasons.push(Reason::NoScheduler);
        }
        Ok(reasons)
    }

    fn why_wait(&self, job: &Job) -> Result<Vec<Reason>> {
        self.store.read(|connection| {
            one(
                connection,
                "SELECT event, wait_ends_at, payload FROM jobs WHERE id = $1",
                &[job.id.into()],
                |row| {
                    let deadline_at = row.optional_integer(1)?;
                    let payload = row.lossy_text(2)?.unwrap_or_default();
                    Ok(vec![match row.lossy_text(0)? {
                        Some(event) => {
                            let (name, key) = parts_of_event(&event);
                            let (event, key) = (name.to_owned(), (!key.is_empty()).then(|| key.to_owned()));
                            Reason::WaitsForEvent { event, key, deadline_at }
                        }
                        None => {
                            let prompt = prompt_of(&payload).unwrap_or_default();
                            Reason::WaitsForApproval { prompt, deadline_at }
                        }
                    }])
                },
            )
        })
    }

    fn waits_for_items(&self, group: &Job) -> Result<Reason> {
        self.store.read(|connection| {
            one(
                connection,
                "SELECT count(*), coalesce(sum(CASE WHEN finished_at IS NULL THEN 1 ELSE 0 END), 0),
                        coalesce(sum(CASE WHEN status = 'RUNNING' THEN 1 ELSE 0 END), 0)
                 FROM jobs WHERE group_id IS NOT NULL AND group_id = $1",
                &[group.id.into()],
                |row| {
                    let (items, unfinished, running) = (row.integer(0)?, row.integer(1)?, row.integer(2)?);
                    Ok(Reason::WaitsForItems { unfinished, running, items })
                },
            )
        })
    }

    fn waits_for_run(&self, job: &Job) -> Result<Option<Reason>> {
        let child = self.store.runs().started_by(job.id, job.attempt)?;
        let stopping = job.cancel_requested_at.is_some();
        Ok(child.map(|(run_id, workflow, status)| Reason::WaitsForRun { run_id, workflow, status, stopping }))
    }

    fn key_taken(&self, key: &str, limit: Option<i64>) -> Result<Reason> {
        let holders = self.store.read(|connection| {
            all(
                connection,
                "SELECT id, run_id, name FROM jobs
                 WHERE concurrency_key IS NOT NULL AND concurrency_key = $1
                   AND status IN ('PENDING', 'RUNNING')
                 ORDER BY id LIMIT $2",
                &[key.into(), HOLDERS_MAX.into()],
                |row| {
                    let name = row.lossy_text(2)?;
                    Ok(label(row.integer(0)?, row.optional_integer(1)?, name.as_deref()))
                },
            )
        })?;
        Ok(Reason::KeyTaken { key: key.to_owned(), limit: limit.unwrap_or(1), holders })
    }

    fn why_running(&self, job: &Job) -> Result<Vec<Reason>> {
        let worker_id = job.worker_id.unwrap_or_default();
        let workers = self.store.workers().live()?;
        let process =
            workers.into_iter().find(|worker| worker.id == worker_id).map(|worker| (worker.host, worker.pid));
        Ok(vec![Reason::Runs { worker_id, process, stopping: job.cancel_requested_at.is_some() }])
    }
}

impl Worker {
    /// Whether this worker, if it is alive, would claim the job, if nothing else prevented it.
    #[must_use]
    pub fn takes(&self, job: &Job) -> bool {
        is_in_scope(self, job)
            && self.capabilities().check(&job.kind, &job.requires, job.code_version).is_ok()
    }
}

/// Whether the job is within the queues and runs of a worker.
fn is_in_scope(worker: &Worker, job: &Job) -> bool {
    let queues = worker.queues.as_deref().map(serde_json::from_str::<Vec<String>>);
    let runs = worker.run_ids.as_deref().map(serde_json::from_str::<Vec<i64>>);
    queues.is_none_or(|queues| queues.is_ok_and(|queues| queues.contains(&job.queue)))
        && runs.is_none_or(|runs| {
            let run_id = job.root_run_id.or(job.run_id);
            runs.is_ok_and(|runs| run_id.is_some_and(|run_id| runs.contains(&run_id)))
        })
}

/// Explains why no live worker takes the job, by the worker that comes closest.
fn no_worker(job: &Job, alive: &[Worker]) -> Reason {
    let is_unfit = |worker: &&Worker, reason: Unfit| {
        is_in_scope(worker, job)
            && worker.capabilities().check(&job.kind, &job.requires, job.code_version) == Err(reason)
    };
    if alive.iter().any(|worker| is_unfit(&worker, Unfit::Capabilities)) {
        return Reason::NoCapability { requires: serde_json::from_str(&job.requires).unwrap_or_default() };
    }
    let too_old = alive.iter().filter(|worker| is_unfit(worker, Unfit::Version));
    if let Some(newest) = too_old.map(|worker| worker.code_version).max() {
        return Reason::WorkersTooOld { code_version: job.code_version, newest };
    }
    Reason::NoWorker { kind: job.kind.clone(), queue: job.queue.clone(), alive: alive.len() as i64 }
}

/// The limits of its queue that keep a job from starting.
fn reached_limits(
    connection: &mut dyn Connection,
    queue: &str,
    job_id: i64,
    now_ms: i64,
) -> Result<Vec<Reason>> {
    let Some(rules) = read_rules(connection, &[queue])?.pop() else { return Ok(Vec::new()) };
    let counted = count(connection, &rules, now_ms)?;
    let queue = || rules.name.clone();
    let mut reasons = Vec::new();
    if let Some(limit) = rules.max_running.filter(|limit| counted.running >= *limit) {
        reasons.push(Reason::QueueFull { queue: queue(), limit, running: counted.running });
    }
    if let Some((jobs, interval_ms)) = rules.rate.filter(|(jobs, _interval)| counted.started >= *jobs) {
        let next_at = one(
            connection,
            "SELECT min(expires_at) FROM queue_starts WHERE queue = $1 AND expires_at > $2",
            &[(&rules.name).into(), now_ms.into()],
            |row| row.optional_integer(0),
        )?;
        reasons.push(Reason::QueueRate { queue: queue(), rate: Rate { jobs, interval_ms }, next_at });
    }
    if let (true, Some(turn_job_id), Some(JobStatus::Pending | JobStatus::Scheduled | JobStatus::Running)) =
        (rules.is_fifo, rules.turn_job_id, counted.turn)
        && turn_job_id != job_id
    {
        reasons.push(Reason::NotItsTurn { queue: queue(), turn_job_id });
    }
    Ok(reasons)
}
