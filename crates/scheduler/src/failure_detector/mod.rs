//! The failure detector decides which workers are dead, fences them and takes their jobs back.
//!
//! The observer measures leases by its own monotonic clock. A worker is alive as long as the count of its heartbeats
//! changes within the lease. No two clocks are compared, so a healthy worker is never taken for dead because the clocks of
//! two hosts differ or somebody sets a clock. On the worker's own host, a worker whose process is gone is dead at once.

mod processes;

use std::collections::HashMap;
use std::sync::Arc;

use windlass_engine::store::{Rescued, StuckJob, Worker};
use windlass_engine::{Error, Result, Store};
use windlass_system::process::Liveness;

pub use processes::{MachineProcesses, WorkerProcesses};

/// Decides which workers are dead, from its observations of their heartbeats.
pub struct FailureDetector {
    processes: Arc<dyn WorkerProcesses>,
    /// By the id of the worker.
    observations: HashMap<i64, Observation>,
    /// The time of the last check, by the monotonic clock.
    checked_at_ms: Option<i64>,
    /// Jobs of dead workers that could not be rescued, by their ids, and when to try again by the same clock.
    stuck: HashMap<i64, i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Observation {
    heartbeats: i64,
    /// How long the count has not changed.
    silent_ms: i64,
}

/// The most silence that one check adds. More time may have passed since the last check, but while the observer was stopped
/// or could not read the database, it did not observe the worker.
const SILENCE_MAX_MS: i64 = 600;
/// The time until the next attempt to rescue a job whose rescue the database refused.
const STUCK_MS: i64 = 60_000;

impl Default for FailureDetector {
    fn default() -> Self {
        FailureDetector::with_processes(Arc::new(MachineProcesses))
    }
}

impl FailureDetector {
    /// A failure detector without observations.
    #[must_use]
    pub fn with_processes(processes: Arc<dyn WorkerProcesses>) -> FailureDetector {
        FailureDetector {
            processes,
            observations: HashMap::new(),
            checked_at_ms: None,
            stuck: HashMap::new(),
        }
    }

    /// Checks all workers once. Fences the dead ones and rescues their jobs.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn rescue_dead_workers(&mut self, store: &Store) -> Result<Rescued> {
        let workers = store.workers().live()?;
        let now_ms = store.clock().monotonic_ms();
        let passed_ms = now_ms - self.checked_at_ms.replace(now_ms).unwrap_or(now_ms);
        self.observations.retain(|id, _observation| workers.iter().any(|worker| worker.id == *id));
        let mut dead = Vec::new();
        for worker in &workers {
            let silent_ms = self.observe(worker, passed_ms);
            if is_dead(self.liveness_after_cleanup(worker, store)?, silent_ms, worker.lease_ms) {
                dead.push((worker.id, worker.heartbeats));
            }
        }
        self.stuck.retain(|_job_id, retry_at_ms| now_ms < *retry_at_ms);
        let stuck: Vec<i64> = self.stuck.keys().copied().collect();
        if dead.is_empty() && !store.for_scheduler().has_orphans(&stuck)? {
            return Ok(Rescued::default());
        }
        let rescued = store.for_scheduler().rescue_all_but(dead, &stuck)?;
        for StuckJob { job_id, label, error } in &rescued.stuck {
            self.stuck.insert(*job_id, now_ms + STUCK_MS);
            tracing::error!(
                job = label,
                %error,
                "a job of a dead worker can't be rescued; trying again every minute"
            );
        }
        if rescued.fenced + rescued.jobs > 0 {
            tracing::info!(workers = rescued.fenced, jobs = rescued.jobs, "rescued the jobs of dead workers");
        }
        Ok(rescued)
    }

    /// Observes the worker's heartbeats. Returns how long their count has not changed.
    fn observe(&mut self, worker: &Worker, passed_ms: i64) -> i64 {
        let fresh = Observation { heartbeats: worker.heartbeats, silent_ms: 0 };
        let observation = self.observations.entry(worker.id).or_insert(fresh);
        if observation.heartbeats != worker.heartbeats {
            *observation = fresh;
        } else {
            // One check adds at most half a lease, so that a worker in the observer's own process has time to renew.
            observation.silent_ms += passed_ms.min(SILENCE_MAX_MS).min(worker.lease_ms / 2);
        }
        observation.silent_ms
    }

    /// Whether the worker's process exists. If it is gone, first kills the processes that it left.
    ///
    /// A worker that is gone may have left processes, or may have been about to start one. Such a process would run
    /// beside the next attempt, or after its job was reported as failed. While some are left, the worker counts as alive
    /// until its lease ends.
    fn liveness_after_cleanup(&self, worker: &Worker, store: &Store) -> Result<Liveness> {
        let liveness = self.processes.liveness(worker, store.database_capabilities().host_scope);
        if liveness != Liveness::Gone {
            return Ok(liveness);
        }
        let claimed = match store.for_workers().claimed_by(worker.id) {
            Ok(claimed) if claimed.is_empty() => return Ok(Liveness::Gone),
            Ok(claimed) => claimed,
            Err(error @ Error::Unavailable { .. }) => return Err(error),
            // A row that another program made invalid must not prevent the rescue of the other jobs.
            Err(_invalid_row) => Vec::new(),
        };
        let attempts: Vec<(i64, i64)> =
            claimed.into_iter().map(|(job_id, _run_id, retry_state)| (job_id, retry_state.attempt)).collect();
        let nothing_is_left = self.processes.kill_orphans(worker, &attempts);
        Ok(if nothing_is_left { Liveness::Gone } else { Liveness::Alive })
    }
}

/// The workers whose processes on this machine are gone, and that no failure detector has fenced yet. Changes nothing.
///
/// # Errors
/// Returns the database's error.
pub fn gone_workers(store: &Store) -> Result<Vec<i64>> {
    let workers = store.workers().live()?;
    let is_gone = |worker: &&Worker| {
        MachineProcesses.liveness(worker, store.database_capabilities().host_scope) == Liveness::Gone
    };
    Ok(workers.iter().filter(is_gone).map(|worker| worker.id).collect())
}

fn is_dead(liveness: Liveness, silent_ms: i64, lease_ms: i64) -> bool {
    match liveness {
        Liveness::Gone => true,
        Liveness::Alive | Liveness::Unknown => silent_ms >= lease_ms,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::Mutex;

    use windlass_engine::store::{ClaimRequest, NewJob, NewWorker, Scope, WorkerCapabilities};
    use windlass_engine::{Clock, JobStatus, Random};
    use windlass_system::process::HostScope;
    use windlass_test_database::{Access, TestDatabase};

    use super::*;
    use crate::test_store::{TestStore, open};

    #[test]
    fn a_job_that_can_not_be_rescued_is_reported_and_tried_again_after_a_minute() {
        let TestStore { store, clock, database, .. } = &TestStore::at(100_000);
        database.sql(Access::Write).execute(
            "INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs) VALUES (1, 'w', 2, 2);
             INSERT INTO jobs (id, run_id, name, kind, status, attempt, worker_id, on_interrupt, allow_failure)
                 VALUES (1, 1, 'a', 'noop', 'RUNNING', 1, 9, 'fail', 1);
             INSERT INTO jobs (id, run_id, name, kind, status) VALUES (2, 1, 'b', 'noop', 'PENDING');
             INSERT INTO jobs (id, kind, status, attempt, worker_id) VALUES (3, 'noop', 'RUNNING', 1, 9);",
        );
        database.refuse(1, "FAILED");
        let mut failure_detector = FailureDetector::default();
        let mut check = || {
            let rescued = failure_detector.rescue_dead_workers(store).unwrap();
            (rescued.jobs, rescued.stuck.into_iter().map(|stuck| stuck.label).collect::<Vec<_>>())
        };
        let stuck = vec!["1/a".to_owned()];
        assert_eq!(check(), (1, stuck.clone()));
        clock.advance_ms(STUCK_MS - 1);
        assert_eq!(check(), (0, Vec::new()), "not yet");
        clock.advance_ms(1);
        assert_eq!(check(), (0, stuck));
    }

    const HOUR_MS: i64 = 3_600_000;
    const LEASE_MS: i64 = 30_000;

    /// Registers a worker on another host, whose process this host can't see.
    fn register(store: &Store) -> i64 {
        let worker = NewWorker {
            host: "another".to_owned(),
            pid: 1,
            process: "unknown".to_owned(),
            scope: Scope::Everything,
            worker_capabilities: WorkerCapabilities::of_kinds(vec!["noop".to_owned()]),
            threads: 1,
            lease_ms: LEASE_MS,
        };
        store.for_workers().register(worker).unwrap()
    }

    /// The test decides whether the processes exist, and whether the processes that they left can be killed.
    struct ScriptedProcesses {
        liveness: Mutex<Liveness>,
        nothing_is_left: Mutex<bool>,
        ended: Mutex<Vec<(i64, i64)>>,
    }

    impl WorkerProcesses for ScriptedProcesses {
        fn liveness(&self, _worker: &Worker, _host_scope: HostScope) -> Liveness {
            *self.liveness.lock().unwrap()
        }

        fn kill_orphans(&self, _worker: &Worker, attempts: &[(i64, i64)]) -> bool {
            self.ended.lock().unwrap().extend(attempts);
            *self.nothing_is_left.lock().unwrap()
        }
    }

    #[test]
    fn the_jobs_of_a_worker_that_is_gone_are_rescued_once_none_of_their_processes_is_left() {
        let TestStore { store, .. } = &TestStore::at(100_000);
        let worker_id = register(store);
        store.jobs().enqueue(vec![NewJob::new("noop", "null")]).unwrap();
        let worker_capabilities = WorkerCapabilities::of_kinds(vec!["noop".to_owned()]);
        let scope = Scope::Everything;
        store
            .for_workers()
            .claim(ClaimRequest { worker_id, scope, worker_capabilities, limit: 1, idle_threads: 1 })
            .unwrap();
        let processes = Arc::new(ScriptedProcesses {
            liveness: Mutex::new(Liveness::Alive),
            nothing_is_left: Mutex::new(false),
            ended: Mutex::default(),
        });
        let mut detector =
            FailureDetector::with_processes(Arc::clone(&processes) as Arc<dyn WorkerProcesses>);
        let mut check =
            || (detector.rescue_dead_workers(store).unwrap().jobs, store.jobs().get(1).unwrap().status);
        assert_eq!(check(), (0, JobStatus::Running), "the worker lives");
        *processes.liveness.lock().unwrap() = Liveness::Gone;
        assert_eq!(check(), (0, JobStatus::Running), "a process of the job is left");
        *processes.nothing_is_left.lock().unwrap() = true;
        assert_eq!(check(), (1, JobStatus::Pending));
        assert_eq!(*processes.ended.lock().unwrap(), [(1, 1), (1, 1)], "both checks tried to kill it");
    }

    /// Two hosts: that of a worker, and that of an observer. Their clocks differ by `apart_ms`.
    struct Hosts {
        worker: Store,
        worker_clock: Clock,
        observer: Store,
        observer_clock: Clock,
        failure_detector: FailureDetector,
        worker_id: i64,
    }

    impl Hosts {
        fn new(database: &TestDatabase, apart_ms: i64) -> Hosts {
            let worker_clock = Clock::manual(500_000 * HOUR_MS);
            let observer_clock = Clock::manual(500_000 * HOUR_MS + apart_ms);
            let (worker, observer) = (open(database, &worker_clock), open(database, &observer_clock));
            let worker_id = register(&worker);
            Hosts {
                worker,
                worker_clock,
                observer,
                observer_clock,
                failure_detector: FailureDetector::default(),
                worker_id,
            }
        }

        /// Half a second passes, and the observer checks. Returns how many workers it fenced.
        fn check(&mut self) -> i64 {
            self.worker_clock.advance_ms(500);
            self.observer_clock.advance_ms(500);
            self.failure_detector.rescue_dead_workers(&self.observer).unwrap().fenced
        }
    }

    #[test]
    fn only_a_worker_that_does_not_renew_is_dead_whatever_the_wall_clocks_show() {
        for apart_ms in [0, 24 * HOUR_MS, -24 * HOUR_MS] {
            let folder = tempfile::tempdir().unwrap();
            let database = TestDatabase::in_folder(folder.path());
            let mut hosts = Hosts::new(&database, apart_ms);
            let chance = Random::from_seed(7);
            let some_ms = || ((chance.fraction() - 0.5) * 2.0 * HOUR_MS as f64) as i64;
            for turn in 0..600 {
                if turn % 50 == 49 {
                    assert!(hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap());
                }
                if turn % 7 == 0 {
                    [&hosts.worker_clock, &hosts.observer_clock][turn % 2].step_wall_ms(some_ms());
                }
                assert_eq!(hosts.check(), 0, "it renews within its lease: turn {turn}");
            }
            // The observer sees the last renewal.
            assert!(hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap());
            assert_eq!(hosts.check(), 0);
            for _check in 0..LEASE_MS / 500 - 1 {
                hosts.observer_clock.step_wall_ms(some_ms());
                assert_eq!(hosts.check(), 0, "its lease is not over");
            }
            assert_eq!(hosts.check(), 1, "it was silent for a whole lease");
            assert!(!hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap(), "it is fenced");
        }
    }

    #[test]
    fn a_worker_is_dead_if_it_is_gone_or_silent_for_a_lease() {
        assert!(is_dead(Liveness::Gone, 0, 30_000), "at once on the same host");
        assert!(!is_dead(Liveness::Alive, 29_999, 30_000));
        assert!(is_dead(Liveness::Alive, 30_000, 30_000), "stopped, but there");
        assert!(!is_dead(Liveness::Unknown, 0, 30_000), "on another host");
        assert!(is_dead(Liveness::Unknown, 30_000, 30_000));
    }
}
