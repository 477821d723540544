//! What two transactions do to each other at the worst moment, on PostgreSQL: one is held by hand, and the
//! other waits for it in the middle of what it does.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use support::{graph, request, success};
use windlass_engine::db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions};
use windlass_engine::store::{Claims, NewRegistration, ScheduleOrigin, Scope, Selection};
use windlass_engine::{Clock, Error, Random, Store};
use windlass_test_server::Schema;
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};

const PATIENCE: Duration = Duration::from_secs(30);

fn open(schema: &Schema) -> Store {
    let (clock, random) = (Clock::manual(1_000_000), Random::from_seed(1));
    let address = PostgresAddress::parse(&schema.url(), &|_variable| None).unwrap();
    let options =
        PostgresOptions { clock: clock.clone(), random: random.clone(), ..PostgresOptions::default() };
    Store::new(Arc::new(PostgresDatabase::open(&address, &options).unwrap()), clock, random)
}

/// Holds a transaction with these statements open until `action` waits for it, and commits it then.
fn meanwhile<T: Send>(schema: &Schema, statements: &str, action: impl FnOnce() -> T + Send) -> T {
    let (mut holder, mut observer) = (schema.client(), schema.client());
    holder.batch_execute(&format!("BEGIN; {statements}")).unwrap();
    let held_by: i32 = holder.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    std::thread::scope(|scope| {
        let acting = scope.spawn(action);
        let is_waited_for = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
        let began = Instant::now();
        while observer.query_one(is_waited_for, &[&held_by]).unwrap().get::<_, i64>(0) == 0 {
            assert!(began.elapsed() < PATIENCE, "nobody waits for: {statements}");
            assert!(!acting.is_finished(), "it was done without waiting for: {statements}");
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
    store.apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

#[test]
fn a_run_of_which_a_part_is_pruned_meanwhile_is_not_retried() {
    let schema = Schema::new();
    let store = open(&schema);
    let run_id = support::submit(&store, graph(vec![vec![], vec![0]]));
    let worker = store.register_worker(support::new_worker()).unwrap();
    for _job in 0..2 {
        let Claims::Jobs(jobs) = store.claim(request(worker, Scope::Everything, 1)).unwrap() else {
            panic!("fenced")
        };
        store.finish_and_claim(vec![support::finish(worker, &jobs[0], success())], None).unwrap();
    }
    let prunes = format!(
        "SELECT id FROM runs WHERE id = {run_id} FOR UPDATE; DELETE FROM jobs WHERE run_id = {run_id} AND name = 'j0'"
    );
    let retried = meanwhile(&schema, &prunes, || store.retry_run(run_id, Selection::From("j1".to_owned())));
    assert!(matches!(&retried, Err(Error::Conflict { .. })), "its parent is gone: {retried:?}");
}

#[test]
fn of_two_who_bring_a_schedule_back_one_is_told_that_it_is_there() {
    let schema = Schema::new();
    let store = open(&schema);
    apply(&store, vec![]);
    let schedule = store.add_schedule("report", hourly("s", 1)).unwrap();
    store.remove_schedule(schedule.id).unwrap();
    let other = "UPDATE schedules SET removed_at = NULL";
    let added = meanwhile(&schema, other, || store.add_schedule("report", hourly("s", 2)));
    assert!(matches!(&added, Err(Error::Conflict { .. })), "{added:?}");
    assert_eq!(store.schedule(schedule.id).unwrap().definition, hourly("s", 1), "the first one is kept");
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
    let schedules = store.schedules().unwrap();
    assert_eq!(schedules.len(), 1);
    assert_eq!((schedules[0].origin, &schedules[0].definition), (ScheduleOrigin::File, &hourly("s", 1)));
    assert!(schedules[0].next_at.is_some());
}
