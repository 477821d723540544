//! A worker without threads, for tests: each of its steps is taken by hand, and time stands still.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::handler::Handlers;
use super::prefetch_buffer::{Next, OwnedJob};
use super::results::Done;
use super::shared::Shared;
use super::worker::{WorkerOptions, register};
use windlass_db::Database;
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::TABLES;
use windlass_engine::status::JobStatus;
use windlass_engine::store::{NewJob, Store};
use windlass_engine::transition::Outcome;
use windlass_system::clock::Clock;
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUps;

pub(super) struct Sample {
    pub(super) shared: Shared,
    pub(super) database: Arc<SqliteDatabase>,
    _folder: tempfile::TempDir,
}

impl Sample {
    /// Nothing waits, and nothing is claimed.
    pub(super) fn new(threads: i64) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("windlass.db");
        let database = Arc::new(SqliteDatabase::open(&path, &TABLES, &SqliteOptions::default()).unwrap());
        let clock = Clock::manual(1_000_000);
        let store = Store::new(Arc::clone(&database) as Arc<dyn Database>, clock, Random::from_seed(1));
        let mut handlers = Handlers::new();
        handlers.register("noop", |_: &super::Attempt| Outcome::Successful { output: None });
        let options = WorkerOptions { threads, ..WorkerOptions::default() };
        let registration = register(&store, &handlers, &options).unwrap();
        let shared = Shared::new(store, handlers, options, Arc::from("test"), registration);
        Sample { shared, database, _folder: folder }
    }

    pub(super) fn enqueue(&self, jobs: usize, payload: &str) {
        self.shared.store.jobs().enqueue(vec![NewJob::new("noop", payload); jobs]).unwrap();
    }

    /// An executor takes the next job.
    pub(super) fn take(&self) -> OwnedJob {
        match self.shared.prefetched.next(self.shared.store.clock()) {
            Next::Job(owned) => owned,
            Next::End => panic!("a job is prefetched"),
        }
    }

    /// Its job is over; returns how many ends wait now.
    pub(super) fn add_end(&self, owned: OwnedJob, output: Option<String>) -> usize {
        let done = Done { owned, outcome: Outcome::Successful { output }, logs: Vec::new() };
        self.shared.results.add(done, 0, self.shared.store.clock().monotonic_us())
    }

    /// Ends that are not written.
    pub(super) fn waiting(&self) -> usize {
        self.shared.results.waiting().0
    }

    /// Jobs whose ends are written.
    pub(super) fn written(&self) -> i64 {
        self.shared.store.upkeep().stats().unwrap().jobs.of(JobStatus::Successful)
    }

    /// What the dispatcher's thread has heard since it was asked last.
    pub(super) fn heard(&self) -> WakeUps {
        self.shared.dispatcher.wait(std::time::Duration::ZERO)
    }
}
