//! Schedules: starts what is due and what has waited for the end of a run.

use std::collections::HashMap;

use windlass_engine::store::{COUNTED_MAX, Fired};
use windlass_engine::{Error, Result, Store};
use windlass_workflow::schedule::local_text;

/// Schedules whose next occurrence is due, of one round at most.
const SCHEDULES_MAX: usize = 100;
/// Rounds of one turn at most: the dead are looked for, and an end is heard, between turns.
const ROUNDS_MAX: usize = 8;
/// What another scheduler holds is looked at again after this time, in milliseconds.
const BUSY_PAUSE_MS: i64 = 5;
/// A schedule that can't be fired is tried again after this time, in milliseconds: in time for an occurrence that
/// became due meanwhile to count as on time.
const REST_MS: i64 = 5_000;

/// Fires schedules, and remembers which can't be.
#[derive(Debug, Default)]
pub(crate) struct Firing {
    /// Schedules of which it was said that they can't be fired, and until when they rest, by the monotonic clock.
    /// Nobody else is told: another process, of a newer version, may well fire them.
    failing: HashMap<i64, i64>,
}

impl Firing {
    /// Fires what is due, a turn's worth of rounds at most; returns when something is due next, which is not
    /// in the future when something is left.
    pub(crate) fn turn(&mut self, store: &Store) -> Result<Option<i64>> {
        for _round in 0..ROUNDS_MAX {
            let mut again = false;
            for schedule_id in store.for_scheduler().schedules_to_fire(SCHEDULES_MAX, &self.resting(store))? {
                again |= self.fire(store, schedule_id)?;
            }
            if !again {
                let soon_ms = store.clock().now_ms() + BUSY_PAUSE_MS;
                // What is due and was not done is what another scheduler does at this moment.
                return Ok(store
                    .for_scheduler()
                    .next_firing(&self.resting(store))?
                    .map(|next_at| next_at.max(soon_ms)));
            }
        }
        Ok(Some(store.clock().now_ms()))
    }

    fn resting(&self, store: &Store) -> Vec<i64> {
        let now_ms = store.clock().monotonic_ms();
        self.failing.iter().filter(|(_id, until_ms)| **until_ms > now_ms).map(|(id, _until_ms)| *id).collect()
    }

    /// Returns whether there is more to do at once.
    fn fire(&mut self, store: &Store, schedule_id: i64) -> Result<bool> {
        match store.for_scheduler().fire(schedule_id) {
            Ok(fired) => {
                self.failing.remove(&schedule_id);
                tell(&fired);
                Ok(fired.again)
            }
            Err(error @ (Error::Invalid { .. } | Error::NotFound { .. } | Error::Internal { .. })) => {
                let until_ms = store.clock().monotonic_ms() + REST_MS;
                if self.failing.insert(schedule_id, until_ms).is_none() {
                    tracing::error!(schedule_id, %error, "the schedule can't be fired; trying on");
                }
                Ok(false)
            }
            // Another changed something at the same moment.
            Err(Error::Conflict { .. }) => Ok(true),
            Err(error @ Error::Unavailable { .. }) => Err(error),
        }
    }
}

/// The log of what was done.
fn tell(fired: &Fired) {
    let Fired { schedule, started, skipped, waiting, missed, stopped, again: _ } = fired;
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
        tracing::info!(schedule, run_id, "asked the run to stop: the next occurrence takes its place");
    }
    if *missed >= COUNTED_MAX {
        tracing::warn!(schedule, missed, "at least so many missed occurrences get no run");
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
    use windlass_engine::{Clock, Random};
    use windlass_test_database::{Access, TestDatabase};
    use windlass_workflow::Source;

    use super::*;

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
    fn a_schedule_that_can_not_be_fired_holds_up_no_other_and_loses_nothing() {
        const HOUR_MS: i64 = 3_600_000;
        let folder = tempfile::tempdir().unwrap();
        let database = TestDatabase::in_folder(folder.path());
        let clock = Clock::manual(500_000 * HOUR_MS);
        let store = Store::new(crate::tests::open(&database, &clock), clock.clone(), Random::from_seed(1));
        let source = Source::new("report.toml", WORKFLOW.into()).unwrap();
        let workflow = windlass_workflow::parse(&source).unwrap();
        store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
        let spoil = |definition: &str| {
            let sql = format!("UPDATE schedules SET definition = {definition} WHERE name = 'spoilt'");
            database.sql(Access::Write).execute(&sql);
        };
        let names = || {
            let runs = store.runs().list(&RunFilter { limit: 10, ..RunFilter::default() }).unwrap();
            let mut names: Vec<_> = runs.iter().map(|run| run.schedule_id.unwrap()).collect();
            names.sort_unstable();
            names
        };
        spoil("'of a later version: ' || definition");
        clock.advance_ms(HOUR_MS);
        let mut firing = Firing::default();
        let next_at = firing.turn(&store).unwrap();
        assert_eq!(names().len(), 1, "the other one");
        assert_eq!(next_at, Some(clock.now_ms() + HOUR_MS), "it rests");
        // Who can read it is not kept from it.
        spoil("replace(definition, 'of a later version: ', '')");
        assert_eq!(store.for_scheduler().schedules_to_fire(10, &[]).unwrap().len(), 1);
        clock.advance_ms(REST_MS);
        firing.turn(&store).unwrap();
        assert_eq!(names().len(), 2, "in time, as nothing is caught up");
    }
}
