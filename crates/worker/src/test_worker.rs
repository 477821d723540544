//! A worker without threads on a database of its own. Each step is made by the test, and time stands still.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use crate::dispatcher::Dispatcher;
use crate::executor::Executor;
use crate::handler::{Attempt, Handlers};
use crate::options::WorkerOptions;
use crate::registration::register;
use crate::shared::{EndedAttempt, NextJob, OwnedJob, Shared};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, Recovery};
use windlass_engine::TABLES;
use windlass_engine::status::JobStatus;
use windlass_engine::store::{NewJob, Store};
use windlass_engine::transition::Outcome;
use windlass_system::clock::Clock;
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUps;
use windlass_test_database::{DatabaseKind, TestDatabase};

pub(crate) struct TestWorker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) executor: Executor,
    database: Arc<dyn Database>,
    pub(crate) test_database: TestDatabase,
    _folder: tempfile::TempDir,
}

impl TestWorker {
    /// A worker that executes jobs of kind `noop`. No job exists.
    pub(crate) fn new(threads: i64) -> TestWorker {
        TestWorker::with_options(WorkerOptions { threads, ..WorkerOptions::default() })
    }

    pub(crate) fn with_options(options: WorkerOptions) -> TestWorker {
        let folder = tempfile::tempdir().unwrap();
        let test_database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000_000);
        let database = open(&test_database, &clock);
        let store = Store::new(Arc::clone(&database), clock, Random::from_seed(1));
        let mut handlers = Handlers::new();
        handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
        let registration = register(&store, handlers.kinds(), &options).unwrap();
        let shared = Arc::new(Shared::new(store, &handlers, options, Arc::from("test"), registration));
        let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&shared)));
        let executor = Executor::new(Arc::clone(&shared), Arc::clone(&dispatcher));
        TestWorker { shared, dispatcher, executor, database, test_database, _folder: folder }
    }

    pub(crate) fn enqueue(&self, jobs: usize, payload: &str) {
        self.shared.store.jobs().enqueue(vec![NewJob::new("noop", payload); jobs]).unwrap();
    }

    /// An executor takes the next prefetched job.
    pub(crate) fn take(&self) -> OwnedJob {
        match self.shared.prefetched.take_next(self.shared.clock()) {
            NextJob::Job(owned) => owned,
            NextJob::Nothing | NextJob::End => panic!("a job is prefetched"),
        }
    }

    /// A job ends with success. Returns how many results wait now.
    pub(crate) fn end(&self, owned: OwnedJob, output: Option<String>) -> usize {
        let ended = EndedAttempt {
            owned,
            outcome: Outcome::Successful { output },
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        };
        self.shared.results.add(ended, 0, self.shared.clock().monotonic_us())
    }

    pub(crate) fn results_waiting(&self) -> usize {
        self.shared.results.waiting().0
    }

    pub(crate) fn count(&self, status: JobStatus) -> i64 {
        self.shared.store.upkeep().stats().unwrap().jobs.of(status)
    }

    pub(crate) fn successful(&self) -> i64 {
        self.count(JobStatus::Successful)
    }

    /// The wake-ups of the dispatcher's thread since the last call.
    pub(crate) fn wake_ups_of_dispatcher(&self) -> WakeUps {
        self.shared.dispatcher.wait(std::time::Duration::ZERO)
    }

    /// Writes into the database as another program.
    pub(crate) fn execute_sql(&self, sql: &'static str) {
        let write = Box::new(move |connection: &mut dyn windlass_db::Connection| connection.batch(sql));
        self.database.write("execute SQL", write, Recovery::Report).unwrap();
    }

    /// Reads one number.
    pub(crate) fn read_number(&self, sql: &'static str) -> i64 {
        let mut number = 0;
        let read = |connection: &mut dyn windlass_db::Connection| {
            number = windlass_db::first(connection, sql, &[], |row| row.integer(0))?.unwrap_or(0);
            Ok(())
        };
        self.database.read(&mut { read }).unwrap();
        number
    }
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
