//! Promise: every acknowledged write is in the tables exactly once, even if the answer to its commit was lost.
//!
//! The network between the store and the server breaks at a commit, in four ways. In one of them the server crashes
//! too, and gives the id of the lost transaction to another client's transaction.
#![allow(clippy::unwrap_used, missing_docs)]

#[allow(dead_code, unreachable_pub)]
#[path = "support/proxy.rs"]
mod proxy;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proxy::{Break, Proxy};
use support::{graph, new_worker, noop, request, success};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_db::{Connection, Database, Durability, Recovery};
use windlass_engine::store::{
    Cancellation, Change, ClaimedJob, Claims, IdempotencyKey, JobFilter, LogLine, LogStream, NewJob,
    NewRegistration, NewRun, RetrySelection, RunFilter, Scope, Submitted,
};
use windlass_engine::transition::Outcome;
use windlass_engine::{Clock, Error, JobStatus, Random, RunStatus, Store, TABLES, Unavailable, WorkerStatus};
use windlass_test_server::PrivateServer;
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};

/// How many small transactions another client makes after a crash.
const OTHERS: usize = 300;
const PATIENCE: Duration = Duration::from_secs(120);
const INTERVAL_MS: i64 = 1_000;

/// A server, a store that reaches it directly, and a store that reaches it through a network that breaks.
struct Setup {
    direct: Store,
    broken: Store,
    /// The address of the network that breaks.
    through: String,
    clock: Clock,
    proxy: Proxy,
    server: PrivateServer,
}

fn open(url: &str, clock: &Clock, seed: u64) -> Store {
    open_as(url, clock, seed, Durability::Full)
}

fn open_as(url: &str, clock: &Clock, seed: u64, durability: Durability) -> Store {
    let address = PostgresAddress::parse(url, &|_name| None).unwrap();
    let random = Random::from_seed(seed);
    let options = PostgresOptions {
        clock: clock.clone(),
        random: random.clone(),
        durability,
        ..PostgresOptions::default()
    };
    let database = PostgresDatabase::open(&address, &TABLES, &options).unwrap();
    Store::new(Arc::new(database), clock.clone(), random)
}

fn wait_for(what: &str, mut is_done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_done() {
        assert!(began.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Setup {
    fn new() -> Setup {
        // With this setting, uncommitted changes reach the disk late, so that a crash also loses the transaction's
        // id.
        let server = PrivateServer::new(&[
            ("wal_writer_delay", "10s"),
            ("autovacuum", "off"),
            // The log of one job must fit into a page: the server writes a full page at once.
            ("full_page_writes", "off"),
        ]);
        let clock = Clock::manual(1_000_000_000);
        let proxy = Proxy::before(server.port());
        let direct = open(&server.url(), &clock, 1);
        let through = server.url().replace(&format!(":{}", server.port()), &format!(":{}", proxy.port()));
        let broken = open(&through, &clock, 2);
        server.client().batch_execute("CREATE TABLE others (number INT)").unwrap();
        Setup { direct, broken, through, clock, proxy, server }
    }

    /// Runs a write whose commit breaks.
    fn lose<T: Send>(&self, how: Break, act: impl FnOnce(&Store) -> T + Send) -> T {
        let (before, late_before) = (self.proxy.broken(), self.proxy.late_answered());
        self.proxy.break_once(how);
        std::thread::scope(|scope| {
            let acting = scope.spawn(|| act(&self.broken));
            wait_for("the commit", || self.proxy.broken() > before);
            match how {
                Break::BeforeCommit | Break::AfterCommit => {}
                Break::Hold => {
                    self.proxy.set_closed(true);
                    self.server.stop_immediate();
                    self.server.start();
                    let mut other = self.server.client();
                    for _other in 0..OTHERS {
                        other.batch_execute("INSERT INTO others VALUES (1)").unwrap();
                    }
                    self.proxy.set_closed(false);
                }
                Break::Late => {
                    let mut client = self.server.client();
                    let waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
                    let mut is_asked = || client.query_one(waiting, &[]).unwrap().get::<_, i64>(0) > 0;
                    wait_for("the question", || is_asked() || acting.is_finished());
                    self.proxy.deliver();
                    wait_for("the server's answer", || self.proxy.late_answered() > late_before);
                }
            }
            acting.join().unwrap()
        })
    }

    fn count(&self, sql: &str) -> i64 {
        self.server.client().query_one(sql, &[]).unwrap().get(0)
    }

    fn runs(&self) -> usize {
        self.direct.runs().list(&RunFilter::newest(1_000)).unwrap().rows.len()
    }

    fn jobs(&self) -> usize {
        self.direct.jobs().list(&JobFilter::newest(1_000)).unwrap().rows.len()
    }

    fn worker(&self) -> i64 {
        self.direct.for_workers().register(new_worker()).unwrap()
    }

    /// Submits a run of two jobs, one after the other.
    fn chain(&self) -> i64 {
        support::submit(&self.direct, graph(vec![vec![], vec![0]]))
    }

    fn claim(&self, worker_id: i64, run_id: i64) -> ClaimedJob {
        let Claims::Jobs(mut jobs) =
            self.direct.for_workers().claim(request(worker_id, Scope::Runs(vec![run_id]), 1)).unwrap()
        else {
            panic!("fenced")
        };
        jobs.pop().unwrap()
    }
}

type LoseCommit = fn(&Setup, Break);

/// Each asserts that the returned result is true, and that the write was done once.
const WRITES: &[(&str, LoseCommit)] = &[
    ("enqueue one", |setup, how| enqueue(setup, how, 1)),
    ("enqueue many", |setup, how| enqueue(setup, how, 2_500)),
    ("submit", submit),
    ("claim", claim),
    ("finish", finish),
    ("finish and claim", finish_and_claim),
    ("give back", give_back),
    ("fire", fire),
    ("trigger", trigger),
    ("cancel a run", cancel_run),
    ("cancel a job", cancel_job),
    ("retry", retry),
    ("resume a queue", resume_queue),
    ("a recorded job", recorded_enqueue),
    ("a recorded run whose key is known", recorded_submit),
    ("a recorded run of a schedule", recorded_trigger),
    ("a recorded change of nothing", recorded_resume),
    ("a job with an idempotency key", enqueue_once),
    ("register and stop a worker", register_and_stop),
    ("renew a lease", renew),
    ("write logs", write_logs),
    ("rescue", rescue),
];

fn enqueue(setup: &Setup, how: Break, count: usize) {
    // From the third time on the statement is prepared, and all of the transaction is sent together.
    for _time in 0..3 {
        setup.broken.jobs().enqueue(vec![noop(); count]).unwrap();
    }
    let before = setup.count("SELECT count(*) FROM windlass.jobs");
    let ids = setup.lose(how, |store| store.jobs().enqueue(vec![noop(); count]).unwrap());
    assert_eq!(ids.len(), count);
    for id in [ids[0], ids[count - 1]] {
        assert_eq!(setup.direct.jobs().get(id).unwrap().kind, "noop");
    }
    assert_eq!(setup.count("SELECT count(*) FROM windlass.jobs"), before + count as i64);
    setup.server.client().batch_execute("DELETE FROM windlass.jobs WHERE run_id IS NULL").unwrap();
}

fn submit(setup: &Setup, how: Break) {
    let before = setup.runs();
    let run_id = setup.lose(how, |store| support::submit(store, graph(vec![vec![], vec![0]])));
    assert_eq!(setup.direct.runs().get(run_id).unwrap().total_jobs, 2);
    assert_eq!(setup.runs(), before + 1);
}

fn claim(setup: &Setup, how: Break) {
    let (run_id, worker_id) = (setup.chain(), setup.worker());
    let request = request(worker_id, Scope::Runs(vec![run_id]), 5);
    let Claims::Jobs(jobs) = setup.lose(how, |store| store.for_workers().claim(request).unwrap()) else {
        panic!("fenced")
    };
    assert_eq!(jobs.len(), 1);
    let job = setup.direct.jobs().get(jobs[0].id).unwrap();
    assert_eq!((job.status, job.attempt, job.worker_id), (JobStatus::Running, 1, Some(worker_id)));
    assert_eq!(jobs[0].retry_state.attempt, 1);
}

fn finish(setup: &Setup, how: Break) {
    let (run_id, worker_id) = (setup.chain(), setup.worker());
    let job = setup.claim(worker_id, run_id);
    let finishes = vec![support::finish(worker_id, &job, success())];
    let (finished, _claims) =
        setup.lose(how, |store| store.for_workers().finish_and_claim(finishes, None).unwrap());
    assert_eq!((finished.conflicts.len(), finished.claimable.len()), (0, 1));
    assert_eq!(setup.direct.jobs().get(job.id).unwrap().status, JobStatus::Successful);
    setup.claim(worker_id, run_id);
}

fn finish_and_claim(setup: &Setup, how: Break) {
    let (run_id, worker_id) = (setup.chain(), setup.worker());
    let job = setup.claim(worker_id, run_id);
    let finishes = vec![support::finish(worker_id, &job, success())];
    let request = request(worker_id, Scope::Runs(vec![run_id]), 1);
    let (finished, claims) =
        setup.lose(how, |store| store.for_workers().finish_and_claim(finishes, Some(request)).unwrap());
    assert!(finished.conflicts.is_empty(), "{finished:?}");
    let Claims::Jobs(children) = claims else { panic!("fenced") };
    let child = setup.direct.jobs().get(children[0].id).unwrap();
    assert_eq!((child.status, child.attempt), (JobStatus::Running, 1));
    assert_eq!(
        setup.direct.jobs().get(job.id).unwrap().status,
        JobStatus::Successful,
        "no child before its parent"
    );
}

fn give_back(setup: &Setup, how: Break) {
    let (run_id, worker_id) = (setup.chain(), setup.worker());
    let job = setup.claim(worker_id, run_id);
    let finishes = vec![support::finish(worker_id, &job, Outcome::Unstarted)];
    let (finished, _claims) =
        setup.lose(how, |store| store.for_workers().finish_and_claim(finishes, None).unwrap());
    assert!(finished.conflicts.is_empty(), "{finished:?}");
    let job = setup.direct.jobs().get(job.id).unwrap();
    assert_eq!((job.status, job.attempt), (JobStatus::Pending, 0));
}

/// Registers a workflow with a schedule that is due.
fn schedule(setup: &Setup) -> i64 {
    let definition = Schedule {
        name: "often".to_owned(),
        rule: Rule::EveryMs(INTERVAL_MS),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 10,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: Default::default(),
    };
    let workflow = Workflow { name: "fired".to_owned(), schedules: vec![definition], ..graph(vec![vec![]]) };
    setup.direct.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
    let id = setup.direct.schedules().list().unwrap()[0].id;
    setup.clock.advance_ms(10 * INTERVAL_MS);
    while setup.direct.for_scheduler().fire(id).unwrap().again {}
    setup.clock.advance_ms(INTERVAL_MS);
    id
}

fn fire(setup: &Setup, how: Break) {
    let id = schedule(setup);
    let before = setup.runs();
    let fired = setup.lose(how, |store| store.for_scheduler().fire(id).unwrap());
    assert_eq!(fired.started.len(), 1);
    let run = setup.direct.runs().get(fired.started[0].0).unwrap();
    assert_eq!(run.scheduled_for, Some(fired.started[0].1));
    while setup.direct.for_scheduler().fire(id).unwrap().again {}
    assert_eq!(setup.runs(), before + 1);
}

fn trigger(setup: &Setup, how: Break) {
    let id = schedule(setup);
    while setup.direct.for_scheduler().fire(id).unwrap().again {}
    let before = setup.runs();
    let submitted = setup.lose(how, |store| store.schedules().fire(id).unwrap());
    assert!(submitted.created);
    assert_eq!(setup.direct.runs().get(submitted.run_id).unwrap().workflow, "fired");
    assert_eq!(setup.runs(), before + 1);
}

fn cancel_run(setup: &Setup, how: Break) {
    let run_id = setup.chain();
    let cancelled = setup.lose(how, |store| store.runs().cancel(run_id).unwrap());
    assert_eq!(cancelled, Cancellation { cancelled: 2, stopping: 0 });
    assert_eq!(setup.direct.runs().get(run_id).unwrap().status, RunStatus::Cancelled);
}

fn cancel_job(setup: &Setup, how: Break) {
    let job_id = setup.direct.jobs().enqueue(vec![noop()]).unwrap()[0];
    let cancelled = setup.lose(how, |store| store.jobs().cancel(job_id).unwrap());
    assert_eq!(cancelled, Cancellation { cancelled: 1, stopping: 0 });
    assert_eq!(setup.direct.jobs().get(job_id).unwrap().status, JobStatus::Cancelled);
}

fn retry(setup: &Setup, how: Break) {
    let run_id = setup.chain();
    setup.direct.runs().cancel(run_id).unwrap();
    assert_eq!(setup.lose(how, |store| store.runs().retry(run_id, RetrySelection::Failed).unwrap()), 2);
    assert_eq!(setup.direct.runs().get(run_id).unwrap().status, RunStatus::Pending);
}

fn resume_queue(setup: &Setup, how: Break) {
    setup.direct.queues().pause("some").unwrap();
    assert!(setup.lose(how, |store| store.queues().resume("some").unwrap()), "it was paused");
    assert_eq!(setup.direct.queues().paused().unwrap(), Vec::<String>::new());
}

/// Makes a recorded change, and expects one line about it.
fn record<T: Send>(setup: &Setup, how: Break, act: impl FnOnce(&Store) -> T + Send) -> T {
    let lines = || setup.count("SELECT count(*) FROM windlass.audit");
    let before = lines();
    let subject = "something".into();
    let change = Change { caller: "ada".to_owned(), address: None, subject, traceparent: None };
    let value = setup.lose(how, |store| act(&store.recorded(change)));
    assert_eq!(lines(), before + 1, "one line");
    value
}

fn recorded_enqueue(setup: &Setup, how: Break) {
    let before = setup.count("SELECT count(*) FROM windlass.jobs");
    let ids = record(setup, how, |store| store.jobs().enqueue(vec![noop()]).unwrap());
    assert_eq!(setup.direct.jobs().get(ids[0]).unwrap().kind, "noop");
    assert_eq!(setup.count("SELECT count(*) FROM windlass.jobs"), before + 1);
    setup.server.client().batch_execute("DELETE FROM windlass.jobs WHERE run_id IS NULL").unwrap();
}

/// The run is there already, so no row of it proves that this transaction was kept.
fn recorded_submit(setup: &Setup, how: Break) {
    let run = NewRun {
        workflow: graph(vec![vec![]]),
        params: Default::default(),
        dir: None,
        run_key: Some("known".to_owned()),
        occasion: None,
    };
    let known = setup.direct.runs().submit(run.clone()).unwrap().run_id;
    let submitted = record(setup, how, |store| store.runs().submit(run).unwrap());
    assert_eq!(submitted, Submitted { run_id: known, created: false });
}

fn recorded_trigger(setup: &Setup, how: Break) {
    let id = schedule(setup);
    while setup.direct.for_scheduler().fire(id).unwrap().again {}
    let before = setup.runs();
    let submitted = record(setup, how, |store| store.schedules().fire(id).unwrap());
    assert!(submitted.created);
    assert_eq!(setup.runs(), before + 1);
}

fn recorded_resume(setup: &Setup, how: Break) {
    assert!(!record(setup, how, |store| store.queues().resume("quiet").unwrap()), "it was not paused");
}

fn enqueue_once(setup: &Setup, how: Break) {
    let before = setup.count("SELECT count(*) FROM windlass.jobs");
    let number = setup.count("SELECT count(*) FROM windlass.idempotency_keys");
    let key =
        IdempotencyKey { caller: "token 1".to_owned(), key: format!("k{number}"), request: "r".to_owned() };
    let ids = record(setup, how, |store| store.once(key.clone()).jobs().enqueue(vec![noop()]).unwrap());
    let subject = "something".into();
    let change = Change { caller: "ada".to_owned(), address: None, subject, traceparent: None };
    let again = setup.direct.once(key).recorded(change).jobs().enqueue(vec![noop()]).unwrap();
    assert_eq!(again, ids);
    assert_eq!(setup.count("SELECT count(*) FROM windlass.jobs"), before + 1);
    setup.server.client().batch_execute("DELETE FROM windlass.jobs WHERE run_id IS NULL").unwrap();
}

fn register_and_stop(setup: &Setup, how: Break) {
    let before = setup.count("SELECT count(*) FROM windlass.workers");
    let worker_id = setup.lose(how, |store| store.for_workers().register(new_worker()).unwrap());
    assert_eq!(setup.count("SELECT count(*) FROM windlass.workers"), before + 1);
    assert!(
        setup.lose(how, |store| store.for_workers().set_status(worker_id, WorkerStatus::Stopped).unwrap())
    );
    assert!(setup.direct.workers().live().unwrap().iter().all(|worker| worker.id != worker_id));
}

fn renew(setup: &Setup, how: Break) {
    let worker_id = setup.worker();
    assert!(setup.lose(how, |store| store.for_workers().heartbeat(worker_id).unwrap()), "it is not fenced");
    let workers = setup.direct.workers().live().unwrap();
    assert!(workers.iter().any(|worker| worker.id == worker_id && worker.heartbeats > 0));
}

fn write_logs(setup: &Setup, how: Break) {
    let job_id = setup.direct.jobs().enqueue(vec![NewJob::new("noop", "null")]).unwrap()[0];
    let line =
        |line| LogLine { job_id, attempt: 1, line, at: 1, stream: LogStream::Stdout, text: line.to_string() };
    let lines = Arc::new(vec![line(1), line(2)]);
    setup.lose(how, |store| store.for_workers().append_logs(lines).unwrap());
    assert_eq!(setup.direct.logs().last(job_id, 1, 10).unwrap().len(), 2);
}

fn rescue(setup: &Setup, how: Break) {
    let (run_id, worker_id) = (setup.chain(), setup.worker());
    let job = setup.claim(worker_id, run_id);
    let rescued = setup.lose(how, |store| store.for_scheduler().rescue(vec![(worker_id, 0)]).unwrap());
    assert_eq!((rescued.fenced, rescued.jobs), (1, 1));
    assert_eq!(setup.direct.jobs().get(job.id).unwrap().interruptions, 1);
}

/// Runs every write in each round, on one server.
fn lose_the_commit_of_each_write(how: Break, rounds: usize) {
    let setup = Setup::new();
    for round in 1..=rounds {
        for (name, verb) in WRITES {
            println!("round {round}: {name}, {how:?}");
            verb(&setup, how);
        }
    }
    assert!(setup.jobs() > 0, "the writes left rows");
    assert_eq!(setup.direct.upkeep().check().unwrap(), [], "the invariants hold");
}

#[test]
fn a_commit_that_never_arrives_is_repeated() {
    lose_the_commit_of_each_write(Break::BeforeCommit, 2);
}

#[test]
fn a_commit_whose_answer_is_lost_is_not_repeated() {
    lose_the_commit_of_each_write(Break::AfterCommit, 2);
}

#[test]
fn a_commit_that_arrives_after_the_connection_broke_is_waited_for() {
    lose_the_commit_of_each_write(Break::Late, 2);
}

/// After the crash, the id of the lost transaction belongs to another transaction, which was committed.
#[test]
fn a_commit_that_a_server_crash_lost_is_repeated() {
    lose_the_commit_of_each_write(Break::Hold, 1);
}

#[test]
fn a_write_without_evidence_reports_an_unknown_outcome() {
    let setup = Setup::new();
    let address = PostgresAddress::parse(&setup.through, &|_name| None).unwrap();
    let database = PostgresDatabase::open(&address, &TABLES, &PostgresOptions::default()).unwrap();
    setup.proxy.break_once(Break::AfterCommit);
    let insert = "INSERT INTO queues (name) VALUES ('some')";
    let operation = move |connection: &mut dyn Connection| connection.execute(insert, &[]).map(|_rows| ());
    let error = database.write("insert", Box::new(operation), Recovery::Report).unwrap_err();
    assert_eq!(error, Error::unavailable("insert", Unavailable::CommitUnknown));
    assert_eq!(setup.count("SELECT count(*) FROM windlass.queues"), 1);
}

/// A write must not return before the server has answered the commit.
#[test]
fn no_write_returns_before_its_commit() {
    let setup = Setup::new();
    setup.proxy.break_once(Break::Hold);
    std::thread::scope(|scope| {
        let enqueuing = scope.spawn(|| setup.broken.jobs().enqueue(vec![noop()]).unwrap());
        wait_for("the commit", || setup.proxy.broken() == 1);
        // The test gives a wrong early answer enough time to arrive: a transaction of another client.
        setup.direct.jobs().enqueue(vec![noop()]).unwrap();
        assert!(!enqueuing.is_finished(), "the server has not received the commit");
        assert_eq!(setup.jobs(), 1, "the other client's transaction");
        setup.server.stop_immediate();
        setup.server.start();
        let ids = enqueuing.join().unwrap();
        assert!(setup.direct.jobs().find(ids[0]).unwrap().is_some());
    });
}

/// A server that lost the last commits gives the same ids to new jobs.
#[test]
fn a_job_never_gets_the_idempotency_key_of_a_lost_job() {
    let server = PrivateServer::new(&[
        ("wal_writer_delay", "10s"),
        ("autovacuum", "off"),
        // The log of one job must fit into a page: the server writes a full page at once.
        ("full_page_writes", "off"),
    ]);
    let clock = Clock::manual(1_000_000_000);
    let worker_id = open(&server.url(), &clock, 1).for_workers().register(new_worker()).unwrap();
    let keys = |seed| {
        let store = open_as(&server.url(), &clock, seed, Durability::Normal);
        // So that the page begins here.
        let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
        client.simple_query("SELECT pg_switch_wal()").unwrap();
        let ids = store.jobs().enqueue(vec![noop()]).unwrap();
        let Claims::Jobs(jobs) = store.for_workers().claim(request(worker_id, Scope::Everything, 1)).unwrap()
        else {
            panic!("fenced")
        };
        (ids, jobs.into_iter().map(|job| job.idempotency_key()).collect::<Vec<_>>())
    };
    let (lost_ids, lost_keys) = keys(2);
    server.stop_immediate();
    server.start();
    let (ids, keys) = keys(3);
    assert_eq!(ids, lost_ids, "the test proves nothing: the server lost nothing");
    assert_eq!(keys.len(), 1);
    assert!(keys.iter().all(|key| !lost_keys.contains(key)), "{keys:?} {lost_keys:?}");
}

/// A standby may return old rows.
#[test]
fn a_standby_refuses_a_write_that_only_reads() {
    let server = PrivateServer::new(&[]);
    let store = open(&server.url(), &Clock::manual(1_000_000_000), 1);
    let worker_id = store.for_workers().register(new_worker()).unwrap();
    server.stop_fast();
    std::fs::write(server.socket_folder().join("data").join("standby.signal"), "").unwrap();
    server.start();
    let error = store.for_workers().claimed_by(worker_id).unwrap_err();
    assert_eq!(error, Error::unavailable("look at what a worker runs", Unavailable::Standby));
    server.client().query_one("SELECT pg_promote()", &[]).unwrap();
    assert_eq!(store.for_workers().claimed_by(worker_id).unwrap(), []);
}
