//! Promise: a producer and a worker in Python's standard library share a database with Windlass, and nothing is
//! done twice.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use windlass::{Attempt, Handlers, Outcome, Windlass, WorkerOptions};
use windlass_test_database::Access;
use windlass_tests::binary::repository;
use windlass_tests::{Engine, Sandbox, eventually};

fn python(sandbox: &Sandbox, script: &str, arguments: &[&str]) -> Engine {
    let path: PathBuf = repository().join("examples/sql").join(script);
    let address = sandbox.database().address();
    let mut all = vec![path.to_string_lossy().into_owned(), address];
    all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    sandbox.start(sandbox.prepared(Command::new("python3"), &all))
}

fn produce(sandbox: &Sandbox, orders: usize) {
    sandbox.run(&["db", "migrate"]).exited(0);
    python(sandbox, "producer.py", &[&orders.to_string()]).wait().exited(0);
}

fn count(sandbox: &Sandbox, sql: &str) -> i64 {
    sandbox.tables().value(sql)
}

fn confirmed(sandbox: &Sandbox) -> i64 {
    count(sandbox, "SELECT count(*) FROM confirmations")
}

fn wait_for_all(sandbox: &Sandbox, orders: i64) {
    eventually("the end of all jobs", || {
        let over = "SELECT count(*) FROM jobs WHERE status = 'SUCCESSFUL' AND finished_at IS NOT NULL";
        (count(sandbox, over) == orders).then_some(())
    });
}

/// Every order was confirmed, and none twice.
fn assert_each_once(sandbox: &Sandbox, orders: i64) {
    assert_eq!(confirmed(sandbox), orders);
    assert_eq!(count(sandbox, "SELECT count(DISTINCT order_id) FROM confirmations"), orders);
    sandbox.run(&["db", "check"]).exited(0);
}

/// Does what the example's worker does, in Rust, once that has begun too.
fn confirm(database: &std::path::Path, attempt: &Attempt) -> Result<(), String> {
    let connection = rusqlite::Connection::open(database).map_err(|error| error.to_string())?;
    connection.busy_timeout(Duration::from_secs(20)).map_err(|error| error.to_string())?;
    let payload: serde_json::Value =
        serde_json::from_str(&attempt.job().payload).map_err(|error| error.to_string())?;
    eventually("a confirmation by Python", || {
        let by_python = "SELECT count(*) FROM confirmations WHERE worker <> 0";
        let found: i64 = connection.query_row(by_python, [], |row| row.get(0)).ok()?;
        (found > 0).then_some(())
    });
    connection
        .execute("INSERT INTO confirmations VALUES (?1, 0)", [payload["order"].as_i64()])
        .map(drop)
        .map_err(|error| error.to_string())
}

#[test]
fn python_and_rust_take_from_one_queue_and_nothing_is_done_twice() {
    const ORDERS: usize = 300;
    let sandbox = Sandbox::new();
    produce(&sandbox, ORDERS);
    let workers = [python(&sandbox, "worker.py", &[]), python(&sandbox, "worker.py", &[])];
    eventually("the table of confirmations", || sandbox.database().has_table("confirmations").then_some(()));
    let windlass = Windlass::open(sandbox.database().address()).expect("the database opens");
    let (mut handlers, path) = (Handlers::new(), PathBuf::from(sandbox.database().address()));
    handlers.register("confirm", move |attempt: &Attempt| match confirm(&path, attempt) {
        Ok(()) => Outcome::Successful { output: None },
        Err(error) => Outcome::Failed { error, repeat: windlass::Repeat::Allowed },
    });
    let engine = windlass.start(handlers, WorkerOptions { threads: 2, ..WorkerOptions::default() });
    let engine = engine.expect("the engine starts");
    wait_for_all(&sandbox, ORDERS as i64);
    assert_each_once(&sandbox, ORDERS as i64);
    let by_rust = count(&sandbox, "SELECT count(*) FROM confirmations WHERE worker = 0");
    assert!((1..ORDERS as i64).contains(&by_rust), "both took part: {by_rust} by Rust");
    assert_eq!(count(&sandbox, "SELECT max(attempt) FROM jobs"), 1, "each was claimed once");
    for mut worker in workers {
        worker.signal(Signal::TERM);
        worker.wait().exited(0);
    }
    assert_eq!(count(&sandbox, "SELECT count(*) FROM workers WHERE status = 'STOPPED'"), 2);
    drop(engine);
}

#[test]
fn the_jobs_of_a_killed_python_worker_are_executed_by_another() {
    const ORDERS: usize = 200;
    let sandbox = Sandbox::new();
    produce(&sandbox, ORDERS);
    let _keeps_time = sandbox.spawn(&["worker"]);
    let mut victim = python(&sandbox, "worker.py", &[]);
    // The process stops between its claim and its report.
    let held: i64 = eventually("a moment at which it holds a job", || {
        victim.signal(Signal::STOP);
        let held = sandbox.tables().value("SELECT coalesce(max(id), 0) FROM jobs WHERE status = 'RUNNING'");
        if held == 0 {
            victim.signal(Signal::CONT);
        }
        (held > 0).then_some(held)
    });
    victim.kill_9();
    let _other = python(&sandbox, "worker.py", &[]);
    wait_for_all(&sandbox, ORDERS as i64);
    assert_each_once(&sandbox, ORDERS as i64);
    let attempts = format!("SELECT attempt FROM jobs WHERE id = {held}");
    assert_eq!(count(&sandbox, &attempts), 2);
    let outcome = format!("SELECT outcome FROM job_attempts WHERE job_id = {held}");
    assert_eq!(sandbox.tables().value::<String>(&outcome), "interrupted");
}

#[test]
fn an_order_that_is_taken_back_leaves_no_job() {
    let sandbox = Sandbox::new();
    produce(&sandbox, 1);
    // A duplicate key refuses the job, and the order with it.
    let sql = sandbox.database().sql(Access::Write);
    sql.execute("INSERT INTO jobs (kind, unique_key) VALUES ('confirm', 'confirm-2')");
    let outcome = python(&sandbox, "producer.py", &["1"]).wait();
    assert_eq!(outcome.code, Some(1), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("UNIQUE"), "{}", outcome.stderr);
    assert_eq!(sql.value::<i64>("SELECT count(*) FROM orders"), 1);
}
