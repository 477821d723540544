//! The library on threads of an async runtime: every call returns, and everything can be dropped there.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::cell::RefCell;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;
use windlass_engine::HasStore;

use serde_json::Map;
use support::{Bench, seed};
use tokio::runtime::{Builder, Runtime};
use windlass::workflow::{Source, parse};
use windlass::{
    Attempt, Engine, Handlers, JobFilter, JobStatus, LogPosition, NewRun, Options, QueueLimits, Random,
    RunFilter, RunStatus, Windlass, WorkerOptions, typed,
};
use windlass_engine::store::Prune;
use windlass_scheduler::{FailureDetector, gone_workers};
use windlass_system::wake_ups::WakeUps;

/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(600);

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs `part` in every place where a thread can belong to a runtime.
fn everywhere(part: impl Fn() + Send + Sync + Clone + 'static) {
    for runtime in [current_thread(), multi_thread()] {
        runtime.block_on(async { part() });
        let of_task = part.clone();
        runtime.block_on(runtime.spawn(async move { of_task() })).unwrap();
        let of_blocking = part.clone();
        runtime.block_on(runtime.spawn_blocking(of_blocking)).unwrap();
        let _entered = runtime.enter();
        part();
    }
}

fn open(address: &str) -> Windlass {
    Windlass::open_with(address, Options { random: Random::from_seed(seed()), ..Options::default() }).unwrap()
}

fn handlers() -> Handlers {
    let mut handlers = Handlers::with_built_in_kinds();
    handlers.register("double", typed(|_: &Attempt, number: i64| Ok::<_, String>(number * 2)));
    handlers
}

fn start(windlass: &Windlass) -> Engine {
    windlass.start(handlers(), WorkerOptions::default()).unwrap()
}

fn run_of(toml: &str) -> NewRun {
    let source = Source::new("test.toml", toml.as_bytes().to_vec()).unwrap();
    let workflow = parse(&source).unwrap_or_else(|report| panic!("{report:?}"));
    NewRun { workflow, params: Map::new(), dir: None, run_key: None, occasion: None }
}

/// Reads, writes, waits, executes and copies, like a program that uses a database.
fn call_everything(windlass: &Windlass, folder: &Path) {
    let store = windlass.store();
    let progress = store.listen(WakeUps::PROGRESS);
    let engine = start(windlass);
    let job_id = windlass.enqueue("double", &21).unwrap();
    let submitted = windlass.submit(run_of("name = 'one'\n[jobs.a]\nrun = 'true'\n")).unwrap();
    assert_eq!(windlass.wait_for_job(job_id, LONG).unwrap().unwrap().output.as_deref(), Some("42"));
    assert_eq!(windlass.wait_for_run(submitted.run_id, LONG).unwrap().unwrap().status, RunStatus::Successful);
    progress.wait(Duration::ZERO);
    engine.drain();
    engine.join().unwrap();

    let cancelled = windlass.enqueue("nobody", &()).unwrap();
    store.jobs().cancel(cancelled).unwrap();
    assert_eq!(store.jobs().get(cancelled).unwrap().status, JobStatus::Cancelled);
    let of_run = store.jobs().of_run(submitted.run_id).unwrap();
    assert!(store.jobs().list(&JobFilter::newest(100)).unwrap().rows.len() > of_run.len());
    assert!(!store.runs().list(&RunFilter::newest(100)).unwrap().rows.is_empty());
    store.logs().after(LogPosition { job_id, attempt: 0, line: 0 }, 10).unwrap();
    store.jobs().why(job_id).unwrap();
    store.upkeep().stats().unwrap();
    store.upkeep().health().unwrap();
    store.queues().pause("slow").unwrap();
    store.queues().limit("slow", QueueLimits::default()).unwrap();
    store.queues().resume("slow").unwrap();
    store.for_scheduler().promote_due().unwrap();
    store.for_scheduler().next_due().unwrap();
    store.for_scheduler().reconcile_step(0).unwrap();
    store.for_scheduler().admit_waiting("").unwrap();
    store.for_scheduler().prune_step(Prune::default()).unwrap();
    FailureDetector::default().rescue_dead_workers(store).unwrap();
    gone_workers(store).unwrap();
    assert_eq!(store.upkeep().check().unwrap(), []);

    let copy = open(&folder.join(format!("{job_id}.db")).display().to_string());
    windlass.copy_to(&copy).unwrap();
    assert_eq!(copy.jobs().get(job_id).unwrap().status, JobStatus::Successful);
}

#[test]
fn every_call_works_on_threads_of_a_runtime() {
    let bench = Bench::new();
    let (address, folder) = (bench.database.address(), bench.folder.path().to_owned());
    let opened_outside = bench.windlass.clone();
    everywhere(move || {
        call_everything(&opened_outside, &folder);
        call_everything(&open(&address), &folder);
    });
    bench.assert_sound();
}

/// The handler has a runtime of its own, and enqueues from a task of it.
#[test]
fn a_handler_with_a_runtime_can_enqueue_in_a_task() {
    let bench = Bench::new();
    let windlass = bench.windlass.clone();
    let mut handlers = handlers();
    let enqueues = move |_: &Attempt, number: i64| {
        current_thread()
            .block_on(async { windlass.enqueue("double", &number) })
            .map_err(|error| error.to_string())
    };
    handlers.register("enqueues", typed(enqueues));
    let engine = bench.windlass.start(handlers, WorkerOptions::default()).unwrap();
    let first = bench.windlass.enqueue("enqueues", &4).unwrap();
    let first = bench.windlass.wait_for_job(first, LONG).unwrap().unwrap();
    let second: i64 = windlass::output_of(&first).unwrap();
    let second = bench.windlass.wait_for_job(second, LONG).unwrap().unwrap();
    assert_eq!(second.output.as_deref(), Some("8"));
    drop(engine);
}

#[test]
fn a_failed_open_in_a_task_returns_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/folder/windlass.db").display().to_string();
    // Nothing listens on port 1.
    for address in [missing, "postgres://nobody@127.0.0.1:1/nothing".to_owned()] {
        everywhere(move || assert!(Windlass::open(&address).is_err()));
    }
}

#[test]
fn everything_can_be_dropped_on_threads_of_a_runtime() {
    let bench = Bench::new();
    let address = bench.database.address();
    everywhere(move || {
        // The database last, and first: the worker keeps it then.
        for database_is_first in [false, true] {
            let windlass = open(&address);
            let listener = windlass.store().listen(WakeUps::PROGRESS);
            let engine = start(&windlass);
            windlass.enqueue("double", &1).unwrap();
            if database_is_first {
                drop(windlass);
                drop(engine);
            } else {
                drop(engine);
                drop(windlass);
            }
            drop(listener);
        }
        drop(open(&address).store().clone());
    });
    bench.assert_sound();
}

#[test]
fn a_task_with_a_database_and_a_worker_can_panic() {
    let bench = Bench::new();
    for runtime in [current_thread(), multi_thread()] {
        let address = bench.database.address();
        let task = runtime.spawn(async move {
            let windlass = open(&address);
            let _engine = start(&windlass);
            windlass.enqueue("double", &1).unwrap();
            panic!("as planned");
        });
        let panicked = runtime.block_on(task).unwrap_err().into_panic();
        assert_eq!(panicked.downcast_ref::<&str>(), Some(&"as planned"));
    }
    bench.assert_sound();
}

#[test]
fn a_runtime_that_ends_drops_the_values_of_its_tasks() {
    let bench = Bench::new();
    for runtime in [current_thread(), multi_thread()] {
        let windlass = open(&bench.database.address());
        windlass.enqueue("double", &1).unwrap();
        let (begun, has_begun) = channel();
        runtime.spawn(async move {
            let _engine = start(&windlass);
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        runtime.block_on(async { tokio::task::yield_now().await });
        has_begun.recv().unwrap();
        drop(runtime);
    }
    bench.assert_sound();
}

#[test]
fn a_thread_that_ends_drops_its_thread_locals() {
    thread_local! {
        static KEPT: RefCell<Vec<(Windlass, Runtime)>> = const { RefCell::new(Vec::new()) };
    }
    let bench = Bench::new();
    let address = bench.database.address();
    let thread = std::thread::spawn(move || {
        let runtime = current_thread();
        let windlass = open(&address);
        runtime.block_on(async { windlass.enqueue("double", &1) }).unwrap();
        KEPT.with_borrow_mut(|kept| kept.push((windlass, runtime)));
    });
    thread.join().unwrap();
    bench.assert_sound();
}
