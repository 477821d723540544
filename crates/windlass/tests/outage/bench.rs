//! A database for each test, a worker whose connection to it can be broken, and another worker.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windlass::{Attempt, Clock, Handlers, Job, JobStatus, NewJob, Outcome, Random, StopCause, WorkerOptions};
use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::{Store, TABLES};
use windlass_scheduler::{Retention, Scheduler};
use windlass_test_database::{Access, DatabaseKind, TestDatabase};
use windlass_worker::Worker;

use crate::faulty::Faulty;

/// Long enough for a loaded machine. A test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The lease of the workers here. A fifth of it must be enough for a loaded machine to stop them.
pub(crate) const LEASE_MS: i64 = 3_000;

/// The fields are dropped in this order: the database is closed before it is removed.
pub(crate) struct Bench {
    /// A store that always works.
    pub(crate) store: Store,
    broken: Store,
    pub(crate) faulty: Arc<Faulty>,
    pub(crate) database: TestDatabase,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(&Clock::system())
    }

    pub(crate) fn with(clock: &Clock) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let (inner, clock) = open(&database, clock);
        let store = Store::new(Arc::clone(&inner), clock.clone(), Random::from_seed(seed()));
        let faulty = Arc::new(Faulty::new(inner));
        let broken = Store::new(Arc::clone(&faulty) as Arc<dyn Database>, clock, Random::from_seed(seed()));
        Bench { store, broken, faulty, database, folder }
    }

    /// Starts a worker whose connection to the database can be broken.
    pub(crate) fn worker(&self, handlers: Handlers, options: WorkerOptions) -> Worker {
        Worker::start(&self.broken, handlers, options).unwrap()
    }

    /// Starts another worker, whose connection always works, and which rescues jobs of dead workers.
    pub(crate) fn other(&self, handlers: Handlers) -> (Worker, Scheduler) {
        let worker = Worker::start(&self.store, handlers, options()).unwrap();
        (worker, Scheduler::start(&self.store, Retention::default()).unwrap())
    }

    pub(crate) fn enqueue(&self, kind: &str) -> i64 {
        self.store.jobs().enqueue(vec![NewJob::new(kind, "null")]).unwrap()[0]
    }

    pub(crate) fn wait_for_job(&self, job_id: i64, status: JobStatus) -> Job {
        wait_for(status.as_str(), || {
            let job = self.store.jobs().get(job_id).unwrap();
            (job.status == status).then_some(job)
        })
    }

    /// Executes a statement as another program.
    pub(crate) fn sql(&self, sql: &str) {
        self.database.sql(Access::Write).execute(sql);
    }

    pub(crate) fn outcomes(&self, job_id: i64) -> Vec<(i64, String)> {
        let attempts = self.store.jobs().attempts(job_id).unwrap();
        attempts.into_iter().map(|attempt| (attempt.attempt, attempt.outcome)).collect()
    }

    pub(crate) fn has_log(&self, job_id: i64, text: &str) -> bool {
        let lines = self.store.logs().last(job_id, 1, 1_000).unwrap();
        lines.iter().any(|line| line.text.contains(text))
    }

    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.store.upkeep().check().unwrap(), [], "the invariants hold");
    }
}

fn open(database: &TestDatabase, clock: &Clock) -> (Arc<dyn Database>, Clock) {
    let address = database.address();
    match database.kind() {
        DatabaseKind::Sqlite => {
            let opened = SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap();
            (Arc::new(opened), clock.clone())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            let clock = clock.adjustable();
            let options = PostgresOptions { clock: clock.clone(), ..PostgresOptions::default() };
            (Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap()), clock)
        }
    }
}

pub(crate) fn options() -> WorkerOptions {
    WorkerOptions { lease_ms: LEASE_MS, threads: 4, ..WorkerOptions::default() }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn seed() -> u64 {
    let seed = std::env::var("WINDLASS_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(7);
    println!("WINDLASS_SEED={seed}");
    seed
}

/// One execution of a job.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) began_at: Instant,
    /// Why it was asked to stop, if it was.
    pub(crate) ended: Option<(Instant, Option<StopCause>)>,
}

/// Jobs whose first execution lasts until it is stopped or the test ends it. Later executions end at once.
#[derive(Clone, Default)]
pub(crate) struct Executions {
    all: Arc<Mutex<Vec<Execution>>>,
    may_end: Arc<Mutex<bool>>,
}

impl Executions {
    pub(crate) fn handlers(&self) -> Handlers {
        let mut handlers = Handlers::with_built_in_kinds();
        let executions = self.clone();
        handlers.register("waits", move |attempt: &Attempt| executions.execute(attempt));
        handlers.register("noop", |_: &Attempt| Outcome::Successful { output: None });
        handlers
    }

    fn execute(&self, attempt: &Attempt) -> Outcome {
        let index = {
            let mut all = self.all.lock().unwrap();
            all.push(Execution { began_at: Instant::now(), ended: None });
            all.len() - 1
        };
        let is_first = index == 0;
        while is_first && !*self.may_end.lock().unwrap() {
            if attempt.stop().wait(Duration::from_millis(2)).is_some() {
                break;
            }
        }
        let cause = attempt.stop().cause();
        self.all.lock().unwrap()[index].ended = Some((Instant::now(), cause));
        match cause {
            None => Outcome::Successful { output: None },
            Some(cause) => windlass::failed(format!("{cause:?}")),
        }
    }

    pub(crate) fn let_end(&self) {
        *self.may_end.lock().unwrap() = true;
    }

    pub(crate) fn all(&self) -> Vec<Execution> {
        self.all.lock().unwrap().clone()
    }

    /// Waits until the first execution has started.
    pub(crate) fn wait_for_begin(&self) {
        wait_for("the first execution", || self.all().first().map(|_execution| ()));
    }

    /// Waits until the first execution has ended. Returns when that was, and why it was asked to stop.
    pub(crate) fn wait_for_end(&self) -> (Instant, Option<StopCause>) {
        wait_for("the end of the first execution", || self.all().first()?.ended)
    }
}
