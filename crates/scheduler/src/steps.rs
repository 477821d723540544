//! The steps of the scheduler: each does everything that is due.

use std::sync::Arc;
use std::time::Duration;

use windlass_engine::{Result, Store};
use windlass_system::steps::NextStep;

use crate::failure_detector::{FailureDetector, WorkerProcesses};
use crate::firing::Firing;
use crate::lasting_failure::LastingFailure;
use crate::promotion::{BATCHES_MAX, Promotion};
use crate::reconcile::Reconciler;
use crate::refusals::Refusals;

/// The longest time between two steps, and so between two checks for dead workers.
const DETECT_MS: i64 = 500;
/// The time until the next step if the database is unavailable.
const RETRY: Duration = Duration::from_secs(1);

/// The body of the scheduler's thread. A test or a simulation may make the steps itself.
pub struct SchedulerSteps {
    store: Store,
    failure_detector: FailureDetector,
    reconciler: Reconciler,
    firing: Firing,
    pub(crate) promotion: Promotion,
    /// The last concurrency key whose waiting jobs were admitted. The next step continues after it.
    key_cursor: String,
    refusals: Refusals,
    /// Whether the last step failed. The failure was logged.
    is_failing: bool,
    failure: LastingFailure,
}

impl SchedulerSteps {
    /// The steps of a scheduler. `processes` tells which workers have died.
    #[must_use]
    pub fn new(store: &Store, processes: Arc<dyn WorkerProcesses>) -> SchedulerSteps {
        SchedulerSteps {
            store: store.clone(),
            failure_detector: FailureDetector::with_processes(processes),
            reconciler: Reconciler::default(),
            firing: Firing::default(),
            promotion: Promotion::default(),
            key_cursor: String::new(),
            refusals: Refusals::default(),
            is_failing: false,
            failure: LastingFailure::default(),
        }
    }

    /// The same steps, which store their lasting failure in `failure`.
    pub(crate) fn with_failure(self, failure: LastingFailure) -> SchedulerSteps {
        SchedulerSteps { failure, ..self }
    }

    /// Does what is due. Returns when to make the next step, or [`NextStep::Never`] after an error that waiting can't
    /// repair.
    pub fn step(&mut self) -> NextStep {
        match self.do_what_is_due() {
            Ok(next) => {
                self.is_failing = false;
                next
            }
            Err(error) if self.failure.keep_if_lasting(&error) => {
                tracing::error!(%error, "the scheduler gives up");
                NextStep::Never
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "the scheduler can't use the database; trying again");
                }
                NextStep::After(RETRY)
            }
        }
    }

    fn do_what_is_due(&mut self) -> Result<NextStep> {
        let Self { store, refusals, .. } = self;
        let rescued = self.failure_detector.rescue_dead_workers(store);
        refusals.tolerate("rescue the jobs of dead workers", rescued)?;
        refusals.tolerate("apply the reports of other workers", apply_reports(store))?;
        let reconciled = self.reconciler.step(store);
        refusals.tolerate("reconcile runs with their jobs", reconciled)?;
        let cursor = store.for_scheduler().admit_waiting(&self.key_cursor);
        if let Some(cursor) =
            refusals.tolerate("give free slots of concurrency keys to waiting jobs", cursor)?
        {
            self.key_cursor = cursor;
        }
        let decided = refusals.tolerate("decide about jobs", decide_waiting(store))?;
        let promoted = self.promotion.step(store, refusals);
        let due_at = refusals.tolerate("make due jobs claimable", promoted)?;
        let fired = self.firing.step(store);
        let firing_at = refusals.tolerate("fire schedules", fired)?;
        let decisions_at = decided.filter(|left| *left == Left::Some).map(|_left| store.clock().now_ms());
        let next_at = [due_at, firing_at, Some(decisions_at)].into_iter().flatten().flatten().min();
        let wait_ms = next_at.map_or(DETECT_MS, |at_ms| at_ms.saturating_sub(store.clock().now_ms()));
        Ok(NextStep::After(Duration::from_millis(wait_ms.clamp(0, DETECT_MS).unsigned_abs())))
    }
}

/// Applies the reports of workers in other languages, up to a limit.
fn apply_reports(store: &Store) -> Result<()> {
    for _batch in 0..BATCHES_MAX {
        if store.for_scheduler().apply_reports()? == 0 {
            break;
        }
    }
    Ok(())
}

/// Whether a limited step has left something to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    Some,
}

/// Decides about the jobs that wait for a decision, and about those that have started runs, up to a limit. A skipped job may let another one wait for a decision.
fn decide_waiting(store: &Store) -> Result<Left> {
    for _batch in 0..BATCHES_MAX {
        let scheduler = store.for_scheduler();
        if scheduler.decide_waiting()? + scheduler.stop_calls()? + scheduler.end_calls()? == 0 {
            return Ok(Left::Nothing);
        }
    }
    Ok(Left::Some)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::JobStatus;
    use windlass_engine::store::NewJob;
    use windlass_test_database::Access;

    use super::*;
    use crate::failure_detector::MachineProcesses;
    use crate::test_store::TestStore;

    /// A job that is reported as done.
    const REPORTED: &str = "
        INSERT INTO runs (id, workflow, total_jobs, unfinished_jobs) VALUES (1, 'w', 1, 1);
        INSERT INTO jobs (id, run_id, kind, name, status) VALUES (-2, 1, 'noop', 'a', 'SUCCESSFUL')";

    #[test]
    fn a_task_that_the_database_refuses_does_not_stop_the_others() {
        let TestStore { store, clock, database, .. } = &TestStore::at(1_000);
        database.sql(Access::Write).execute(REPORTED);
        // The table refuses what follows from the report.
        database.refuse(-2, "SUCCESSFUL");
        assert!(store.for_scheduler().apply_reports().is_err());
        let later = NewJob { execute_after: Some(2_000), ..NewJob::new("noop", "null") };
        store.jobs().enqueue(vec![later]).unwrap();
        clock.advance_ms(5_000);
        let mut steps = SchedulerSteps::new(store, Arc::new(MachineProcesses));
        for _step in 0..2 {
            steps.step();
        }
        assert_eq!(store.upkeep().stats().unwrap().jobs.of(JobStatus::Pending), 1);
    }

    #[test]
    fn the_next_step_is_when_the_next_job_is_due_and_makes_it_claimable() {
        let TestStore { store, clock, .. } = &TestStore::at(1_000);
        let mut steps = SchedulerSteps::new(store, Arc::new(MachineProcesses));
        let tick = Duration::from_millis(DETECT_MS.unsigned_abs());
        assert_eq!(steps.step(), NextStep::After(tick), "nothing is due");
        let later = NewJob { execute_after: Some(1_300), ..NewJob::new("noop", "null") };
        store.jobs().enqueue(vec![later]).unwrap();
        assert_eq!(steps.step(), NextStep::After(Duration::from_millis(300)));
        clock.advance_ms(300);
        assert_eq!(steps.step(), NextStep::After(tick));
        assert_eq!(store.upkeep().stats().unwrap().jobs.of(JobStatus::Pending), 1);
    }
}
