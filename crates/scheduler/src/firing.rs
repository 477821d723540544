//! Schedules: starts what is due and what has waited for the end of a run.

use std::collections::HashSet;

use windlass_engine::store::{COUNTED_MAX, Fired};
use windlass_engine::{Error, Result, Store};
use windlass_workflow::schedule::local_text;

/// Schedules whose next occurrence is due, of one round at most.
const SCHEDULES_MAX: i64 = 100;
/// Rounds of one turn at most: the dead are looked for, and an end is heard, between turns.
const ROUNDS_MAX: usize = 8;
/// What another scheduler holds is looked at again after this time, in milliseconds.
const BUSY_PAUSE_MS: i64 = 5;
/// A schedule that can't be fired is tried again after this time, in milliseconds.
const POSTPONE_MS: i64 = 60_000;

/// Fires schedules, and remembers which can't be.
#[derive(Debug, Default)]
pub(crate) struct Firing {
    /// Schedules of which it was said that they can't be fired.
    failing: HashSet<i64>,
}

impl Firing {
    /// Fires what is due, a turn's worth of rounds at most; returns when something is due next, which is not
    /// in the future when something is left.
    pub(crate) fn turn(&mut self, store: &Store) -> Result<Option<i64>> {
        for _round in 0..ROUNDS_MAX {
            let mut again = false;
            for schedule_id in store.schedules_to_fire(SCHEDULES_MAX)? {
                again |= self.fire(store, schedule_id)?;
            }
            if !again {
                let soon_ms = store.clock().now_ms() + BUSY_PAUSE_MS;
                // What is due and was not done is what another scheduler does at this moment.
                return Ok(store.next_firing()?.map(|next_at| next_at.max(soon_ms)));
            }
        }
        Ok(Some(store.clock().now_ms()))
    }

    /// Returns whether there is more to do at once.
    fn fire(&mut self, store: &Store, schedule_id: i64) -> Result<bool> {
        match store.fire(schedule_id) {
            Ok(fired) => {
                self.failing.remove(&schedule_id);
                tell(&fired);
                Ok(fired.again)
            }
            Err(error @ (Error::Invalid { .. } | Error::NotFound { .. } | Error::Internal { .. })) => {
                if self.failing.insert(schedule_id) {
                    tracing::error!(schedule_id, %error, "the schedule can't be fired; trying on once a minute");
                }
                store.postpone_schedule(schedule_id, store.clock().now_ms() + POSTPONE_MS)?;
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
