//! Executes jobs that do nothing, and waits for their end.

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

/// The kind of jobs without a run.
pub(crate) const NOOP: &str = "noop";
/// The longest measurement. Only an error makes it longer.
const LIMIT: Duration = Duration::from_secs(900);
/// The polling interval when the moment of the end is measured.
const TICK: Duration = Duration::from_millis(1);
/// The polling interval otherwise. Each poll wakes a thread and reads the database, and so delays the measured work.
pub(crate) const SLOW_TICK: Duration = Duration::from_millis(20);

/// Handlers that do nothing except count their calls.
#[derive(Clone, Default)]
pub(crate) struct Noops {
    entered: Arc<AtomicUsize>,
    /// The time of the latest call, by [`monotonic_ns`].
    entered_ns: Arc<AtomicI64>,
}

impl Noops {
    /// The handlers, for jobs without a run and for jobs of runs.
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

    /// The number of calls.
    pub(crate) fn entered(&self) -> usize {
        self.entered.load(Ordering::Acquire)
    }

    /// The time of the latest call.
    pub(crate) fn entered_ns(&self) -> i64 {
        self.entered_ns.load(Ordering::Relaxed)
    }
}

/// Executes this many pending jobs. Returns the time from the start of the worker until the last job's end is committed.
pub(crate) fn drain(
    windlass: &Windlass,
    jobs: usize,
    interruption: &Interruption,
) -> Result<Duration, BenchError> {
    let noops = Noops::default();
    let began = Instant::now();
    let engine = windlass.start(noops.handlers(), WorkerOptions::default())?;
    wait_until(interruption, "the drain", || Ok(noops.entered() >= jobs))?;
    // Each poll reads all claimed jobs and so delays the measured work. An error of 1% is acceptable.
    let tick = TICK.max(began.elapsed() / 100);
    poll_until(interruption, "the drain", tick, || has_nothing(windlass, &engine))?;
    Ok(began.elapsed())
}

fn has_nothing(windlass: &Windlass, engine: &Engine) -> Result<bool, BenchError> {
    Ok(windlass.store().for_workers().claimed_by(engine.worker_id())?.is_empty())
}

/// The times of a run of no-op jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunTimes {
    /// The time to submit it.
    pub(crate) submit: Duration,
    /// The time from the start of the worker until the run's end is committed.
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

/// Waits for the end of a run, which must be SUCCESSFUL. Polls every `tick`.
pub(crate) fn wait_for_run(
    windlass: &Windlass,
    run_id: i64,
    tick: Duration,
    interruption: &Interruption,
) -> Result<(), BenchError> {
    let status = || Ok::<_, BenchError>(windlass.store().runs().get(run_id)?.status);
    poll_until(interruption, "the run", tick, || Ok(status()?.is_terminal()))?;
    match status()? {
        RunStatus::Successful => Ok(()),
        other @ (RunStatus::Pending | RunStatus::Running | RunStatus::Failed | RunStatus::Cancelled) => {
            Err(BenchError::Child(format!("the run that was measured ended {}", other.as_str())))
        }
    }
}

/// Waits until a condition is true. Polls every millisecond.
pub(crate) fn wait_until(
    interruption: &Interruption,
    what: &str,
    is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    poll_until(interruption, what, TICK, is_so)
}

fn poll_until(
    interruption: &Interruption,
    what: &str,
    tick: Duration,
    mut is_so: impl FnMut() -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let began = Instant::now();
    while !is_so()? {
        interruption.check()?;
        if began.elapsed() > LIMIT {
            return Err(BenchError::TooLong { what: what.to_owned(), limit_s: LIMIT.as_secs() });
        }
        std::thread::sleep(tick);
    }
    Ok(())
}

/// Nanoseconds on the machine's monotonic clock, which is the same for all processes.
pub(crate) fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
