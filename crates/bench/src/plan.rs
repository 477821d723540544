//! The parts that are measured, and the sizes of their measurements.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;
use windlass_db::Durability;

use crate::interruption::Interruption;
use crate::scratch::DatabaseLocation;

/// A part of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Executing pending jobs.
    Drain,
    /// Enqueueing jobs.
    Enqueue,
    /// Jobs one after the other.
    Chain,
    /// Wide graphs.
    Fan,
    /// Jobs that are processes.
    Process,
    /// How soon a job starts.
    Latency,
    /// The effect of many rows.
    Scale,
    /// Memory, and the processor time of an idle service.
    Memory,
}

impl Part {
    /// All of them, in the order they are measured.
    pub const ALL: [Part; 8] = [
        Part::Drain,
        Part::Enqueue,
        Part::Chain,
        Part::Fan,
        Part::Process,
        Part::Latency,
        Part::Scale,
        Part::Memory,
    ];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Drain => "drain",
            Part::Enqueue => "enqueue",
            Part::Chain => "chain",
            Part::Fan => "fan",
            Part::Process => "process",
            Part::Latency => "latency",
            Part::Scale => "scale",
            Part::Memory => "memory",
        }
    }

    /// A description for people.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Part::Drain => "drain: executing pending jobs",
            Part::Enqueue => "enqueue: enqueueing jobs",
            Part::Chain => "chain: jobs one after the other",
            Part::Fan => "fan: one job, many, one; and layers",
            Part::Process => "process: jobs that are processes",
            Part::Latency => "latency: how soon a job starts",
            Part::Scale => "scale: many rows that can't be claimed now",
            Part::Memory => "memory: memory, and the processor time of an idle service",
        }
    }
}

/// The plan of all measurements.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The parts, in this order.
    pub parts: Vec<Part>,
    /// Where the databases are made.
    pub location: DatabaseLocation,
    /// The durability, for parts that do not measure both.
    pub durability: Durability,
    /// Rounds of each figure, at least 1.
    pub rounds: usize,
    /// The number that determines the sizes of all measurements, at least 1.
    pub jobs: usize,
    /// The program for child processes. It must pass `bench --child TASK` to [`crate::execute_child`], and have the verb
    /// `serve`.
    pub program: PathBuf,
    /// Ends the measurements early.
    pub interruption: Interruption,
}

impl Plan {
    /// How large each measurement is.
    #[must_use]
    pub fn sizes(&self) -> Sizes {
        match &self.location {
            DatabaseLocation::Folder(_) => Sizes::of(self.jobs),
            #[cfg(feature = "postgres")]
            DatabaseLocation::Server(_) => Sizes::on_server(self.jobs),
        }
    }
}

/// How large each measurement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Jobs that are drained, and rows of the raw reference.
    pub drain: usize,
    /// Jobs that one thread enqueues, one by one.
    pub enqueue_one: usize,
    /// Jobs that eight threads enqueue together, one by one.
    pub enqueue_eight: usize,
    /// Jobs of one batch.
    pub batch: usize,
    /// Links of a chain of handlers.
    pub chain: usize,
    /// Jobs between the first and the last of a fan.
    pub fan: usize,
    /// Layers, and jobs of each.
    pub layers: usize,
    /// Links of a chain of processes.
    pub process_chain: usize,
    /// Processes that can run at the same time.
    pub process_fan: usize,
    /// Jobs that start one at a time on a worker that has been idle for a while.
    pub starts_idle: usize,
    /// Jobs that start one at a time on a worker that has just executed another.
    pub starts_soon: usize,
    /// A small number of rows that can't be claimed.
    pub rows_few: usize,
    /// A large number of rows that can't be claimed.
    pub rows_many: usize,
    /// Jobs that are executed in a table with such rows.
    pub before_rows: usize,
    /// Jobs that are drained while memory is measured.
    pub memory_drain: usize,
    /// Jobs of a graph while memory is measured.
    pub memory_graph: usize,
}

impl Sizes {
    /// The sizes for a number of jobs. With 20,000 they are those of the documentation.
    #[must_use]
    pub fn of(jobs: usize) -> Sizes {
        Sizes {
            drain: jobs.max(2),
            enqueue_one: (jobs / 40).max(2),
            enqueue_eight: (jobs / 5).max(8),
            batch: jobs.clamp(2, windlass_engine::store::ENQUEUE_MAX),
            chain: (jobs / 20).max(3),
            fan: (jobs / 2).clamp(2, 100_000),
            layers: (jobs / 2).isqrt().clamp(3, 300),
            process_chain: (jobs / 200).max(3),
            process_fan: (jobs / 20).max(8),
            starts_idle: (jobs / 1_000).max(2),
            starts_soon: (jobs / 400).max(2),
            rows_few: (jobs / 20).max(4),
            rows_many: (jobs * 50).max(4),
            before_rows: (jobs / 2).max(2),
            memory_drain: (jobs * 50).max(2),
            memory_graph: (jobs * 5).clamp(20, windlass_workflow::limits::JOBS),
        }
    }

    /// The same for a server, where single requests and filling tables take longer.
    #[must_use]
    pub fn on_server(jobs: usize) -> Sizes {
        Sizes {
            enqueue_eight: (jobs / 10).max(8),
            chain: (jobs / 40).max(3),
            fan: (jobs / 4).clamp(2, 100_000),
            layers: (jobs / 4).isqrt().clamp(3, 300),
            process_fan: (jobs / 40).max(8),
            starts_idle: (jobs / 500).max(2),
            starts_soon: (jobs / 200).max(2),
            rows_few: (jobs / 10).max(4),
            rows_many: (jobs * 25).max(4),
            memory_drain: (jobs * 10).max(2),
            memory_graph: jobs.clamp(20, windlass_workflow::limits::JOBS),
            ..Sizes::of(jobs)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_sizes_are_those_of_the_documentation() {
        let sizes = Sizes::of(20_000);
        assert_eq!((sizes.drain, sizes.chain, sizes.fan, sizes.layers), (20_000, 1_000, 10_000, 100));
        assert_eq!((sizes.rows_few, sizes.rows_many), (1_000, 1_000_000));
        assert_eq!((sizes.memory_drain, sizes.memory_graph), (1_000_000, 100_000));
    }

    #[test]
    fn the_smallest_and_the_largest_can_be_measured() {
        for jobs in [1, 2, 50, 1_000_000] {
            for sizes in [Sizes::of(jobs), Sizes::on_server(jobs)] {
                assert!(sizes.chain >= 2 && sizes.fan >= 1 && sizes.starts_idle >= 1, "{sizes:?}");
                assert!(sizes.batch <= windlass_engine::store::ENQUEUE_MAX, "{sizes:?}");
                let edges = sizes.layers * sizes.layers * 3 + sizes.memory_graph * 3;
                assert!(edges <= windlass_workflow::limits::EDGES, "{sizes:?}");
            }
        }
    }
}
