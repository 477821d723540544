//! What the tests of the store share: a database for each test, with its own clock.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub, missing_docs)]

pub mod contents;
pub mod faulty;
pub mod reading;
pub mod tapped;

use std::sync::Arc;

use windlass_db::Database;
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_engine::store::{
    Backfill, ClaimRequest, ClaimedJob, Claims, DeliveryResult, Finish, Finished, NewJob, NewRegistration,
    NewRun, NewTarget, NewWorker, NotificationEvent, Order, Prune, QueueLimits, Rate, Scope, Setting,
    WorkerCapabilities,
};
use windlass_engine::transition::{Outcome, Repeat, after_attempt};
use windlass_engine::{Clock, JobStatus, Random, Store, TABLES};
use windlass_test_database::{Access, DatabaseKind, Sql, TestDatabase};
use windlass_workflow::model::{Catchup, Concurrency, OnFull, Overlap, Rule, Schedule};
use windlass_workflow::{ForEach, ItemSource, Workflow};

/// The fields are dropped in this order: the database is closed before it is removed.
pub struct Bench {
    pub store: Store,
    pub clock: Clock,
    pub database: TestDatabase,
    pub folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000_000);
        let store = Store::new(open(&database, &clock), clock.clone(), Random::from_seed(1));
        Bench { store, clock, database, folder }
    }

    /// The connection of another program, which may write.
    pub fn raw(&self) -> Sql {
        self.database.sql(Access::Write)
    }

    pub fn worker(&self) -> i64 {
        self.store.for_workers().register(new_worker()).unwrap()
    }

    pub fn enqueue(&self, job: NewJob) -> i64 {
        self.store.jobs().enqueue(vec![job]).unwrap()[0]
    }

    pub fn claim(&self, worker_id: i64, limit: usize) -> Vec<ClaimedJob> {
        match self.store.for_workers().claim(request(worker_id, Scope::Everything, limit)).unwrap() {
            Claims::Jobs(jobs) => jobs,
            Claims::Fenced => panic!("worker {worker_id} is fenced"),
        }
    }

    pub fn finish(&self, worker_id: i64, job: &ClaimedJob, outcome: Outcome) -> Finished {
        self.finish_all(&[(worker_id, job.clone(), outcome)])
    }

    /// Finishes several attempts in one transaction.
    pub fn finish_all(&self, ends: &[(i64, ClaimedJob, Outcome)]) -> Finished {
        self.finish_all_and_claim(ends, None).0
    }

    /// The same, and claims in the same transaction.
    pub fn finish_all_and_claim(
        &self,
        ends: &[(i64, ClaimedJob, Outcome)],
        request: Option<ClaimRequest>,
    ) -> (Finished, Claims) {
        let finishes = ends
            .iter()
            .map(|(worker_id, job, outcome)| {
                let transition = after_attempt(&job.retry_state, outcome.clone(), 0.5);
                Finish { transition, ..finish(*worker_id, job, outcome.clone()) }
            })
            .collect();
        self.store.for_workers().finish_and_claim(finishes, request).unwrap()
    }

    pub fn submit(&self, workflow: Workflow) -> i64 {
        submit(&self.store, workflow)
    }

    pub fn assert_sound(&self) {
        assert_eq!(self.store.upkeep().check().unwrap(), [], "the invariants hold");
    }
}

/// Opens a test's database, and creates the tables.
pub fn open(database: &TestDatabase, clock: &Clock) -> Arc<dyn Database> {
    let address = database.address();
    match database.kind() {
        DatabaseKind::Sqlite => {
            Arc::new(SqliteDatabase::open(address.as_ref(), &TABLES, &SqliteOptions::default()).unwrap())
        }
        DatabaseKind::Postgres => {
            let address = PostgresAddress::parse(&address, &|_variable| None).unwrap();
            let random = Random::from_seed(1);
            let options = PostgresOptions { clock: clock.clone(), random, ..PostgresOptions::default() };
            Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap())
        }
    }
}

pub fn new_worker() -> NewWorker {
    NewWorker {
        host: "test".to_owned(),
        pid: 1,
        process: "test".to_owned(),
        scope: Scope::Everything,
        worker_capabilities: WorkerCapabilities::of_kinds(vec!["noop".to_owned(), "shell".to_owned()]),
        threads: 1,
        lease_ms: 1_000,
    }
}

pub fn submit(store: &Store, workflow: Workflow) -> i64 {
    let run = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    store.runs().submit(run).unwrap().run_id
}

/// The end of an attempt as a dispatcher writes it.
pub fn finish(worker_id: i64, job: &ClaimedJob, outcome: Outcome) -> Finish {
    Finish {
        job_id: job.id,
        run_id: job.run_id,
        attempt: job.retry_state.attempt,
        worker_id,
        transition: after_attempt(&job.retry_state, outcome, 0.5),
        exit_code: None,
        logs: Vec::new(),
        artifacts: Vec::new(),
        variables: Vec::new(),
    }
}

pub fn request(worker_id: i64, scope: Scope, limit: usize) -> ClaimRequest {
    let kinds = vec!["noop".to_owned(), "shell".to_owned()];
    ClaimRequest {
        worker_id,
        scope,
        worker_capabilities: WorkerCapabilities::of_kinds(kinds),
        limit,
        idle_threads: limit,
    }
}

/// Gives a queue every kind of limit.
pub fn limit(store: &Store, queue: &str) {
    let rate = Rate { jobs: 100, interval_ms: 60_000 };
    let limits = QueueLimits {
        max_running: Setting::Set(2),
        rate: Setting::Set(rate),
        order: Setting::Set(Order::Arrival),
    };
    store.queues().limit(queue, limits).unwrap();
}

/// Jobs for that queue. Some share a concurrency key.
pub fn limited_jobs(queue: &str) -> Vec<NewJob> {
    let keyed = |on_full| NewJob {
        queue: queue.to_owned(),
        concurrency: Some(Concurrency { key: "key".to_owned(), limit: 1, on_full }),
        ..noop()
    };
    vec![keyed(OnFull::Wait), keyed(OnFull::Wait), keyed(OnFull::Skip), keyed(OnFull::CancelOldest)]
}

/// Prunes everything that finished before an instant.
/// Makes the items of two groups, and ends, stops and cancels some of them.
pub fn run_groups(store: &Store, worker_id: i64) {
    let group = |items: usize| {
        let source = ItemSource::List((0..items).map(Into::into).collect());
        Some(Box::new(ForEach { max_parallel: Some(1), fail_fast: true, ..ForEach::of(source) }))
    };
    let mut workflow = graph(vec![vec![]; 3]);
    workflow.jobs[2].for_each = group(3);
    workflow.jobs[0].for_each = group(4);
    workflow.jobs[1].for_each = group(1);
    let run_id = submit(store, workflow);
    assert_eq!(store.for_scheduler().decide_waiting().unwrap(), 3);
    let claims = store.for_workers().claim(request(worker_id, Scope::Runs(vec![run_id]), 2)).unwrap();
    let Claims::Jobs(jobs) = claims else { panic!("worker {worker_id} is fenced") };
    assert_eq!(jobs.len(), 2);
    let finishes = jobs.iter().map(|job| finish(worker_id, job, success())).collect();
    store.for_workers().finish_and_claim(finishes, None).unwrap();
    let find = |name| store.jobs().find_by_name(run_id, name).unwrap().unwrap();
    assert_eq!(find("j1").status, JobStatus::Successful);
    store.jobs().values(run_id, &["j1".to_owned()]).unwrap();
    store.jobs().cancel(find("j0[1]").id).unwrap();
    assert_eq!(find("j0").status, JobStatus::Failed);
    store.jobs().cancel(find("j2").id).unwrap();
}

/// Lets runs with a concurrency key begin, skips one, and lets one cancel another.
pub fn limit_runs(store: &Store, worker_id: i64) {
    let submit_limited = |key: &str, on_full: OnFull| {
        let concurrency = Some(Concurrency { key: key.to_owned(), limit: 1, on_full });
        submit(store, Workflow { concurrency, ..graph(vec![vec![], vec![0]]) })
    };
    let runs = ["skip", "skip", "cancel", "cancel", "wait", "wait"].map(|key| {
        submit_limited(
            key,
            match key {
                "skip" => OnFull::Skip,
                "cancel" => OnFull::CancelOldest,
                _ => OnFull::Wait,
            },
        )
    });
    assert!(store.for_scheduler().upcoming(0).unwrap().has_waiting_runs);
    store.for_scheduler().admit_runs("").unwrap();
    let job = store.jobs().find_by_name(runs[5], "j0").unwrap().unwrap();
    store.jobs().why(job.id).unwrap();
    store.runs().cancel(runs[4]).unwrap();
    store.for_scheduler().admit_runs("").unwrap();
    let claims = store.for_workers().claim(request(worker_id, Scope::Runs(vec![runs[5]]), 1)).unwrap();
    assert!(matches!(claims, Claims::Jobs(jobs) if jobs.len() == 1), "it has its slot");
}

/// Ends a run that a target wants to know of, and does what a service does frequently about notifications.
pub fn notify_of_groups(store: &Store, worker_id: i64) {
    use NotificationEvent::{RunFailed, ScheduleLate, WorkerDead};
    let notifications = store.notifications();
    let events = vec![RunFailed, ScheduleLate, WorkerDead];
    let target =
        NewTarget { name: "ops".to_owned(), events, workflows: Vec::new(), tags: vec!["prod".to_owned()] };
    let tagless = NewTarget { name: "all".to_owned(), tags: Vec::new(), ..target.clone() };
    notifications.set_targets(worker_id, &[target, tagless]).unwrap();
    run_groups(store, worker_id);
    let claimed =
        notifications.claim("all", 1_000).unwrap().expect("there is a message about the failed run");
    notifications.details(&claimed).unwrap();
    assert!(notifications.record(&claimed, &DeliveryResult::Failed("late".to_owned())).unwrap());
    notifications.give_up_old().unwrap();
    store.for_scheduler().mark_late_schedules().unwrap();
}

pub fn older_than(before_ms: i64) -> Prune {
    Prune { before_ms: Some(before_ms), keep_runs: None, ..Prune::default() }
}

pub fn noop() -> NewJob {
    NewJob::new("noop", "null")
}

pub fn success() -> Outcome {
    Outcome::Successful { output: None }
}

pub fn failure() -> Outcome {
    Outcome::Failed { error: "no luck".to_owned(), repeat: Repeat::Allowed }
}

/// Jobs `0..n`; `needs[i]` are the parents of job `i`.
pub fn graph(needs: Vec<Vec<usize>>) -> Workflow {
    Workflow::graph("graph", needs)
}

/// Fires schedules in every way: occurrences that are due, missed or waiting, a run that is stopped for another one,
/// and a backfill.
pub fn fire_schedules(store: &Store, clock: &Clock) {
    let overlaps = [Overlap::Skip, Overlap::QueueAll, Overlap::CancelRunning];
    let schedules = overlaps.map(|overlap| Schedule {
        name: format!("{overlap:?}"),
        rule: Rule::EveryMs(1_000),
        timezone: "UTC".to_owned(),
        overlap,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 10,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: Default::default(),
    });
    let workflow = Workflow { name: "fired".to_owned(), schedules: schedules.into(), ..graph(vec![vec![]]) };
    store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    let schedule_id = store.schedules().list().unwrap()[0].id;
    for _turn in 0..3 {
        clock.advance_ms(15_000);
        store.for_scheduler().next_firing(&[]).unwrap();
        for schedule_id in store.for_scheduler().schedules_to_fire(100, &[]).unwrap() {
            store.for_scheduler().fire(schedule_id).unwrap();
        }
    }
    let to_ms = clock.now_ms();
    store.schedules().backfill(Backfill { schedule_id, from_ms: to_ms - 5_000, to_ms, at_once: 2 }).unwrap();
    store.for_scheduler().fire(schedule_id).unwrap();
}
