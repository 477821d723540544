//! Waiting until jobs and runs end.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use support::{Bench, wait_for};
use windlass::{
    Attempt, Clock, Error, Handlers, JobStatus, Options, RunStatus, Windlass, WorkerOptions, output_of, typed,
};
use windlass_test_database::Access;

/// Longer than any test may take. A test that waits so long was not woken.
const LONG: Duration = Duration::from_secs(600);

#[test]
fn waiting_returns_the_result_of_the_handler() {
    let bench = Bench::new();
    let mut handlers = Handlers::new();
    handlers.register("add", typed(|_: &Attempt, (a, b): (i64, i64)| Ok::<_, String>(a + b)));
    handlers.register("nothing", typed(|_: &Attempt, (): ()| Ok::<_, String>(())));
    handlers.register("fails", typed(|_: &Attempt, (): ()| Err::<(), _>("no luck")));
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let end = |kind: &str, payload: &serde_json::Value| {
        let id = bench.windlass.enqueue(kind, payload).unwrap();
        bench.windlass.wait_for_job(id, LONG).unwrap().unwrap()
    };
    let sum = end("add", &serde_json::json!([2, 3]));
    assert_eq!(output_of::<i64>(&sum), Ok(5));
    let unfit = output_of::<String>(&sum).unwrap_err().to_string();
    assert!(unfit.contains(&format!("job j{}", sum.id)) && unfit.contains("expected a string"), "{unfit}");
    assert_eq!(output_of::<()>(&end("nothing", &serde_json::Value::Null)), Ok(()));
    let failed = end("add", &serde_json::json!("no pair"));
    let refused = output_of::<i64>(&failed).unwrap_err().to_string();
    assert!(refused.contains("it is FAILED: the payload does not have the expected type"), "{refused}");
    drop(engine);
}

#[test]
fn the_end_of_a_job_in_another_process_is_noticed() {
    let bench = Bench::new();
    let run_id = bench.submit("name = 'one'\n[jobs.a]\nrun = 'true'\n");
    // The waiting thread has read the job, and no worker is running yet.
    let waiting = {
        let windlass = Windlass::open(bench.database.address()).unwrap();
        let (begun, has_begun) = channel();
        let thread = std::thread::spawn(move || {
            begun.send(()).unwrap();
            windlass.wait_for_run(run_id, LONG)
        });
        has_begun.recv().unwrap();
        thread
    };
    assert!(!waiting.is_finished());
    let engine = bench.windlass.start(Handlers::with_built_in_kinds(), WorkerOptions::default()).unwrap();
    let run = waiting.join().unwrap().unwrap().unwrap();
    assert_eq!((run.id, run.status), (run_id, RunStatus::Successful));
    drop(engine);
}

#[test]
fn waiting_ends_at_its_time_limit() {
    let clock = Clock::manual(1_700_000_000_000);
    let bench = Bench::with(Options { clock: clock.clone(), ..Options::default() });
    let id = bench.windlass.enqueue("nobody", &()).unwrap();
    let began = Instant::now();
    assert_eq!(bench.windlass.wait_for_job(id, Duration::ZERO), Ok(None));
    let windlass = bench.windlass.clone();
    let waiting = std::thread::spawn(move || windlass.wait_for_job(id, Duration::from_secs(3_600)));
    // The limit counts from the call by the clock in the options.
    wait_for("the time limit", || {
        clock.advance_ms(3_600_000);
        waiting.is_finished().then_some(())
    });
    assert_eq!(waiting.join().unwrap(), Ok(None));
    assert!(began.elapsed() < LONG);
    assert_eq!(bench.windlass.jobs().get(id).unwrap().status, JobStatus::Pending);
    assert!(matches!(bench.windlass.wait_for_run(7, LONG), Err(Error::NotFound { .. })));
}

#[test]
fn waiting_continues_after_a_reported_failure_that_is_retried() {
    let bench = Bench::new();
    let id = bench.windlass.enqueue("foreign", &()).unwrap();
    let foreign = bench.database.sql(Access::Write);
    foreign.execute("UPDATE jobs SET status = 'RUNNING', worker_id = 1, attempt = 1");
    foreign.execute("UPDATE jobs SET status = 'FAILED', last_error = 'no luck'");
    assert_eq!(bench.windlass.jobs().get(id).unwrap().status, JobStatus::Failed);
    assert_eq!(bench.windlass.wait_for_job(id, Duration::ZERO), Ok(None));
}
