//! The simulated world: one database, a clock that the test moves, and its users, who make one call after another.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::sync::Arc;

use fastrand::Rng;
use windlass_engine::store::{Order, QueueLimits, Rate, Setting};
use windlass_engine::{Clock, Error, Random, Result, Store};
use windlass_test_database::{Access, Sql, TestDatabase};
use windlass_workflow::Workflow;

use crate::detector::FailureDetector;
use crate::faults::{Fault, Faults, UnreliableDatabase};
use crate::oracle::{Oracle, Queue, Refusal};
use crate::outside::OutsideWorker;
use crate::rules::{FIFO, NARROW, RATED};
use crate::support;
use crate::worker::SimulatedWorker;

/// The clock moves in steps of this length. The interval of the rate is not a multiple of it, so that the rounding of
/// the rate does not matter.
pub const TICK_MS: i64 = 100;
const RATE: Rate = Rate { jobs: 2, interval_ms: 6_301 };
const MAX_RUNNING: i64 = 2;
/// How many calls are shown if something is wrong.
const TRAIL_LENGTH: usize = 60;

/// The fields are dropped in this order: the database is closed before it is removed.
pub struct World {
    pub trail: Trail,
    pub store: Store,
    pub clock: Clock,
    pub chance: Rng,
    pub oracle: Oracle,
    pub workers: Vec<SimulatedWorker>,
    pub outside: Vec<OutsideWorker>,
    pub detector: FailureDetector,
    /// The last submitted workflow, and the workflow of the schedules.
    pub last_workflow: Option<Workflow>,
    pub fired_workflow: Option<Workflow>,
    /// When the schedules ended.
    pub ended_at_ms: i64,
    faults: Faults,
    sql: Option<Sql>,
    database: TestDatabase,
    _folder: tempfile::TempDir,
}

impl World {
    pub fn new(seed: u64) -> World {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(1_000_000);
        let faults = Faults::default();
        let inner = support::open(&database, &clock);
        let unreliable = UnreliableDatabase { inner, faults: faults.clone() };
        let store = Store::new(Arc::new(unreliable), clock.clone(), Random::from_seed(seed));
        let mut world = World {
            trail: Trail::default(),
            store,
            clock,
            chance: Rng::with_seed(seed),
            oracle: Oracle::default(),
            workers: Vec::new(),
            outside: Vec::new(),
            detector: FailureDetector::default(),
            last_workflow: None,
            fired_workflow: None,
            ended_at_ms: 0,
            faults,
            sql: None,
            database,
            _folder: folder,
        };
        world.limit_queues();
        world.register_schedules();
        world
    }

    fn limit_queues(&mut self) {
        let (keep, is_fifo) = (QueueLimits::default(), self.chance.bool());
        let limits = [
            (NARROW, QueueLimits { max_running: Setting::Set(MAX_RUNNING), ..keep }),
            (RATED, QueueLimits { rate: Setting::Set(RATE), ..keep }),
            (
                FIFO,
                QueueLimits {
                    order: if is_fifo { Setting::Set(Order::Arrival) } else { Setting::Clear },
                    ..keep
                },
            ),
        ];
        for (name, limits) in limits {
            self.store.queues().limit(name, limits).unwrap();
        }
        let rate = (usize::try_from(RATE.jobs).unwrap(), RATE.interval_ms);
        let queues = [
            (NARROW, Queue { max_running: Some(MAX_RUNNING), ..Queue::default() }),
            (RATED, Queue { rate: Some(rate), ..Queue::default() }),
            (FIFO, Queue { is_fifo, ..Queue::default() }),
        ];
        self.oracle.queues = queues.map(|(name, queue)| (name.to_owned(), queue)).into();
    }

    /// Makes one random call.
    pub fn step(&mut self) {
        match self.chance.u8(0..100) {
            0..54 => self.worker_step(),
            54..64 => self.outside_step(),
            64..78 => self.person_step(),
            78..94 => self.scheduler_step(),
            _ => self.advance(),
        }
        self.oracle.compare(&self.store);
        self.oracle.check_overlaps();
    }

    fn advance(&mut self) {
        let to_next_ms =
            self.store.for_scheduler().next_due().unwrap().map_or(-1, |at_ms| at_ms - self.clock.now_ms());
        let is_exact = (0..60_000).contains(&to_next_ms) && self.chance.bool();
        let by_ms = if is_exact {
            to_next_ms + (TICK_MS - to_next_ms % TICK_MS) % TICK_MS
        } else {
            TICK_MS * self.chance.i64(0..40)
        };
        self.trail.note(format!("the clock moves by {by_ms} ms"));
        self.clock.advance_ms(by_ms);
        if is_exact {
            // As the scheduler does, which sleeps until then.
            self.promote_due();
        }
    }

    /// Checks what is only compared from time to time: rows that are only ever added, and the invariants of `db
    /// check`.
    pub fn check(&mut self) {
        let attempts =
            "SELECT job_id, attempt, worker_id, outcome FROM job_attempts ORDER BY job_id, attempt";
        let attempts =
            self.sql().rows(attempts, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        let lines = "SELECT job_id, attempt, line, text FROM job_logs ORDER BY job_id, attempt, line";
        let lines = self.sql().rows(lines, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
        self.oracle.compare_records(&attempts, &lines);
        assert_eq!(self.store.upkeep().check().unwrap(), [], "the invariants hold");
    }

    /// The connection of another program.
    pub fn sql(&mut self) -> &Sql {
        self.sql.get_or_insert_with(|| self.database.sql(Access::Write))
    }

    /// True in one of so many cases.
    pub fn one_in(&mut self, times: u8) -> bool {
        self.chance.u8(0..times) == 0
    }

    /// Calls the store, lets the oracle do the same, and compares the results. Sometimes the answer is lost, and the
    /// caller does not know whether the call was done: then it returns `None`.
    pub fn call<T: PartialEq + Debug>(
        &mut self,
        what: impl Into<String>,
        verb: impl FnOnce(&Store) -> Result<T>,
        rule: impl FnOnce(&mut Oracle, i64) -> std::result::Result<T, Refusal>,
    ) -> Option<std::result::Result<T, Refusal>> {
        let what = what.into();
        let fault = match self.chance.u8(0..24) {
            0 => Some(Fault::BeforeTransaction),
            1 => Some(Fault::AfterCommit),
            _ => None,
        };
        if let Some(fault) = fault {
            self.faults.arm(fault);
        }
        let answer = verb(&self.store);
        // A call that did not write has not met the fault.
        let met = if self.faults.take().is_some() { None } else { fault };
        let now_ms = self.clock.now_ms();
        match (met, answer) {
            (Some(fault), Err(Error::Unavailable { .. })) => {
                self.trail.note(format!("{what}: no answer ({fault:?})"));
                if fault == Fault::AfterCommit {
                    let _lost = rule(&mut self.oracle, now_ms);
                }
                None
            }
            (_no_fault, answer) => {
                self.trail.note(format!("{what}: {answer:?}"));
                let answer = answer.map_err(|error| match error {
                    Error::Conflict { .. } => Refusal::Conflict,
                    Error::NotFound { .. } => Refusal::NotFound,
                    Error::Invalid { .. } | Error::Unavailable { .. } | Error::Internal { .. } => {
                        panic!("{what}: {error}")
                    }
                });
                let expected = rule(&mut self.oracle, now_ms);
                assert_eq!(answer, expected, "the result of: {what}");
                Some(answer)
            }
        }
    }

    /// Nobody interferes any more, and only healthy workers are left. Everything must finish as the rules say.
    pub fn run_all_jobs(&mut self) {
        self.finish_everything();
        let unfinished = self.store.runs().unfinished().unwrap();
        assert_eq!(unfinished, Vec::<i64>::new(), "every run has ended");
        for run_id in self.oracle.runs.keys() {
            let Some(ends) = self.oracle.scripted_end(*run_id) else { continue };
            for (id, end) in ends {
                let job = self.store.jobs().get(id).unwrap();
                assert_eq!((job.status, job.failures), end, "the end by the script of {job:?}");
            }
        }
        self.check_schedules();
        self.check();
    }
}

/// The last calls, which are shown if the test fails.
#[derive(Default)]
pub struct Trail {
    calls: VecDeque<String>,
}

impl Trail {
    pub fn note(&mut self, call: String) {
        if self.calls.len() == TRAIL_LENGTH {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.calls.iter().for_each(|call| println!("{call}"));
        }
    }
}
