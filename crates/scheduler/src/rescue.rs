//! Who is dead: a decision from what is seen of a worker, by nobody's wall clock.
//!
//! A worker's lease is measured by its observer: as long as the count of its heartbeats moves within
//! the lease, it lives. No two clocks are ever compared, so neither skew between hosts nor a jump of
//! the wall clock can kill a healthy worker. On its own host a worker whose process is gone is dead at
//! once.

use std::collections::HashMap;

use windlass_engine::store::{Rescued, StuckJob, Worker};
use windlass_engine::{Error, Result, Store};
use windlass_system::process::{Fate, end_orphans, fate};

/// Remembers what was seen of each worker.
#[derive(Debug, Default)]
pub struct FailureDetector {
    seen: HashMap<i64, Sighting>,
    /// When it looked last, by its monotonic clock.
    looked_at_ms: Option<i64>,
    /// Jobs of dead workers that could not be taken back, and when they are tried again by that clock.
    stuck: HashMap<i64, i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sighting {
    heartbeats: i64,
    /// For how long this count was seen to stand still.
    silent_ms: i64,
}

/// Silence that one look may add, whatever time has passed since the last: an observer that was
/// stopped itself, or could not read, has not seen that anybody was silent.
const CREDIT_MAX_MS: i64 = 600;
/// A job that could not be taken back is tried again so much later.
const STUCK_MS: i64 = 60_000;

impl FailureDetector {
    /// Looks at every worker once; fences the dead and takes their jobs back.
    ///
    /// # Errors
    /// The database's.
    pub fn look(&mut self, store: &Store) -> Result<Rescued> {
        let workers = store.workers().live()?;
        let now_ms = store.clock().monotonic_ms();
        let passed_ms = now_ms - self.looked_at_ms.replace(now_ms).unwrap_or(now_ms);
        self.seen.retain(|id, _sighting| workers.iter().any(|worker| worker.id == *id));
        let mut dead = Vec::new();
        for worker in &workers {
            let silent_ms = self.sight(worker, passed_ms);
            if is_dead(fate_with_jobs(worker, store)?, silent_ms, worker.lease_ms) {
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
                "a job of a dead worker can't be taken back; it is tried again every minute"
            );
        }
        if rescued.fenced + rescued.jobs > 0 {
            tracing::info!(
                workers = rescued.fenced,
                jobs = rescued.jobs,
                "took back the jobs of dead workers"
            );
        }
        Ok(rescued)
    }

    /// For how long the worker was seen not to move.
    fn sight(&mut self, worker: &Worker, passed_ms: i64) -> i64 {
        let fresh = Sighting { heartbeats: worker.heartbeats, silent_ms: 0 };
        let sighting = self.seen.entry(worker.id).or_insert(fresh);
        if sighting.heartbeats != worker.heartbeats {
            *sighting = fresh;
        } else {
            // Two looks at least, so that who watches itself has had a chance to renew.
            sighting.silent_ms += passed_ms.min(CREDIT_MAX_MS).min(worker.lease_ms / 2);
        }
        sighting.silent_ms
    }
}

/// The workers that count as alive although their processes on this machine are gone: nobody has looked yet. Changes
/// nothing.
///
/// # Errors
/// The database's.
pub fn gone_workers(store: &Store) -> Result<Vec<i64>> {
    let workers = store.workers().live()?;
    let is_gone = |worker: &&Worker| {
        fate(worker.pid, &worker.process, store.database_capabilities().reach) == Fate::Gone
    };
    Ok(workers.iter().filter(is_gone).map(|worker| worker.id).collect())
}

/// What can be said of a worker and of the processes that it started. One that is gone may have left some of them; or
/// it was about to start one when it was killed, and that one would run beside the next attempt, or after its job was
/// reported as failed. So they are ended first. While some are left, the worker counts as alive until its lease ends.
fn fate_with_jobs(worker: &Worker, store: &Store) -> Result<Fate> {
    let fate = fate(worker.pid, &worker.process, store.database_capabilities().reach);
    if fate != Fate::Gone {
        return Ok(fate);
    }
    let claimed = match store.for_workers().claimed_by(worker.id) {
        Ok(claimed) if claimed.is_empty() => return Ok(Fate::Gone),
        Ok(claimed) => claimed,
        Err(error @ Error::Unavailable { .. }) => return Err(error),
        // A row that another program spoilt must not keep the others from being rescued.
        Err(_spoilt) => Vec::new(),
    };
    let attempts: Vec<(i64, i64)> =
        claimed.into_iter().map(|(job_id, _run_id, retry_state)| (job_id, retry_state.attempt)).collect();
    let nothing_is_left = end_orphans(worker.pid, &worker.process, &attempts);
    Ok(if nothing_is_left { Fate::Gone } else { Fate::Lives })
}

fn is_dead(fate: Fate, silent_ms: i64, lease_ms: i64) -> bool {
    match fate {
        Fate::Gone => true,
        Fate::Lives | Fate::Unknown => silent_ms >= lease_ms,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::store::{NewWorker, Scope, WorkerCapabilities};
    use windlass_engine::{Clock, Random};
    use windlass_test_database::{Access, TestDatabase};

    use super::*;

    #[test]
    fn a_stuck_job_is_told_and_tried_again_after_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(100_000);
        let store = Store::new(crate::tests::open(&database, &clock), clock.clone(), Random::from_seed(1));
        database.sql(Access::Write).execute(
            "INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs) VALUES (1, 'w', 2, 2);
             INSERT INTO jobs (id, run_id, name, kind, status, attempt, worker_id, on_interrupt, allow_failure)
                 VALUES (1, 1, 'a', 'noop', 'RUNNING', 1, 9, 'fail', 1);
             INSERT INTO jobs (id, run_id, name, kind, status) VALUES (2, 1, 'b', 'noop', 'PENDING');
             INSERT INTO jobs (id, kind, status, attempt, worker_id) VALUES (3, 'noop', 'RUNNING', 1, 9);",
        );
        database.refuse(1, "FAILED");
        let mut failure_detector = FailureDetector::default();
        let mut look = || {
            let rescued = failure_detector.look(&store).unwrap();
            (rescued.jobs, rescued.stuck.into_iter().map(|stuck| stuck.label).collect::<Vec<_>>())
        };
        let stuck = vec!["1/a".to_owned()];
        assert_eq!(look(), (1, stuck.clone()));
        clock.advance_ms(STUCK_MS - 1);
        assert_eq!(look(), (0, Vec::new()), "not yet");
        clock.advance_ms(1);
        assert_eq!(look(), (0, stuck));
    }

    const HOUR_MS: i64 = 3_600_000;
    const LEASE_MS: i64 = 30_000;

    /// Two hosts: one of a worker, and one that looks whether it lives. Their clocks differ by `apart_ms`.
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
            let store = |clock: &Clock| {
                Store::new(crate::tests::open(database, clock), clock.clone(), Random::from_seed(1))
            };
            let (worker, observer) = (store(&worker_clock), store(&observer_clock));
            let worker_id = worker
                .for_workers()
                .register(NewWorker {
                    host: "another".to_owned(),
                    pid: 1,
                    // Nobody can see from here whether it is there.
                    process: "unknown".to_owned(),
                    scope: Scope::Everything,
                    worker_capabilities: WorkerCapabilities::of_kinds(vec!["noop".to_owned()]),
                    threads: 1,
                    lease_ms: LEASE_MS,
                })
                .unwrap();
            Hosts {
                worker,
                worker_clock,
                observer,
                observer_clock,
                failure_detector: FailureDetector::default(),
                worker_id,
            }
        }

        /// Both live on for half a second, and the observer looks. Returns how many it found dead.
        fn look(&mut self) -> i64 {
            self.worker_clock.advance_ms(500);
            self.observer_clock.advance_ms(500);
            self.failure_detector.look(&self.observer).unwrap().fenced
        }
    }

    #[test]
    fn neither_clocks_that_differ_nor_clocks_that_are_set_kill_who_renews_or_keep_who_does_not() {
        for apart_ms in [0, 24 * HOUR_MS, -24 * HOUR_MS] {
            let folder = tempfile::tempdir().unwrap();
            let database = TestDatabase::in_folder(folder.path());
            let mut hosts = Hosts::new(&database, apart_ms);
            let chance = Random::from_seed(7);
            let some_ms = || ((chance.share() - 0.5) * 2.0 * HOUR_MS as f64) as i64;
            for turn in 0..600 {
                if turn % 50 == 49 {
                    assert!(hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap());
                }
                if turn % 7 == 0 {
                    [&hosts.worker_clock, &hosts.observer_clock][turn % 2].step_wall_ms(some_ms());
                }
                assert_eq!(hosts.look(), 0, "it renews within its lease: turn {turn}");
            }
            // Its last renewal is seen, and no other one comes.
            assert!(hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap());
            assert_eq!(hosts.look(), 0);
            for _look in 0..LEASE_MS / 500 - 1 {
                hosts.observer_clock.step_wall_ms(some_ms());
                assert_eq!(hosts.look(), 0, "its lease is not over");
            }
            assert_eq!(hosts.look(), 1, "it was silent for its lease");
            assert!(!hosts.worker.for_workers().heartbeat(hosts.worker_id).unwrap(), "it is fenced");
        }
    }

    #[test]
    fn dead_is_who_is_gone_or_silent_for_a_lease() {
        assert!(is_dead(Fate::Gone, 0, 30_000), "at once on the same host");
        assert!(!is_dead(Fate::Lives, 29_999, 30_000));
        assert!(is_dead(Fate::Lives, 30_000, 30_000), "stopped, but there");
        assert!(!is_dead(Fate::Unknown, 0, 30_000), "on another host");
        assert!(is_dead(Fate::Unknown, 30_000, 30_000));
    }
}
