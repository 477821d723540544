//! A worker and a scheduler without threads on a manual clock: the test makes every step.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::{NewJob, Store, Worker};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, Random, TABLES};
use windlass_scheduler::{SchedulerSteps, WorkerProcesses};
use windlass_system::Clock;
use windlass_system::process::{HostScope, Liveness};
use windlass_system::steps::NextStep;
use windlass_test_database::{DatabaseKind, TestDatabase};
use windlass_worker::{Attempt, Handlers, WorkerOptions, WorkerSteps, failed};

/// The first worker dies when the test says so.
#[derive(Default)]
struct Processes {
    is_first_gone: AtomicBool,
}

impl WorkerProcesses for Processes {
    fn liveness(&self, worker: &Worker, _host_scope: HostScope) -> Liveness {
        if worker.id == 1 && self.is_first_gone.load(Ordering::Acquire) {
            Liveness::Gone
        } else {
            Liveness::Alive
        }
    }

    fn kill_orphans(&self, _worker: &Worker, _attempts: &[(i64, i64)]) -> bool {
        true
    }
}

fn options() -> WorkerOptions {
    WorkerOptions { threads: 1, ..WorkerOptions::default() }
}

/// A handler that fails the first attempt of each job.
fn handlers() -> Handlers {
    let mut handlers = Handlers::new();
    handlers.register("second-time", |attempt: &Attempt| match attempt.number() {
        1 => failed("the first attempt"),
        _ => Outcome::Successful { output: None },
    });
    handlers
}

fn store(test_database: &TestDatabase, clock: &Clock) -> Store {
    Store::new(open(test_database, clock), clock.clone(), Random::from_seed(1))
}

fn open(test_database: &TestDatabase, clock: &Clock) -> Arc<dyn Database> {
    let address = test_database.address();
    match test_database.kind() {
        DatabaseKind::Sqlite => {
            Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
            Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap())
        }
    }
}

#[test]
fn a_job_is_retried_by_the_scheduler_and_rescued_from_a_worker_that_died() {
    let folder = tempfile::tempdir().unwrap();
    let test_database = TestDatabase::in_folder(folder.path());
    let clock = Clock::manual(1_000_000);
    let store = store(&test_database, &clock);
    let processes = Arc::new(Processes::default());
    let mut scheduler = SchedulerSteps::new(&store, Arc::clone(&processes) as Arc<dyn WorkerProcesses>);
    let status = || store.jobs().get(1).unwrap().status;
    let mut first = WorkerSteps::register(&store, &handlers(), options()).unwrap();
    let job = NewJob { max_attempts: 3, ..NewJob::new("second-time", "null") };
    store.jobs().enqueue(vec![job]).unwrap();

    assert_eq!(first.dispatch().unwrap(), NextStep::Now, "it claims the job");
    assert!(first.execute(), "and executes it");
    assert_eq!(status(), JobStatus::Scheduled, "the attempt failed");
    scheduler.step();
    assert_eq!(status(), JobStatus::Scheduled, "the retry is not due yet");
    clock.advance_ms(3_600_000);
    first.renew_lease();
    scheduler.step();
    assert_eq!(status(), JobStatus::Pending);
    first.dispatch().unwrap();
    assert_eq!(status(), JobStatus::Running);
    // It dies before an executor takes the job.
    drop(first);
    scheduler.step();
    assert_eq!(status(), JobStatus::Running, "nobody knows yet");
    processes.is_first_gone.store(true, Ordering::Release);
    scheduler.step();
    assert_eq!(status(), JobStatus::Pending);

    let mut second = WorkerSteps::register(&store, &handlers(), options()).unwrap();
    second.dispatch().unwrap();
    assert!(second.execute());
    let job = store.jobs().get(1).unwrap();
    assert_eq!((job.status, job.attempt, job.interruptions), (JobStatus::Successful, 3, 1));
    second.drain();
    while second.dispatch().unwrap() != NextStep::Never {}
}

#[test]
fn a_prefetched_job_that_is_cancelled_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let test_database = TestDatabase::in_folder(folder.path());
    let clock = Clock::manual(1_000_000);
    let store = store(&test_database, &clock);
    let mut handlers = Handlers::new();
    handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
    let mut worker = WorkerSteps::register(&store, &handlers, options()).unwrap();
    store.jobs().enqueue(vec![NewJob::new("noop", "null")]).unwrap();
    worker.dispatch().unwrap();
    store.jobs().cancel(1).unwrap();
    for step in [WorkerSteps::poll_cancellations, WorkerSteps::renew_lease, WorkerSteps::stop_late_attempts] {
        assert_ne!(step(&mut worker), NextStep::Never);
    }
    assert_ne!(worker.write_logs(), NextStep::Never);
    assert!(worker.execute(), "it does not call the handler");
    assert_eq!(store.jobs().get(1).unwrap().status, JobStatus::Cancelled);
}
