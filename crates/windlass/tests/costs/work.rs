//! The measured work, which is the same on both databases.

use std::time::{Duration, Instant};

use windlass::workflow::Workflow;
use windlass::workflow::kinds::shell::Shell;
use windlass::{Attempt, Clock, Handlers, NewJob, NewRun, Outcome, WorkerOptions};
use windlass_engine::Store;
use windlass_worker::Worker;

/// Long enough for a loaded machine. A test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of layers, and of jobs in each.
const LAYERS: usize = 20;
const LAYER: usize = 100;

/// A kind of work in which all jobs cost about the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Enqueues jobs one by one.
    EnqueueOne,
    /// Enqueues jobs as one batch.
    EnqueueBatch,
    /// Executes pending jobs.
    Drain,
    /// Executes a run of jobs one after another.
    Chain,
    /// Executes a run of one job, then many, then one.
    Fan,
    /// Executes a run of layers of jobs. Each job needs three jobs of the previous layer.
    Layers,
    /// Executes a run of jobs that are processes and write one line each.
    Processes,
}

impl Work {
    /// The number of jobs.
    pub(crate) fn jobs(self) -> usize {
        match self {
            Work::EnqueueOne | Work::Chain | Work::Processes => 200,
            Work::EnqueueBatch | Work::Drain => 4_000,
            Work::Fan => 2_002,
            Work::Layers => LAYERS * LAYER,
        }
    }

    /// How many jobs are prefetched depends on how long jobs take. If the cost depends mostly on that, the clock
    /// stands still, so that jobs take no time on a busy machine either. A chain would otherwise take so long on a
    /// busy machine that upkeep, which runs every second, would be counted too.
    pub(crate) fn clock(self) -> Clock {
        match self {
            Work::Drain | Work::Chain | Work::Fan => Clock::manual(1_000_000),
            Work::EnqueueOne | Work::EnqueueBatch | Work::Layers | Work::Processes => Clock::system(),
        }
    }

    /// Prepares the work, calls `begin`, and then does the work itself. `observer` uses the same database and is not
    /// counted.
    pub(crate) fn perform(self, store: &Store, observer: &Store, begin: impl FnOnce()) {
        let jobs = self.jobs();
        match self {
            Work::EnqueueOne => {
                begin();
                for _job in 0..jobs {
                    store.jobs().enqueue(vec![noop()]).unwrap();
                }
            }
            Work::EnqueueBatch => {
                begin();
                store.jobs().enqueue(vec![noop(); jobs]).unwrap();
            }
            Work::Drain => {
                store.jobs().enqueue(vec![noop(); jobs]).unwrap();
                begin();
                execute(store, observer, noops(), jobs);
            }
            Work::Chain => {
                submit(store, graph((0..jobs).map(|link| link.checked_sub(1).into_iter().collect())));
                begin();
                execute(store, observer, noops(), jobs);
            }
            Work::Fan => {
                let middle = jobs - 2;
                let needs = std::iter::once(Vec::new())
                    .chain((0..middle).map(|_job| vec![0]))
                    .chain(std::iter::once((1..=middle).collect()));
                submit(store, graph(needs));
                begin();
                execute(store, observer, noops(), jobs);
            }
            Work::Layers => {
                let needs_of = |layer: usize, place: usize| match layer.checked_sub(1) {
                    None => Vec::new(),
                    Some(before) => (0..3).map(|step| before * LAYER + (place + step) % LAYER).collect(),
                };
                let needs = (0..jobs).map(|job| needs_of(job / LAYER, job % LAYER));
                submit(store, graph(needs));
                begin();
                execute(store, observer, noops(), jobs);
            }
            Work::Processes => {
                let mut workflow = graph((0..jobs).map(|_job| Vec::new()));
                for job in &mut workflow.jobs {
                    job.action = Shell::command(["echo", "done"]).into();
                }
                submit(store, workflow);
                begin();
                execute(store, observer, Handlers::with_built_in_kinds(), jobs);
            }
        }
    }
}

fn noop() -> NewJob {
    NewJob::new("noop", "null")
}

/// Handlers that do nothing, also for the kind of processes.
fn noops() -> Handlers {
    let mut handlers = Handlers::new();
    for kind in ["noop", "shell"] {
        handlers.register(kind, |_: &Attempt| Outcome::Successful { output: None });
    }
    handlers
}

/// Runs a worker, and nothing else, until all jobs are SUCCESSFUL.
fn execute(store: &Store, observer: &Store, handlers: Handlers, jobs: usize) {
    let _worker = Worker::start(store, handlers, WorkerOptions { threads: 8, ..WorkerOptions::default() });
    let began = Instant::now();
    let successful = || observer.upkeep().stats().unwrap().jobs.of(windlass::JobStatus::Successful);
    while successful() < i64::try_from(jobs).unwrap() {
        assert!(began.elapsed() < PATIENCE, "{} of {jobs} jobs are SUCCESSFUL", successful());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn graph(needs: impl Iterator<Item = Vec<usize>>) -> Workflow {
    Workflow::graph("graph", needs)
}

fn submit(store: &Store, workflow: Workflow) {
    let run = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    store.runs().submit(run).unwrap();
}

/// What was counted for all jobs of a kind of work, and how much one of them may cost.
pub(crate) struct Cost {
    pub(crate) work: Work,
    pub(crate) unit: &'static str,
    pub(crate) counted: u64,
    pub(crate) ceiling: f64,
}

/// Prints the cost of a job and compares it with its ceiling.
#[track_caller]
pub(crate) fn hold(costs: Vec<Cost>) {
    let mut above = Vec::new();
    for Cost { work, unit, counted, ceiling } in costs {
        let each = counted as f64 / work.jobs() as f64;
        println!("{work:?}: {each:.4} {unit} a job, ceiling {ceiling}");
        if each > ceiling {
            above.push(format!("{work:?}: {each:.4} {unit} a job are above the ceiling of {ceiling}"));
        }
    }
    assert!(above.is_empty(), "{above:#?}");
}
