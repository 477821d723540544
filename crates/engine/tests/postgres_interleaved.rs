//! Two transactions that meet at the worst moment, on PostgreSQL: the test holds one open while the other waits for
//! it.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{graph, request, success};
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::store::{
    ClaimedJob, Claims, NewRegistration, NewSignal, RetrySelection, ScheduleOrigin, Scope,
};
use windlass_engine::{Clock, Error, Random, RunStatus, Store, TABLES};
use windlass_test_server::Schema;
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};

const PATIENCE: Duration = Duration::from_secs(30);

fn open(schema: &Schema) -> Store {
    let (clock, random) = (Clock::manual(1_000_000), Random::from_seed(1));
    let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
    let options =
        PostgresOptions { clock: clock.clone(), random: random.clone(), ..PostgresOptions::default() };
    Store::new(Arc::new(PostgresDatabase::open(&address, &TABLES, &options).unwrap()), clock, random)
}

fn claim(store: &Store, worker: i64, limit: usize) -> Vec<ClaimedJob> {
    match store.for_workers().claim(request(worker, Scope::Everything, limit)).unwrap() {
        Claims::Jobs(jobs) => jobs,
        Claims::Fenced => panic!("fenced"),
    }
}

/// Keeps a transaction with these statements open until `action` waits for it, and commits it then.
fn meanwhile<T: Send>(schema: &Schema, statements: &str, action: impl FnOnce() -> T + Send) -> T {
    let (mut holder, mut observer) = (schema.client(), schema.client());
    holder.batch_execute(&format!("BEGIN; {statements}")).unwrap();
    let held_by: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    std::thread::scope(|scope| {
        let acting = scope.spawn(action);
        let is_waited_for = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        let began = Instant::now();
        while observer.query_one(is_waited_for, &[&held_by]).unwrap().get::<_, i64>(0) == 0 {
            assert!(began.elapsed() < PATIENCE, "no transaction waits for: {statements}");
            assert!(!acting.is_finished(), "the action did not wait for: {statements}");
        }
        holder.batch_execute("COMMIT").unwrap();
        acting.join().unwrap()
    })
}

fn hourly(name: &str, hours: i64) -> Definition {
    Definition {
        name: name.to_owned(),
        rule: Rule::EveryMs(hours * 3_600_000),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 10,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

fn apply(store: &Store, schedules: Vec<Definition>) {
    let workflow = Workflow { name: "report".to_owned(), schedules, ..graph(vec![vec![]]) };
    store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

#[test]
fn a_run_that_is_partly_pruned_meanwhile_is_not_retried() {
    let schema = Schema::new();
    let store = open(&schema);
    let run_id = support::submit(&store, graph(vec![vec![], vec![0]]));
    let worker = store.for_workers().register(support::new_worker()).unwrap();
    for _job in 0..2 {
        let jobs = claim(&store, worker, 1);
        store
            .for_workers()
            .finish_and_claim(vec![support::finish(worker, &jobs[0], success())], None)
            .unwrap();
    }
    let prunes = format!(
        "SELECT id FROM runs WHERE id = {run_id} FOR UPDATE; DELETE FROM jobs WHERE run_id = {run_id} AND name = 'j0'"
    );
    let retried =
        meanwhile(&schema, &prunes, || store.runs().retry(run_id, RetrySelection::From("j1".to_owned())));
    assert!(matches!(&retried, Err(Error::Conflict { .. })), "its parent is gone: {retried:?}");
}

/// The decision has looked for events, found none, and is held up before it writes that the job waits.
#[test]
fn a_signal_between_the_look_of_a_decision_and_its_write_is_not_lost() {
    let schema = Schema::new();
    let store = open(&schema);
    let text = "[jobs.paid]\nwait_for = { event = \"paid\" }";
    let source = windlass_workflow::Source::new("paid.toml", text.into()).unwrap();
    let run_id = support::submit(&store, windlass_workflow::parse(&source).unwrap());
    let (mut holder, mut observer) = (schema.client(), schema.client());
    holder.batch_execute("BEGIN; SELECT id FROM jobs FOR UPDATE").unwrap();
    let mut waiting = || -> i64 {
        let blocked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                       AND cardinality(pg_blocking_pids(pid)) > 0";
        observer.query_one(blocked, &[]).unwrap().get(0)
    };
    std::thread::scope(|scope| {
        let began = Instant::now();
        let deciding = scope.spawn(|| store.for_scheduler().decide_waiting().unwrap());
        while waiting() == 0 {
            assert!(began.elapsed() < PATIENCE && !deciding.is_finished(), "the decision does not wait");
        }
        let (name, payload) = ("paid".to_owned(), "1".to_owned());
        let signal = NewSignal { name, key: None, payload, event_id: None };
        let signalling = scope.spawn(|| {
            store.events().signal(signal).unwrap();
            while store.for_scheduler().dispatch_events().unwrap() {}
        });
        while waiting() < 2 && !signalling.is_finished() {
            assert!(began.elapsed() < PATIENCE, "the signal neither waits nor ends");
        }
        holder.batch_execute("COMMIT").unwrap();
    });
    while store.for_scheduler().decide_waiting().unwrap() > 0 {}
    assert_eq!(store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

#[test]
fn of_two_who_add_a_removed_schedule_one_gets_a_conflict() {
    let schema = Schema::new();
    let store = open(&schema);
    apply(&store, vec![]);
    let schedule = store.schedules().add("report", hourly("s", 1)).unwrap();
    store.schedules().remove(schedule.id).unwrap();
    let other = "UPDATE schedules SET removed_at = NULL";
    let added = meanwhile(&schema, other, || store.schedules().add("report", hourly("s", 2)));
    assert!(matches!(&added, Err(Error::Conflict { .. })), "{added:?}");
    assert_eq!(
        store.schedules().get(schedule.id).unwrap().definition,
        hourly("s", 1),
        "the first one is kept"
    );
}

#[test]
fn a_file_takes_over_a_schedule_that_is_added_while_it_is_applied() {
    let schema = Schema::new();
    let store = open(&schema);
    apply(&store, vec![]);
    let other = format!(
        "INSERT INTO schedules (workflow, name, definition, decided_until)
         VALUES ('report', 's', '{}', 1000)",
        serde_json::to_string(&hourly("s", 2)).unwrap()
    );
    meanwhile(&schema, &other, || apply(&store, vec![hourly("s", 1)]));
    let schedules = store.schedules().list().unwrap();
    assert_eq!(schedules.len(), 1);
    assert_eq!((schedules[0].origin, &schedules[0].definition), (ScheduleOrigin::File, &hourly("s", 1)));
    assert!(schedules[0].next_at.is_some());
}

/// The lock and the statements behind it are sent together. They must see what was committed during the wait for the
/// lock.
#[test]
fn a_finish_that_waits_for_its_run_sees_the_changes_of_another() {
    let schema = Schema::new();
    let store = open(&schema);
    let run_id = support::submit(&store, graph(vec![vec![], vec![], vec![0, 1]]));
    let worker = store.for_workers().register(support::new_worker()).unwrap();
    let claimed = claim(&store, worker, 2);
    let ends = format!(
        "SELECT id FROM runs WHERE id = {run_id} FOR UPDATE;
         UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1000000 WHERE id = {first};
         UPDATE jobs SET blocked_by = blocked_by - 1 WHERE run_id = {run_id} AND status = 'BLOCKED';
         UPDATE runs SET unfinished_jobs = unfinished_jobs - 1 WHERE id = {run_id}",
        first = claimed[0].id,
    );
    let request = request(worker, Scope::Everything, 8);
    let end = vec![support::finish(worker, &claimed[1], success())];
    let (_finished, claims) =
        meanwhile(&schema, &ends, || store.for_workers().finish_and_claim(end, Some(request))).unwrap();
    let Claims::Jobs(children) = claims else { panic!("fenced") };
    let [child] = children.as_slice() else { panic!("claimed: {children:?}") };
    let last = vec![support::finish(worker, child, success())];
    let (finished, _claims) = store.for_workers().finish_and_claim(last, None).unwrap();
    assert_eq!(finished.ended_runs.len(), 1, "the run ends with its last job");
}

#[test]
fn a_claim_that_waits_for_its_worker_sees_new_jobs() {
    let schema = Schema::new();
    let store = open(&schema);
    let worker = store.for_workers().register(support::new_worker()).unwrap();
    let comes = format!(
        "UPDATE workers SET heartbeats = heartbeats + 1 WHERE id = {worker};
         INSERT INTO jobs (kind, status) VALUES ('noop', 'PENDING')"
    );
    let claims =
        meanwhile(&schema, &comes, || store.for_workers().claim(request(worker, Scope::Everything, 1)));
    let Claims::Jobs(jobs) = claims.unwrap() else { panic!("fenced") };
    assert_eq!(jobs.len(), 1);
}

#[test]
fn a_worker_that_is_fenced_while_it_claims_gets_nothing() {
    let schema = Schema::new();
    let store = open(&schema);
    store.jobs().enqueue(vec![support::noop()]).unwrap();
    let worker = store.for_workers().register(support::new_worker()).unwrap();
    let fences = format!("UPDATE workers SET status = 'DEAD' WHERE id = {worker}");
    let claims =
        meanwhile(&schema, &fences, || store.for_workers().claim(request(worker, Scope::Everything, 1)));
    assert_eq!(claims.unwrap(), Claims::Fenced);
    let other = store.for_workers().register(support::new_worker()).unwrap();
    assert_eq!(claim(&store, other, 1).len(), 1, "the job is left pending");
}
