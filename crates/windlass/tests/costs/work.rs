//! What is measured: the same on both databases.

use std::time::{Duration, Instant};

use windlass::Outcome;
use windlass::workflow::Workflow;
use windlass::workflow::kinds::shell::Shell;
use windlass::{Attempt, Clock, Handlers, WorkerOptions};
use windlass::{NewJob, NewRun};
use windlass_engine::Store;
use windlass_worker::Worker;

/// Long enough for a loaded machine; a test that reaches it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Layers, and the jobs in one.
const LAYERS: usize = 20;
const LAYER: usize = 100;

/// Work of which each job costs about the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Jobs are enqueued one by one.
    EnqueueOne,
    /// Jobs are enqueued as one batch.
    EnqueueBatch,
    /// Jobs that wait are executed.
    Drain,
    /// A run of jobs one after the other is executed.
    Chain,
    /// A run of one job, many, one is executed.
    Fan,
    /// A run of layers of jobs, each of which needs three of the layer before, is executed.
    Layers,
    /// A run of jobs that are processes and write a line each is executed.
    Processes,
}

impl Work {
    /// How many jobs it is.
    pub(crate) fn jobs(self) -> usize {
        match self {
            Work::EnqueueOne | Work::Chain | Work::Processes => 200,
            Work::EnqueueBatch | Work::Drain => 4_000,
            Work::Fan => 2_002,
            Work::Layers => LAYERS * LAYER,
        }
    }

    /// How long jobs take says how many of them are held, so where that is what most of the cost depends on they take
    /// no time at all: the clock stands still. A machine that is busy would else make them dearer. A chain takes so long on
    /// one that what is done every second would count too.
    pub(crate) fn clock(self) -> Clock {
        match self {
            Work::Drain | Work::Chain | Work::Fan => Clock::manual(1_000_000),
            Work::EnqueueOne | Work::EnqueueBatch | Work::Layers | Work::Processes => Clock::system(),
        }
    }

    /// Does what comes before, then `begin`, then the work itself. `observer` is a way to the same database
    /// on which nothing is counted.
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

/// Handlers that do nothing, also in place of processes.
fn noops() -> Handlers {
    let mut handlers = Handlers::new();
    for kind in ["noop", "shell"] {
        handlers.register(kind, |_: &Attempt| Outcome::Successful { output: None });
    }
    handlers
}

/// A worker, and nothing else, until all jobs are SUCCESSFUL.
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

/// What was counted for all jobs of a work, and what one of them may cost.
pub(crate) struct Cost {
    pub(crate) work: Work,
    pub(crate) unit: &'static str,
    pub(crate) counted: u64,
    pub(crate) ceiling: f64,
}

/// Prints what a job costs, and holds it against its ceilings.
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
