//! Fires schedules: decides due occurrences and starts their runs. Also starts the runs of occurrences that waited.

use std::collections::HashMap;

use windlass_engine::store::{Fired, MISSED_COUNT_MAX};
use windlass_engine::{Error, Result, Store};
use windlass_workflow::schedule::local_text;

/// The most schedules of one round.
const SCHEDULES_MAX: usize = 100;
/// The most rounds of one step. A step must be short, because dead workers are only detected between steps.
const ROUNDS_MAX: usize = 8;
/// The time until the next attempt to fire a schedule that another scheduler is firing.
const BUSY_PAUSE_MS: i64 = 5;
/// The time until the next attempt to fire a schedule that failed. It is short, so that an occurrence that becomes due
/// during it still counts as on time.
const RETRY_MS: i64 = 5_000;

/// Fires schedules, and remembers which ones can't be fired.
#[derive(Debug, Default)]
pub(crate) struct Firing {
    /// Schedules that can't be fired, and when to try again by the monotonic clock. This is not in the database, because a
    /// process of a newer version may be able to fire them.
    failing: HashMap<i64, i64>,
}

impl Firing {
    /// Fires what is due, up to a limit. Returns when something is due next; that is not in the future if something is
    /// left.
    pub(crate) fn step(&mut self, store: &Store) -> Result<Option<i64>> {
        for _round in 0..ROUNDS_MAX {
            let mut again = false;
            let schedules = store.for_scheduler().schedules_to_fire(SCHEDULES_MAX, &self.postponed(store))?;
            if !schedules.is_empty() {
                // Before they are fired, because then they are late no more.
                store.for_scheduler().mark_late_schedules()?;
            }
            for schedule_id in schedules {
                again |= self.fire(store, schedule_id)?;
            }
            if !again {
                let soon_ms = store.clock().now_ms() + BUSY_PAUSE_MS;
                // A schedule that is still due is being fired by another scheduler.
                return Ok(store
                    .for_scheduler()
                    .next_firing(&self.postponed(store))?
                    .map(|next_at| next_at.max(soon_ms)));
            }
        }
        Ok(Some(store.clock().now_ms()))
    }

    /// The schedules that failed and are not tried again yet.
    fn postponed(&self, store: &Store) -> Vec<i64> {
        let now_ms = store.clock().monotonic_ms();
        self.failing.iter().filter(|(_id, until_ms)| **until_ms > now_ms).map(|(id, _until_ms)| *id).collect()
    }

    /// Fires one schedule. Returns whether there is more to do at once.
    fn fire(&mut self, store: &Store, schedule_id: i64) -> Result<bool> {
        match store.for_scheduler().fire(schedule_id) {
            Ok(fired) => {
                self.failing.remove(&schedule_id);
                log_fired(&fired);
                Ok(fired.again)
            }
            Err(error @ (Error::Invalid { .. } | Error::NotFound { .. } | Error::Internal { .. })) => {
                let until_ms = store.clock().monotonic_ms() + RETRY_MS;
                if self.failing.insert(schedule_id, until_ms).is_none() {
                    tracing::error!(schedule_id, %error, "the schedule can't be fired; trying again");
                }
                Ok(false)
            }
            // Another process changed something at the same moment.
            Err(Error::Conflict { .. }) => Ok(true),
            Err(error @ Error::Unavailable { .. }) => Err(error),
        }
    }
}

/// Logs the runs that started, and the occurrences that got no run.
fn log_fired(fired: &Fired) {
    let Fired { schedule, started, skipped, waiting, missed, stopped, late_ms: _, again: _ } = fired;
    for (run_id, at_ms) in started {
        tracing::info!(schedule, run_id, scheduled_for = text(*at_ms), "the schedule starts a run");
    }
    for (at_ms, reason) in skipped {
        tracing::info!(schedule, scheduled_for = text(*at_ms), reason, "an occurrence gets no run");
    }
    for at_ms in waiting {
        tracing::debug!(schedule, scheduled_for = text(*at_ms), "an occurrence waits");
    }
    for run_id in stopped {
        tracing::info!(schedule, run_id, "asked the run to stop, because the next occurrence replaces it");
    }
    if *missed >= MISSED_COUNT_MAX {
        tracing::warn!(schedule, missed, "at least this many missed occurrences get no run");
    } else if *missed > 0 {
        tracing::warn!(schedule, missed, "missed occurrences get no run");
    }
}

fn text(at_ms: i64) -> String {
    local_text(at_ms, "UTC")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use windlass_engine::store::{NewRegistration, RunFilter};
    use windlass_test_database::Access;
    use windlass_workflow::Source;

    use super::*;
    use crate::test_store::TestStore;

    const WORKFLOW: &str = r#"
        name = "report"

        [[schedules]]
        name = "spoilt"
        every = "1h"
        catchup = "none"

        [[schedules]]
        name = "sound"
        every = "1h"

        [jobs.make]
        run = "true"
    "#;

    #[test]
    fn a_schedule_that_can_not_be_fired_delays_no_other_and_misses_nothing() {
        const HOUR_MS: i64 = 3_600_000;
        let TestStore { store, clock, database, .. } = &TestStore::at(500_000 * HOUR_MS);
        let source = Source::new("report.toml", WORKFLOW.into()).unwrap();
        let workflow = windlass_workflow::parse(&source).unwrap();
        store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
        let spoil = |definition: &str| {
            let sql = format!("UPDATE schedules SET definition = {definition} WHERE name = 'spoilt'");
            database.sql(Access::Write).execute(&sql);
        };
        let names = || {
            let runs = store.runs().list(&RunFilter::newest(10)).unwrap().rows;
            let mut names: Vec<_> = runs.iter().map(|run| run.schedule_id.unwrap()).collect();
            names.sort_unstable();
            names
        };
        spoil("'of a later version: ' || definition");
        clock.advance_ms(HOUR_MS);
        let mut firing = Firing::default();
        let next_at = firing.step(store).unwrap();
        assert_eq!(names().len(), 1, "the other one");
        assert_eq!(next_at, Some(clock.now_ms() + HOUR_MS), "it is tried again later");
        // Another process that can read it may fire it at once.
        spoil("replace(definition, 'of a later version: ', '')");
        assert_eq!(store.for_scheduler().schedules_to_fire(10, &[]).unwrap().len(), 1);
        clock.advance_ms(RETRY_MS);
        firing.step(store).unwrap();
        assert_eq!(names().len(), 2, "in time: this schedule does not catch up");
    }
}
