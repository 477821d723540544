//! Makes jobs claimable when they are due, stops runs at their deadlines, and wakes workers when the rate of a queue allows
//! further starts.

use windlass_engine::store::{Dispatched, TriggeredRun};
use windlass_engine::{Result, Store};
use windlass_system::wake_ups::WakeUps;

use crate::refusals::Refusals;
use crate::wall_clock::WallClock;

/// The most batches of one step. A step must be short, because dead workers are only detected between steps.
pub(crate) const BATCHES_MAX: usize = 8;

/// Promotes due jobs, step by step.
#[derive(Debug, Default)]
pub(crate) struct Promotion {
    pub(crate) wall_clock: WallClock,
    /// Workers were woken for all rates that allowed further starts up to this instant.
    rates_checked_until_ms: Option<i64>,
    /// The last concurrency key whose waiting runs were looked at. The next step continues after it.
    run_key_cursor: String,
}

impl Promotion {
    /// Promotes what is due, up to a limit. Returns when the next step is due. This is not in the future if something is left.
    pub(crate) fn step(&mut self, store: &Store, refusals: &mut Refusals) -> Result<Option<i64>> {
        let now_ms = self.wall_clock.now(store).0;
        // After the clock was set back, the instant may lie in the future.
        let checked_until_ms = self.rates_checked_until_ms.map_or(now_ms, |until_ms| until_ms.min(now_ms));
        let upcoming = store.for_scheduler().upcoming(checked_until_ms)?;
        if let Some(reading) = upcoming.clock {
            let followed = self.wall_clock.follow(store, reading);
            refusals.tolerate("move waiting jobs with the clock", followed)?;
        }
        if upcoming.has_events {
            refusals.tolerate("dispatch events", dispatch_events(store))?;
        }
        if upcoming.has_run_ends {
            refusals.tolerate("start runs after others", dispatch_run_ends(store))?;
        }
        if upcoming.has_waiting_runs {
            let cursor = store.for_scheduler().admit_runs(&self.run_key_cursor);
            if let Some(cursor) = refusals.tolerate("let waiting runs begin", cursor)? {
                self.run_key_cursor = cursor;
            }
        }
        let rate_allows_at = self.wake_for_rates(store, upcoming.rate_allows_at)?;
        let due_at = self.promote(store, upcoming.due_at)?;
        Ok([due_at, rate_allows_at].into_iter().flatten().min())
    }

    /// Wakes the workers if the rate of a queue allows further starts. Returns when the next rate does.
    fn wake_for_rates(&mut self, store: &Store, rate_allows_at: Option<i64>) -> Result<Option<i64>> {
        let (now_ms, _steps) = self.wall_clock.now(store);
        self.rates_checked_until_ms = Some(now_ms);
        if rate_allows_at.is_none_or(|at_ms| at_ms > now_ms) {
            return Ok(rate_allows_at);
        }
        // Each process wakes its own threads, so there is nothing to write.
        store.wake_ups().publish(WakeUps::PENDING | WakeUps::PROGRESS);
        Ok(store.for_scheduler().upcoming(now_ms)?.rate_allows_at)
    }

    /// Makes due jobs claimable, and stops runs at their deadlines. Returns when the next is due.
    fn promote(&self, store: &Store, mut next_at: Option<i64>) -> Result<Option<i64>> {
        for _batch in 0..BATCHES_MAX {
            let (now_ms, steps) = self.wall_clock.now(store);
            if next_at.is_none_or(|at_ms| at_ms > now_ms) {
                break;
            }
            let due = store.for_scheduler().promote_due_at(now_ms, steps)?;
            next_at = due.next_at;
            if due.promoted == 0 && due.expired == 0 {
                // Another scheduler was first.
                break;
            }
        }
        Ok(next_at)
    }
}

/// Dispatches events, up to a limit. The waits that they end are decided by the next step, which follows at once.
fn dispatch_events(store: &Store) -> Result<()> {
    for _batch in 0..BATCHES_MAX {
        let dispatched = store.for_scheduler().dispatch_new_events()?;
        log_started(&dispatched);
        if !dispatched.has_dispatched {
            break;
        }
    }
    Ok(())
}

fn log_started(dispatched: &Dispatched) {
    for TriggeredRun { run_id, trigger, started_by } in &dispatched.started {
        tracing::info!(run_id, %trigger, %started_by, "the trigger starts a run");
    }
}

/// Starts what ends of runs start, up to a limit.
fn dispatch_run_ends(store: &Store) -> Result<()> {
    for _batch in 0..BATCHES_MAX {
        let dispatched = store.for_scheduler().dispatch_new_run_ends()?;
        log_started(&dispatched);
        if !dispatched.has_dispatched {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::JobStatus;
    use windlass_engine::store::NewJob;
    use windlass_test_database::Access;

    use super::*;
    use crate::test_store::TestStore;

    #[test]
    fn workers_that_wait_for_a_rate_are_woken_once_when_it_allows_a_start() {
        let TestStore { store, clock, database, .. } = &TestStore::at(1_000_000);
        // Starts that count until `expires_at`, as a claim would write them.
        database.sql(Access::Write).execute(
            "INSERT INTO queues (name, rate_jobs, rate_interval_ms) VALUES ('slow', 1, 5000);
             INSERT INTO queue_starts (queue, expires_at, jobs) VALUES ('slow', 1005000, 1), ('slow', 1007000, 1)",
        );
        let listener = store.listen(WakeUps::PENDING);
        let (mut promotion, mut refusals) = (Promotion::default(), Refusals::default());
        let mut woken_after = |passed_ms: i64| {
            clock.advance_ms(passed_ms);
            promotion.step(store, &mut refusals).unwrap();
            listener.wait(std::time::Duration::ZERO).intersects(WakeUps::PENDING)
        };
        let found = [0, 4_999, 1, 0, 1_999, 1, 0, 60_000].map(&mut woken_after);
        assert_eq!(found, [false, false, true, false, false, true, false, false]);
        clock.advance_ms(-3_600_000);
        assert_eq!(promotion.step(store, &mut refusals).unwrap(), None, "what has expired stays expired");
    }

    #[test]
    fn a_step_ends_even_if_more_is_due() {
        let TestStore { store, clock, .. } = &TestStore::at(1_000);
        let later = NewJob { execute_after: Some(2_000), ..NewJob::new("noop", "null") };
        store.jobs().enqueue(vec![later; 20_000]).unwrap();
        clock.advance_ms(5_000);
        let scheduled = || store.upkeep().stats().unwrap().jobs.of(JobStatus::Scheduled);
        let (mut promotion, mut refusals) = (Promotion::default(), Refusals::default());
        let mut step = || promotion.step(store, &mut refusals).unwrap();
        assert_eq!(step(), Some(2_000), "the next step follows at once");
        assert_eq!(scheduled(), 12_000);
        while step().is_some() {}
        assert_eq!(scheduled(), 0);
    }
}
