//! Deletes finished runs and jobs that the retention does not keep, and files that no run needs. It has a thread of its own, so that a long deletion
//! delays no schedule, no retry and no rescue.
//!
//! It deletes in small batches and pauses after each batch, so that claims are hardly delayed. Any number of processes may
//! delete at the same time.

use std::time::Duration;

use windlass_engine::store::{Prune, Pruned};
use windlass_engine::{Result, Store};
use windlass_system::steps::NextStep;

use crate::files::FilesUpkeep;
use crate::lasting_failure::LastingFailure;
use crate::retention::{Retention, SharedRetention};

/// The pause between two rounds. A round deletes everything that the retention does not keep.
const ROUND: Duration = Duration::from_secs(30);
/// The time until the first batch. A process that ends soon deletes nothing.
const FIRST_MS: i64 = 5_000;
/// The pause after a batch is this many times as long as the batch took. So deletions take at most a fifth of the time.
const PAUSE_FACTOR: i64 = 4;
/// The shortest and the longest pause after a batch.
const PAUSE_MS: std::ops::RangeInclusive<i64> = 20..=2_000;

/// The body of the upkeep thread. A test or a simulation may make the steps itself.
pub struct UpkeepSteps {
    store: Store,
    retention: SharedRetention,
    failure: LastingFailure,
    /// When to delete the first batch, by the monotonic clock.
    begins_at_ms: i64,
    /// When to delete the next batch, by the monotonic clock.
    delete_at_ms: i64,
    /// What the current round has deleted.
    round: Pruned,
    files: FilesUpkeep,
    /// Whether the last step failed. The failure was logged.
    is_failing: bool,
}

impl UpkeepSteps {
    /// The steps of an upkeep thread whose retention does not change.
    #[must_use]
    pub fn new(store: &Store, retention: Retention) -> UpkeepSteps {
        UpkeepSteps::sharing(store, SharedRetention::new(retention), LastingFailure::default())
    }

    /// The steps of an upkeep thread. `retention` may be changed by others. A lasting failure is stored in `failure`.
    pub(crate) fn sharing(store: &Store, retention: SharedRetention, failure: LastingFailure) -> UpkeepSteps {
        UpkeepSteps {
            store: store.clone(),
            retention,
            failure,
            begins_at_ms: store.clock().monotonic_ms() + FIRST_MS,
            delete_at_ms: i64::MIN,
            round: Pruned::default(),
            files: FilesUpkeep::default(),
            is_failing: false,
        }
    }

    /// Deletes one batch. Returns when to delete the next one, or [`NextStep::Never`] after an error that waiting can't
    /// repair.
    pub fn step(&mut self) -> NextStep {
        if self.store.clock().monotonic_ms() < self.begins_at_ms {
            return NextStep::at_ms(self.store.clock(), self.begins_at_ms);
        }
        match self.delete_and_settle() {
            Ok(pause) => {
                self.is_failing = false;
                NextStep::After(pause)
            }
            Err(error) if self.failure.keep_if_lasting(&error) => {
                tracing::error!(%error, "finished runs can't be deleted; giving up");
                NextStep::Never
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_failing, true) {
                    tracing::warn!(%error, "finished runs can't be deleted; trying again");
                }
                NextStep::After(ROUND)
            }
        }
    }

    /// Deletes one batch if it is due, and cares for the files of runs. Returns how long to pause.
    fn delete_and_settle(&mut self) -> Result<Duration> {
        let clock = self.store.clock().clone();
        if clock.monotonic_ms() >= self.delete_at_ms {
            let pause = self.delete_batch()?;
            let pause_ms = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
            self.delete_at_ms = clock.monotonic_ms().saturating_add(pause_ms);
        }
        let files = self.files.step(&self.store)?;
        let left_ms = self.delete_at_ms.saturating_sub(clock.monotonic_ms()).max(0);
        let left = Duration::from_millis(left_ms.unsigned_abs());
        Ok(files.map_or(left, |pause| pause.min(left)))
    }

    /// Deletes one batch. Returns how long to pause.
    fn delete_batch(&mut self) -> Result<Duration> {
        let clock = self.store.clock();
        let Retention { max_age_ms, max_runs_per_workflow, keep_events_ms } = self.retention.get();
        let before_ms = max_age_ms.map(|age_ms| clock.now_ms().saturating_sub(age_ms));
        let began_ms = clock.monotonic_ms();
        let pruned = self.store.for_scheduler().prune_step(Prune {
            before_ms,
            keep_runs: max_runs_per_workflow,
            keep_events_ms,
        })?;
        let pause = pause_after(pruned, clock.monotonic_ms() - began_ms);
        self.round.add(pruned);
        let given_up = self.store.notifications().give_up_old()?;
        if given_up > 0 {
            tracing::warn!(notifications = given_up, "gave up notifications that no service could deliver");
        }
        if pause == ROUND {
            log_round(std::mem::take(&mut self.round));
        }
        Ok(pause)
    }
}

fn pause_after(pruned: Pruned, took_ms: i64) -> Duration {
    if pruned == Pruned::default() {
        return ROUND;
    }
    let pause_ms = took_ms.saturating_mul(PAUSE_FACTOR).clamp(*PAUSE_MS.start(), *PAUSE_MS.end());
    Duration::from_millis(pause_ms.unsigned_abs())
}

fn log_round(round: Pruned) {
    if round.runs + round.jobs > 0 {
        tracing::info!(runs = round.runs, jobs = round.jobs, "deleted old runs and jobs");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_test_database::Access;

    use super::*;
    use crate::test_store::TestStore;

    #[test]
    fn the_pause_is_longer_than_the_batch_took() {
        let some = Pruned { jobs: 1, ..Pruned::default() };
        for (took_ms, pause_ms) in [(0, 20), (10, 40), (100, 400), (5_000, 2_000)] {
            assert_eq!(pause_after(some, took_ms), Duration::from_millis(pause_ms));
        }
        assert_eq!(pause_after(Pruned::default(), 100), ROUND, "nothing is left");
    }

    #[test]
    fn runs_are_deleted_by_age_and_by_number_and_by_default_none_is() {
        let TestStore { store, clock, database, .. } = &TestStore::at(100_000);
        let sql = database.sql(Access::Write);
        // Run n ended at n seconds.
        sql.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99)
             INSERT INTO runs (workflow, status, finished_at) SELECT 'w', 'SUCCESSFUL', n * 1000 FROM numbers",
        );
        let retention = SharedRetention::new(Retention::default());
        let mut upkeep = UpkeepSteps::sharing(store, retention.clone(), LastingFailure::default());
        let first = Duration::from_millis(FIRST_MS.unsigned_abs());
        assert_eq!(upkeep.step(), NextStep::After(first), "not at once after the start");
        clock.advance_ms(FIRST_MS);
        let mut left_after = |max_age_ms: Option<i64>, max_runs_per_workflow: Option<i64>| {
            retention.set(Retention { max_age_ms, max_runs_per_workflow, ..Retention::default() });
            // As if each pause were over, at the same time of day.
            upkeep.delete_at_ms = clock.monotonic_ms();
            while upkeep.step() != NextStep::After(ROUND) {
                upkeep.delete_at_ms = clock.monotonic_ms();
            }
            sql.value::<i64>("SELECT count(*) FROM runs")
        };
        assert_eq!(left_after(None, None), 99);
        assert_eq!(left_after(Some(65_000), None), 60);
        assert_eq!(left_after(None, Some(10)), 10);
        assert_eq!(left_after(Some(10_000), Some(10)), 5);
    }
}
