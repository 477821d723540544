//! Notices when somebody sets the wall clock, and moves the ends of durations in the tables with it.
//!
//! The scheduler reads the wall clock once per step. Between two readings it counts by the steady clock, which nobody can
//! set. So a change of the wall clock has no effect before the tables have been moved.

use windlass_engine::store::{ClockReading, ClockStep};
use windlass_engine::{Result, Store};

/// The smallest change that counts as a step. Time services make smaller corrections all the time.
const STEP_MIN_MS: i64 = 500;

/// The last reading of the wall clock.
#[derive(Debug, Default)]
pub(crate) struct WallClock {
    last: Option<ClockReading>,
}

impl WallClock {
    /// Compares a reading with the last one. If the clock was set between the two, moves the ends of durations.
    pub(crate) fn follow(&mut self, store: &Store, reading: ClockReading) -> Result<()> {
        match self.last {
            None => {
                let moved = store.for_scheduler().begin_future_waits(reading.now_ms())?;
                if moved.jobs + moved.runs > 0 {
                    tracing::warn!(
                        jobs = moved.jobs,
                        runs = moved.runs,
                        "the clock was set back while no scheduler ran: waits for a duration begin again"
                    );
                }
                self.last = Some(reading);
            }
            Some(last) => {
                let step = step(last, reading);
                if let Some(step) = step {
                    move_tables(store, step)?;
                }
                self.last =
                    Some(ClockReading { steps: step.map_or(reading.steps, |step| step.number), ..reading });
            }
        }
        Ok(())
    }

    /// The current instant, and the number of the last clock step when the clock was read.
    pub(crate) fn now(&self, store: &Store) -> (i64, Option<i64>) {
        match self.last {
            Some(last) => (last.offset_ms + store.clock().steady_ms(), Some(last.steps)),
            None => (store.clock().now_ms(), None),
        }
    }
}

/// The clock step between two readings, if the tables have not been moved for it. If another scheduler has moved them, the
/// second reading already has the number of the step.
fn step(last: ClockReading, reading: ClockReading) -> Option<ClockStep> {
    let by_ms = reading.offset_ms - last.offset_ms;
    (reading.steps == last.steps && by_ms.abs() >= STEP_MIN_MS).then(|| ClockStep {
        number: last.steps + 1,
        by_ms,
        now_ms: reading.now_ms(),
        unseen_ms: reading.steady_ms - last.steady_ms,
    })
}

fn move_tables(store: &Store, step: ClockStep) -> Result<()> {
    if let Some(moved) = store.for_scheduler().move_with_clock(step)? {
        tracing::warn!(
            by_ms = step.by_ms,
            jobs = moved.jobs,
            runs = moved.runs,
            "the clock was set: waits and timeouts were moved with it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::store::{NewJob, NewRun};
    use windlass_engine::{Clock, JobStatus, RunStatus};
    use windlass_test_database::TestDatabase;
    use windlass_workflow::Workflow;

    use super::*;
    use crate::promotion::Promotion;
    use crate::refusals::Refusals;
    use crate::test_store::open;

    const HOUR_MS: i64 = 3_600_000;

    /// A process with a scheduler.
    struct Process {
        store: Store,
        promotion: Promotion,
    }

    impl Process {
        fn new(database: &TestDatabase, clock: &Clock) -> Process {
            Process { store: open(database, clock), promotion: Promotion::default() }
        }

        fn step(&mut self) {
            self.promotion.step(&self.store, &mut Refusals::default()).unwrap();
        }

        fn delayed(&self, delay_ms: i64) -> i64 {
            let job = NewJob { delay_ms: Some(delay_ms), ..NewJob::new("noop", "null") };
            self.store.jobs().enqueue(vec![job]).unwrap()[0]
        }

        fn is_due(&self, job_id: i64) -> bool {
            self.store.jobs().get(job_id).unwrap().status == JobStatus::Pending
        }
    }

    fn database() -> (tempfile::TempDir, TestDatabase) {
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        (folder, database)
    }

    #[test]
    fn a_clock_that_is_set_changes_no_duration() {
        for by_ms in [HOUR_MS, -HOUR_MS] {
            let (_folder, database) = database();
            let clock = Clock::manual(500_000 * HOUR_MS);
            // Two processes of one host notice the step one after the other.
            let mut processes = [Process::new(&database, &clock), Process::new(&database, &clock)];
            let job_id = processes[0].delayed(10_000);
            let workflow = Workflow { timeout_ms: Some(120_000), ..Workflow::graph("w", [vec![]]) };
            let run =
                NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
            let run_id = processes[0].store.runs().submit(run).unwrap().run_id;
            start(&processes[0].store, run_id);
            let mut all = |passed_ms: i64| {
                clock.advance_ms(passed_ms);
                processes.iter_mut().for_each(Process::step);
                let run = processes[0].store.runs().get(run_id).unwrap();
                (processes[0].is_due(job_id), run.stop_reason.is_some())
            };
            assert_eq!(all(3_000), (false, false));
            for _set in 0..3 {
                clock.step_wall_ms(by_ms);
                assert_eq!(all(0), (false, false));
            }
            assert_eq!(all(6_999), (false, false));
            assert_eq!(all(1), (true, false), "ten seconds are over");
            clock.step_wall_ms(-by_ms);
            assert_eq!(all(109_999), (true, false));
            assert_eq!(all(1), (true, true), "two minutes are over");
        }
    }

    fn start(store: &Store, run_id: i64) {
        use windlass_engine::store::{ClaimRequest, NewWorker, Scope, WorkerCapabilities};
        let worker_capabilities = WorkerCapabilities::of_kinds(vec!["shell".to_owned()]);
        let worker = NewWorker {
            host: "test".to_owned(),
            pid: 1,
            process: "test".to_owned(),
            scope: Scope::Everything,
            worker_capabilities: worker_capabilities.clone(),
            threads: 1,
            lease_ms: 100 * HOUR_MS,
        };
        let worker_id = store.for_workers().register(worker).unwrap();
        let scope = Scope::Runs(vec![run_id]);
        store
            .for_workers()
            .claim(ClaimRequest { worker_id, scope, worker_capabilities, limit: 1, idle_threads: 1 })
            .unwrap();
        assert_eq!(store.runs().get(run_id).unwrap().status, RunStatus::Running);
    }

    /// The other scheduler moved the tables back by an hour. By the old reading everything would be due an hour too early.
    #[test]
    fn a_scheduler_whose_reading_is_older_than_the_last_move_reads_the_clock_again() {
        let (_folder, database) = database();
        let clock = Clock::manual(500_000 * HOUR_MS);
        let mut late = Process::new(&database, &clock);
        let mut first = Process::new(&database, &clock);
        let job_id = late.delayed(10_000);
        late.step();
        first.step();
        clock.step_wall_ms(-HOUR_MS);
        first.step();
        // The late scheduler has read the clock just before the step.
        let (now_ms, steps) = late.promotion.wall_clock.now(&late.store);
        assert_eq!(now_ms, clock.now_ms() + HOUR_MS, "it has not noticed");
        assert_eq!(late.store.for_scheduler().promote_due_at(now_ms, steps).unwrap().promoted, 0);
        late.step();
        assert!(!late.is_due(job_id));
        clock.advance_ms(10_000);
        late.step();
        assert!(late.is_due(job_id));
    }

    #[test]
    fn a_scheduler_that_starts_after_the_step_does_not_move_the_tables_again() {
        let (_folder, database) = database();
        let clock = Clock::manual(500_000 * HOUR_MS);
        let mut old = Process::new(&database, &clock);
        old.step();
        let job_id = old.delayed(10_000);
        clock.step_wall_ms(HOUR_MS);
        let mut new = Process::new(&database, &clock);
        let steps =
            |process: &Process| process.store.for_scheduler().upcoming(0).unwrap().clock.unwrap().steps;
        // The new scheduler can't know that the clock was set.
        let reading = new.store.for_scheduler().upcoming(0).unwrap().clock.unwrap();
        new.promotion.wall_clock.follow(&new.store, reading).unwrap();
        old.step();
        new.step();
        old.step();
        assert_eq!(steps(&old), 1);
        assert!(!new.is_due(job_id));
        clock.advance_ms(10_000);
        new.step();
        assert!(new.is_due(job_id));
    }

    #[test]
    fn a_clock_that_was_set_back_while_nothing_ran_makes_no_wait_longer() {
        let (_folder, database) = database();
        let clock = Clock::manual(500_000 * HOUR_MS);
        let mut before = Process::new(&database, &clock);
        let job_id = before.delayed(10_000);
        before.step();
        drop(before);
        clock.step_wall_ms(-HOUR_MS);
        let mut after = Process::new(&database, &clock);
        after.step();
        clock.advance_ms(9_999);
        after.step();
        assert!(!after.is_due(job_id));
        clock.advance_ms(1);
        after.step();
        assert!(after.is_due(job_id));
    }

    #[test]
    fn small_corrections_are_no_steps() {
        let last = ClockReading { steps: 4, offset_ms: 1_000_000, steady_ms: 7_000 };
        let reading = |steps, offset_ms| ClockReading { steps, offset_ms, steady_ms: 7_400 };
        for by_ms in [0, 499, -499] {
            assert_eq!(step(last, reading(4, 1_000_000 + by_ms)), None);
        }
        for by_ms in [500, -500, HOUR_MS] {
            let now_ms = 1_000_000 + by_ms + 7_400;
            let found = step(last, reading(4, 1_000_000 + by_ms));
            assert_eq!(found, Some(ClockStep { number: 5, by_ms, now_ms, unseen_ms: 400 }));
        }
        assert_eq!(step(last, reading(5, 2_000_000)), None, "another scheduler has moved the tables");
    }
}
