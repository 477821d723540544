//! The ceilings, in one table.
//!
//! The ceilings are a tenth above the measured costs, and about twice as high if the cost depends on how jobs fall
//! into groups. After a change that lowers a cost, run `cargo nextest run -p windlass --test costs --no-fail-fast
//! --success-output final`, which prints the present costs, and lower the ceiling to that plus a tenth, so that a
//! later increase is noticed. A ceiling is raised only with a reason in the commit message.

use crate::work::Work;

/// The maximum cost of one job on SQLite: what the writer does for it.
#[derive(Clone, Copy)]
pub(crate) struct OnFile {
    pub(crate) work: Work,
    pub(crate) commits: f64,
    pub(crate) statements: f64,
    pub(crate) steps: f64,
}

pub(crate) const ON_FILE: [OnFile; 7] = [
    // There is no tenth for the steps here. Building a list of the queues that keep the order of arrival, when there
    // are none, would cost only four steps, but a third of the time.
    OnFile { work: Work::EnqueueOne, commits: 1.0, statements: 3.0, steps: 333.0 },
    OnFile { work: Work::EnqueueBatch, commits: 0.0003, statements: 0.005, steps: 200.0 },
    // On a busy machine the claims are smaller and more of them are made, which is up to eight steps a job.
    OnFile { work: Work::Drain, commits: 0.006, statements: 0.05, steps: 450.0 },
    // Registering the worker adds two commits. Rows whose columns are returned are read before they are changed: two
    // statements, which cost less than one with RETURNING.
    // The end of a run also reads who wants to be told of it, and a job the number of its definition.
    OnFile { work: Work::Chain, commits: 1.03, statements: 13.4, steps: 915.0 },
    OnFile { work: Work::Fan, commits: 0.01, statements: 0.1, steps: 640.0 },
    // One commit for each layer, and a few more if other programs keep the processors busy. If each layer falls into
    // parts, the cost is up to 600 steps.
    // Smaller claims of a busy machine are three steps a job here.
    OnFile { work: Work::Layers, commits: 0.02, statements: 0.25, steps: 560.0 },
    // Jobs that end together share a commit: 4 to 11 on an idle machine, 2 to 4 if six other programs keep two
    // processors busy. The start of a process is not written.
    OnFile { work: Work::Processes, commits: 0.6, statements: 8.0, steps: 1_000.0 },
];

/// The maximum number of round trips to the server for one job.
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
    // Four for each link: finish; propagate and read candidates; claim; commit.
    OnServer { work: Work::Chain, round_trips: 4.7 },
    OnServer { work: Work::Fan, round_trips: 0.06 },
    OnServer { work: Work::Layers, round_trips: 0.16 },
    OnServer { work: Work::Processes, round_trips: 3.0 },
];
