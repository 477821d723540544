//! The ceilings, in one table.
//!
//! They lie a little above what was measured: a tenth, and for what depends on how jobs fall into groups about
//! twice. When a change makes something cheaper, run
//! `cargo nextest run -p windlass --test costs --no-fail-fast --success-output final`, which prints what it costs
//! now, and lower the ceiling to that and a tenth: then it can't become dearer again unseen. A ceiling is raised
//! only with a reason in the commit.

use crate::work::Work;

/// What one job may cost at most on SQLite: what the writer does for it.
#[derive(Clone, Copy)]
pub(crate) struct OnFile {
    pub(crate) work: Work,
    pub(crate) commits: f64,
    pub(crate) statements: f64,
    pub(crate) steps: f64,
}

pub(crate) const ON_FILE: [OnFile; 7] = [
    // No tenth for the steps: a list of the queues that keep the order of arrival, built where there are none, would be
    // only four of them, and a third of the time.
    OnFile { work: Work::EnqueueOne, commits: 1.0, statements: 3.0, steps: 263.0 },
    OnFile { work: Work::EnqueueBatch, commits: 0.0003, statements: 0.005, steps: 175.0 },
    OnFile { work: Work::Drain, commits: 0.006, statements: 0.05, steps: 450.0 },
    // Registering the worker is two commits more. Rows that are told of are read before they are changed: two
    // statements, and cheaper than one with RETURNING.
    OnFile { work: Work::Chain, commits: 1.03, statements: 13.4, steps: 915.0 },
    OnFile { work: Work::Fan, commits: 0.01, statements: 0.1, steps: 620.0 },
    // One commit a layer, and a few more where other programs keep the processors busy: where each layer falls into
    // parts it is 531 steps.
    OnFile { work: Work::Layers, commits: 0.02, statements: 0.25, steps: 560.0 },
    // Several that end together share a commit: 4 to 11 of them where there is nothing else to do, 2 to 4 where six
    // other programs keep two processors busy. That a process begins is not written.
    OnFile { work: Work::Processes, commits: 0.6, statements: 8.0, steps: 1_000.0 },
];

/// How often a server is asked and answers for one job at most.
#[derive(Clone, Copy)]
pub(crate) struct OnServer {
    pub(crate) work: Work,
    pub(crate) round_trips: f64,
}

pub(crate) const ON_SERVER: [OnServer; 7] = [
    // The settings, the row and the commit are sent together.
    OnServer { work: Work::EnqueueOne, round_trips: 1.1 },
    OnServer { work: Work::EnqueueBatch, round_trips: 0.002 },
    OnServer { work: Work::Drain, round_trips: 0.03 },
    // Four for a link: ending, what follows for others and looking, claiming, committing.
    OnServer { work: Work::Chain, round_trips: 4.7 },
    OnServer { work: Work::Fan, round_trips: 0.06 },
    OnServer { work: Work::Layers, round_trips: 0.16 },
    OnServer { work: Work::Processes, round_trips: 3.0 },
];
