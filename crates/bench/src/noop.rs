//! Executing jobs that do nothing, and waiting for their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use windlass_engine::HasStore;

use windlass::{Engine, Windlass};
use windlass_engine::RunStatus;
use windlass_engine::store::NewRun;
use windlass_engine::transition::Outcome;
use windlass_worker::{Attempt, Handlers, WorkerOptions};
use windlass_workflow::Workflow;

use crate::error::BenchError;
use crate::interruption::Interruption;

/// The kind of the jobs that stand alone.
pub(crate) const NOOP: &str = "noop";
/// No measurement takes so long unless something is wrong.
const LIMIT: Duration = Duration::from_secs(900);
/// How often it is looked whether something is over, where that moment is measured.
const TICK: Duration = Duration::from_millis(1);
/// How often where it is not: each look wakes a thread, asks the database, and holds up what is measured.
pub(crate) const SELDOM: Duration = Duration::from_millis(20);

/// Handlers that do nothing but count.
#[derive(Clone, Default)]
pub(crate) struct Noops {
    entered: Arc<AtomicUsize>,
    /// When the last of them was entered, by [`monotonic_ns`].
    entered_ns: Arc<AtomicI64>,
}

impl Noops {
    /// For jobs that stand alone, and for those of runs.
    pub(crate) fn handlers(&self) -> Handlers {
        let mut handlers = Handlers::new();
        for kind in [NOOP, "shell"] {
            let noops = self.clone();
            handlers.register(kind, move |_: &Attempt| {
                noops.entered_ns.store(monotonic_ns(), Ordering::Relaxed);
                noops.entered.fetch_add(1, Ordering::Release);
                Outcome::Successful { output: None }
            });
        }
        handlers
    }

    /// How many were entered.
    pub(crate) fn entered(&self) -> usize {
        self.entered.load(Ordering::Acquire)
    }

    /// When the last of them was.
    pub(crate) fn entered_ns(&self) -> i64 {
        self.entered_ns.load(Ordering::Relaxed)
    }
}

/// Executes so many jobs that wait, from the start of the worker until the last one's end is committed.
pub(crate) fn drain(
    windlass: &Windlass,
    jobs: usize,
    interruption: &Interruption,
) -> Result<Duration, BenchError> {
    let noops = Noops::default();
    let began = Instant::now();
    let engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    wait_until(interruption, "the drain", || Ok(noops.entered() >= jobs))?;
    // Each look reads all that is claimed, which holds up what is measured: a hundredth of the time is exact enough.
    let tick = TICK.max(began.elapsed() / 100);
    look_until(interruption, "the drain", tick, || has_nothing(windlass, &engine))?;
    Ok(began.elapsed())
}

fn has_nothing(windlass: &Windlass, engine: &Engine) -> Result<bool, BenchError> {
    Ok(windlass.store().for_workers().claimed_by(engine.worker_id())?.is_empty())
}

/// What a run of no-op jobs took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunTimes {
    /// To accept it.
    pub(crate) submit: Duration,
    /// From the start of the worker until its end is committed.
    pub(crate) run: Duration,
}

/// Submits a workflow, then executes it with handlers that do nothing.
pub(crate) fn run(
    windlass: &Windlass,
    workflow: Workflow,
    interruption: &Interruption,
) -> Result<RunTimes, BenchError> {
    let jobs = workflow.jobs.len();
    let began = Instant::now();
    let run_id = windlass.submit(new_run(workflow))?.run_id;
    let submit = began.elapsed();
    let noops = Noops::default();
    let began = Instant::now();
    let _engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    wait_until(interruption, "the run", || Ok(noops.entered() >= jobs))?;
    wait_for_run(windlass, run_id, TICK, interruption)?;
    Ok(RunTimes { submit, run: began.elapsed() })
}

/// A run of a workflow without parameters.
pub(crate) fn new_run(workflow: Workflow) -> NewRun {
    NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None }
}

/// Waits for the end of a run, which must be a success, and looks every `tick`.
pub(crate) fn wait_for_run(
    windlass: &Windlass,
    run_id: i64,
    tick: Duration,
    interruption: &Interruption,
) -> Result<(), BenchError> {
    let status = || Ok::<_, BenchError>(windlass.store().runs().get(run_id)?.status);
    look_until(interruption, "the run", tick, || Ok(status()?.is_terminal()))?;
    match status()? {
        RunStatus::Successful => Ok(()),
        other @ (RunStatus::Pending | RunStatus::Running | RunStatus::Failed | RunStatus::Cancelled) => {
            Err(BenchError::Child(format!("the run that was measured ended {}", other.as_str())))
        }
    }
}

/// Looks every millisecond whether something is so.
pub(crate) fn wait_until(
    interruption: &Interruption,
    what: &str,
    is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    look_until(interruption, what, TICK, is_so)
}

fn look_until(
    interruption: &Interruption,
    what: &str,
    tick: Duration,
    mut is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let began = Instant::now();
    while !is_so()? {
        interruption.go_on()?;
        if began.elapsed() > LIMIT {
            return Err(BenchError::TooLong { what: what.to_owned(), limit_s: LIMIT.as_secs() });
        }
        std::thread::sleep(tick);
    }
    Ok(())
}

/// Nanoseconds of the machine's monotonic clock, which is the same in all its processes.
pub(crate) fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
