//! What workers do: register, claim jobs, end attempts, renew their lease. What people do is with the nouns, such as
//! `store.runs()`.

use crate::decide::for_each::GROUP_KIND;
use crate::measurements::MeasuredOutcome;
use crate::status::{JobStatus, WorkerStatus};
use crate::store::cancel::Urgency;
use crate::store::claim::capabilities::WorkerCapabilities;
use crate::store::claim::claim;
use crate::store::claim::job::read_retry_state;
use crate::store::claim::ready::release;
use crate::store::claim::request::{CLAIM_MAX, CLAIM_MAX_OF_ONE_WRITER, ClaimRequest, Claims, Scope};
use crate::store::claim::selection::has_claimable;
use crate::store::evidence::{AttemptKey, Evidence, attempt_claimed, attempt_ended};
use crate::store::finish::{Ending, Finish, Finished, end, fail_unreadable};
use crate::store::logs::{LogLine, append};
use crate::store::workers::NewWorker;
use crate::store::{ForWorkers, json_ids, json_list};
use crate::transition::RetryState;
use std::sync::Arc;
use windlass_db::error::Result;
use windlass_db::{CommitOutcome, Fragment, Writers, all, one};
use windlass_system::wake_ups::WakeUps;

/// Whether a row of `jobs` is of the runs in $1 or below them, which are all if it is NULL, and in a queue that is not paused.
pub(crate) const OF_RUNS_IN_ACTIVE_QUEUES: Fragment = Fragment {
    name: "of_runs_in_active_queues",
    sql: "(CAST($1 AS TEXT) IS NULL OR coalesce(root_run_id, run_id) {in $1})
          AND queue NOT IN (SELECT name FROM queues WHERE paused_at IS NOT NULL)",
};

/// The kind of jobs that call workflows.
const CALL: &str = "workflow";

impl ForWorkers<'_> {
    /// Claims jobs for a worker.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn claim(&self, request: ClaimRequest) -> Result<Claims> {
        let clock = self.store.clock.clone();
        let worker_id = request.worker_id;
        let evidence = Evidence::rows(move |connection, claims: &Claims| match claims {
            Claims::Jobs(jobs) if !jobs.is_empty() => attempt_claimed(connection, jobs[0].key(worker_id)),
            Claims::Jobs(_) | Claims::Fenced => Ok(CommitOutcome::NotKept),
        });
        let claims = self.store.write("claim jobs", evidence, move |connection| {
            let claimed = claim(connection, &request, None, Vec::new(), &clock)?;
            fail_unreadable(connection, claimed.unreadable, request.worker_id, clock.now_ms())?;
            Ok(claimed.claims)
        })?;
        self.measure_claims(&claims);
        Ok(claims)
    }

    /// The most jobs that a worker should claim at a time.
    #[must_use]
    pub fn claim_max(&self) -> usize {
        match self.store.database_capabilities().writers {
            Writers::OneAtATime => CLAIM_MAX_OF_ONE_WRITER,
            Writers::SideBySide => CLAIM_MAX,
        }
    }

    /// Whether a claim would find a job. Takes no write lock.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn has_claimable(&self, request: &ClaimRequest) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.read(|connection| has_claimable(connection, request, now_ms))
    }

    /// Registers a worker and returns its id.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn register(&self, worker: NewWorker) -> Result<i64> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("register a worker", Evidence::Token, move |connection| {
            let (queues, run_ids) = match &worker.scope {
                Scope::Everything => (None, None),
                Scope::Queues(queues) => (Some(json_list("register a worker", queues)?), None),
                Scope::Runs(run_ids) => (None, Some(json_ids(run_ids))),
            };
            connection.wake(WakeUps::PROGRESS);
            one(
                connection,
                "INSERT INTO workers (host, pid, process, queues, run_ids, kinds, threads, lease_ms,
                                      heartbeat_at, started_at, capabilities, code_version)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11) RETURNING id",
                &[
                    (&worker.host).into(),
                    worker.pid.into(),
                    (&worker.process).into(),
                    (&queues).into(),
                    (&run_ids).into(),
                    (&json_list("register a worker", &worker.worker_capabilities.kinds)?).into(),
                    worker.threads.into(),
                    worker.lease_ms.into(),
                    now_ms.into(),
                    (&json_list("register a worker", &worker.worker_capabilities.capabilities)?).into(),
                    worker.worker_capabilities.code_version.into(),
                ],
                |row| row.integer(0),
            )
        })
    }

    /// Renews a worker's lease. `false` means that the worker is fenced and owns no jobs any more.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn heartbeat(&self, worker_id: i64) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("renew a lease", Evidence::Repeat, move |connection| {
            let renewed = connection.execute(
                "UPDATE workers SET heartbeats = heartbeats + 1, heartbeat_at = $2
                 WHERE id = $1 AND status IN ('ALIVE', 'DRAINING')",
                &[worker_id.into(), now_ms.into()],
            )?;
            Ok(renewed == 1)
        })
    }

    /// Sets a worker's status: draining or stopped. `false` means that the worker is fenced.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn set_status(&self, worker_id: i64, status: WorkerStatus) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("change a worker's state", Evidence::Token, move |connection| {
            let changed = connection.execute(
                "UPDATE workers
                 SET status = $2, stopped_at = CASE WHEN $2 IN ('STOPPED', 'DEAD') THEN CAST($3 AS {integer}) END
                 WHERE id = $1 AND status IN ('ALIVE', 'DRAINING')",
                &[worker_id.into(), status.as_str().into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::PROGRESS);
            Ok(changed == 1)
        })
    }

    /// Records what a worker lacks to start jobs, for people; `None` if it lacks nothing.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn set_shortage(&self, worker_id: i64, shortage: Option<String>) -> Result<()> {
        self.store.write("note a worker's shortage", Evidence::Repeat, move |connection| {
            connection.execute(
                "UPDATE workers SET shortage = $2 WHERE id = $1",
                &[worker_id.into(), (&shortage).into()],
            )?;
            Ok(())
        })
    }

    /// The RUNNING jobs of a worker, each as its id, its run's id and its retry state. They are read in a write transaction,
    /// because a standby that lags behind would show too few.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn claimed_by(&self, worker_id: i64) -> Result<Vec<(i64, Option<i64>, RetryState)>> {
        self.store.write("look at what a worker runs", Evidence::Repeat, move |connection| {
            all(
                connection,
                "SELECT id, attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt,
                        retry, run_id
                 FROM jobs WHERE worker_id = $1 AND status = 'RUNNING'",
                &[worker_id.into()],
                |row| Ok((row.integer(0)?, row.optional_integer(8)?, read_retry_state(row, 1)?)),
            )
        })
    }
    /// Writes lines of output. Lines that exist are left as they are, so a repetition is harmless.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn append_logs(&self, lines: Arc<Vec<LogLine>>) -> Result<()> {
        self.store.write("write logs", Evidence::Repeat, move |connection| {
            append(connection, &lines.iter().collect::<Vec<_>>())?;
            connection.wake(WakeUps::PROGRESS);
            Ok(())
        })
    }

    /// The RUNNING jobs of a worker that were asked to stop, with the time that they get.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn cancel_requests(&self, worker_id: i64) -> Result<Vec<(i64, Urgency)>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id, cancel_at_once,
                        CASE WHEN deadline_at <= cancel_requested_at THEN 1 ELSE 0 END
                 FROM jobs
                 WHERE worker_id = $1 AND status = 'RUNNING' AND cancel_requested_at IS NOT NULL",
                &[worker_id.into()],
                |row| {
                    let urgency = match (row.integer(1)?, row.integer(2)?) {
                        (0, 0) => Urgency::WithGrace,
                        (0, _) => Urgency::PastDeadline,
                        (_, _) => Urgency::AtOnce,
                    };
                    Ok((row.integer(0)?, urgency))
                },
            )
        })
    }

    /// Whether the scope has work for a worker with these capabilities, now or later: a job that can be claimed, that runs,
    /// or that waits for its time, a limit or a slot. Jobs in paused queues do not count.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn has_work(&self, scope: &Scope, worker_capabilities: &WorkerCapabilities) -> Result<bool> {
        let request = ClaimRequest {
            worker_id: 0,
            scope: scope.clone(),
            worker_capabilities: worker_capabilities.clone(),
            limit: 1,
            idle_threads: 1,
        };
        if self.has_claimable(&request)? {
            return Ok(true);
        }
        let run_ids = match scope {
            Scope::Everything | Scope::Queues(_) => None,
            Scope::Runs(run_ids) => Some(json_ids(run_ids)),
        };
        let takes_queue = |queue: &String| match scope {
            Scope::Everything | Scope::Runs(_) => true,
            Scope::Queues(queues) => queues.contains(queue),
        };
        // One statement for each status, because each status has a small index of its own.
        let statements = [
            "SELECT DISTINCT queue, kind, requires, code_version FROM jobs
             WHERE worker_id IS NOT NULL AND status = 'RUNNING' AND {of_runs_in_active_queues}",
            "SELECT DISTINCT queue, kind, requires, code_version FROM jobs
             WHERE status = 'PENDING' AND kind > '' AND {of_runs_in_active_queues}",
            "SELECT DISTINCT queue, kind, requires, code_version FROM jobs
             WHERE status = 'SCHEDULED' AND {of_runs_in_active_queues}",
            // A job that has started a run is work again when the run is over. Until then the jobs of that run are.
            "SELECT DISTINCT queue, kind, requires, code_version FROM jobs
             WHERE status = 'WAITING' AND waits_for IS NOT NULL AND {of_runs_in_active_queues}
               AND (waits_for <> 'run' OR EXISTS (SELECT 1 FROM runs
                                                  WHERE runs.parent_job_id IS NOT NULL
                                                    AND {by runs.parent_job_id = jobs.id}
                                                    AND {by runs.parent_attempt = jobs.attempt}
                                                    AND {guard runs.finished_at IS NOT NULL}))",
            // The first jobs of a run that waits for a slot.
            "SELECT DISTINCT queue, kind, requires, code_version FROM jobs
             WHERE run_id {in SELECT id FROM runs WHERE waits_for IS NOT NULL} AND status = 'BLOCKED' AND blocked_by = 0
               AND {of_runs_in_active_queues}",
        ];
        self.store.read(|connection| {
            for sql in statements {
                let sorts = all(connection, sql, &[(&run_ids).into()], |row| {
                    let text = |column| Ok(row.lossy_text(column)?.unwrap_or_default());
                    Ok((text(0)?, text(1)?, text(2)?, row.integer(3)?))
                })?;
                let is_fit = |(queue, kind, requires, code_version): &(String, String, String, i64)| {
                    // The scheduler of the worker's process does what no worker claims. A group that waits has items, now or
                    // later.
                    kind == CALL
                        || takes_queue(queue)
                            && (kind == GROUP_KIND
                                || worker_capabilities.check(kind, requires, *code_version).is_ok())
                };
                if sorts.iter().any(is_fit) {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }
}

impl ForWorkers<'_> {
    /// Finishes attempts, with all that follows for other jobs and runs, and claims the next jobs, in one transaction.
    ///
    /// # Errors
    /// Returns the database's error. The transaction may have been kept all the same; calling again is harmless.
    pub fn finish_and_claim(
        &self,
        finishes: Vec<Finish>,
        request: Option<ClaimRequest>,
    ) -> Result<(Finished, Claims)> {
        let clock = self.store.clock.clone();
        let finishes = Arc::new(finishes);
        let evidence = evidence_of(&finishes, request.as_ref().map(|request| request.worker_id));
        let ends = Arc::clone(&finishes);
        let (finished, claims) = self.store.write("finish and claim jobs", evidence, move |connection| {
            let now_ms = clock.now_ms();
            let Ending { finished, ready, snapshot } = end(connection, &finishes, request.as_ref(), now_ms)?;
            let claims = match &request {
                Some(request) => {
                    let claimed = claim(connection, request, snapshot, ready, &clock)?;
                    fail_unreadable(connection, claimed.unreadable, request.worker_id, clock.now_ms())?;
                    claimed.claims
                }
                None => {
                    release(connection, &ready, now_ms)?;
                    Claims::Jobs(Vec::new())
                }
            };
            finished.announce(connection, &claims);
            Ok((finished, claims))
        })?;
        self.measure_ends(&ends, &finished);
        self.measure_claims(&claims);
        Ok((finished, claims))
    }

    /// Counts the attempts that ended and were this worker's.
    fn measure_ends(&self, ends: &[Finish], finished: &Finished) {
        for end in ends.iter().filter(|end| !finished.conflicts.contains(&end.job_id)) {
            let outcome = match (end.transition.record, end.transition.status) {
                (Some(recorded), _) => MeasuredOutcome::Recorded(recorded),
                (None, JobStatus::Successful) => MeasuredOutcome::Successful,
                (None, JobStatus::Skipped) => MeasuredOutcome::Skipped,
                // Given back before it began, or a round that another one follows.
                (
                    None,
                    JobStatus::Pending
                    | JobStatus::Running
                    | JobStatus::Blocked
                    | JobStatus::Scheduled
                    | JobStatus::Waiting
                    | JobStatus::Failed
                    | JobStatus::Cancelled,
                ) => continue,
            };
            self.store.measurements.count_attempt(outcome);
        }
    }

    fn measure_claims(&self, claims: &Claims) {
        let Claims::Jobs(jobs) = claims else { return };
        let now_ms = self.store.clock.now_ms();
        for job in jobs {
            self.store.measurements.job_waits.observe_ms(now_ms - job.ready_at);
        }
    }
}

/// The transaction was kept if one of its claims or one of its ends was kept.
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
            return Ok(CommitOutcome::NotKept);
        };
        let key = AttemptKey { job_id: *job_id, attempt: *attempt, worker_id: *worker_id };
        attempt_ended(connection, key, transition.attempt)
    })
}
