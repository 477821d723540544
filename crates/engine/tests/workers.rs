//! Workers that drain, have stopped, or are fenced: what they may still do, and what happens to their jobs.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, noop, request, success};
use windlass_engine::store::{Claims, Scope};
use windlass_engine::{JobStatus, WorkerStatus};

/// A worker in this state that executes a job.
fn working(bench: &Bench, status: WorkerStatus) -> (i64, windlass_engine::store::ClaimedJob) {
    let worker = bench.worker();
    bench.enqueue(noop());
    let job = bench.claim(worker, 1).remove(0);
    assert!(bench.store.for_workers().set_status(worker, status).unwrap());
    (worker, job)
}

#[test]
fn a_draining_worker_is_alive() {
    let bench = Bench::new();
    let (worker, job) = working(&bench, WorkerStatus::Draining);
    assert!(bench.store.for_workers().heartbeat(worker).unwrap(), "its lease is renewed");
    let alive: Vec<i64> = bench.store.workers().live().unwrap().iter().map(|worker| worker.id).collect();
    assert_eq!(alive, [worker]);
    assert!(!bench.store.for_scheduler().has_orphans(&[]).unwrap(), "its jobs are its own");
    let rescued = bench.store.for_scheduler().rescue(Vec::new()).unwrap();
    assert_eq!((rescued.fenced, rescued.jobs), (0, 0));
    assert!(bench.finish(worker, &job, success()).conflicts.is_empty());
}

#[test]
fn a_draining_worker_can_be_found_dead() {
    let bench = Bench::new();
    let (worker, job) = working(&bench, WorkerStatus::Draining);
    let rescued = bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!((rescued.fenced, rescued.jobs), (1, 1));
    assert!(!bench.store.for_workers().heartbeat(worker).unwrap());
    assert_eq!(bench.finish(worker, &job, success()).conflicts, [job.id]);
    assert_eq!(bench.store.workers().live().unwrap(), []);
}

/// A worker finishes its jobs before it stops. If it did not, they must be rescued.
#[test]
fn jobs_that_a_stopped_worker_left_are_taken_back() {
    let bench = Bench::new();
    let (worker, job) = working(&bench, WorkerStatus::Stopped);
    assert_eq!(bench.store.workers().live().unwrap(), []);
    assert!(!bench.store.for_workers().heartbeat(worker).unwrap());
    let claims = bench.store.for_workers().claim(request(worker, Scope::Everything, 1)).unwrap();
    assert_eq!(claims, Claims::Fenced);
    assert!(bench.store.for_scheduler().has_orphans(&[]).unwrap());
    assert_eq!(bench.store.for_scheduler().rescue(Vec::new()).unwrap().jobs, 1);
    assert_eq!(bench.store.jobs().get(job.id).unwrap().status, JobStatus::Pending);
    bench.assert_sound();
}

/// Whatever a restored database says about its workers: all of them are fenced, and all their jobs are taken back,
/// even if that takes several transactions.
#[test]
fn in_a_restored_database_nothing_is_running() {
    let bench = Bench::new();
    let (alive, draining) = (bench.worker(), bench.worker());
    bench.store.jobs().enqueue(vec![noop(); 2_100]).unwrap();
    let mut running = 0;
    for worker in [alive, draining, alive] {
        running += bench.claim(worker, 1_000).len();
    }
    assert!(bench.store.for_workers().set_status(draining, WorkerStatus::Draining).unwrap());
    let restored = bench.store.for_restore().finish_restore().unwrap();
    assert_eq!((restored.fenced_workers, restored.interrupted_jobs), (2, running as i64));
    assert_eq!(restored.pending_jobs, 2_100);
    assert_eq!(bench.store.workers().live().unwrap(), []);
    assert_eq!(bench.store.upkeep().stats().unwrap().jobs.of(JobStatus::Running), 0);
    for worker in [alive, draining] {
        assert!(!bench.store.for_workers().heartbeat(worker).unwrap());
    }
    bench.assert_sound();
}
