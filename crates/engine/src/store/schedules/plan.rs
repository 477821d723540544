//! The plan: which occurrences of a schedule are due, and which were missed. Pure. Whether a due occurrence may start
//! while other runs are unfinished is decided in [`super::overlap`].

use windlass_workflow::model::{Catchup, Schedule as Definition};
use windlass_workflow::schedule::{Timetable, jitter};

use crate::status::RunSource;

/// An occurrence that is late by no more than this counts as on time, in milliseconds.
pub const ON_TIME_MS: i64 = 10_000;
/// How many missed occurrences are recorded one by one: the newest ones.
pub const RECORDED_MAX: usize = 100;
/// The count of missed occurrences stops here.
pub const MISSED_COUNT_MAX: usize = 10_000;
/// The maximum number of due occurrences in one plan.
pub(super) const PLANNED_MAX: usize = 10_000;

/// A due occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PlannedOccurrence {
    /// The nominal time.
    pub(super) at_ms: i64,
    /// The nominal time plus jitter.
    pub(super) start_after: i64,
    pub(super) source: RunSource,
}

/// What is to be decided about a schedule at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// Occurrences that get a run or wait for one, the earliest first.
    pub(super) due: Vec<PlannedOccurrence>,
    /// Missed occurrences and why they get no run, the earliest first. At most [`RECORDED_MAX`].
    pub(super) missed: Vec<(i64, String)>,
    /// How many missed occurrences get no run; at [`MISSED_COUNT_MAX`] counting stopped.
    pub(super) missed_count: usize,
    /// The new cursor: with this plan, everything up to here is decided.
    pub(super) decided_until: i64,
    /// The nominal time of the next occurrence. It is in the past if one plan could not hold everything.
    pub(super) next_at: Option<i64>,
}

/// Plans the occurrences after `decided_until`, up to `now_ms`. If the clock is behind the cursor, there are none,
/// because they are decided already.
pub(super) fn plan(
    key: &str,
    definition: &Definition,
    timetable: &Timetable,
    decided_until: i64,
    now_ms: i64,
) -> Plan {
    let mut plan = Plan { decided_until: decided_until.max(now_ms), ..Plan::default() };
    let on_time_from = now_ms.saturating_sub(ON_TIME_MS);
    let mut caught_up = 0;
    // Going back in time, because only the newest missed occurrences matter.
    for occurrence in timetable.until(now_ms).take_while(|occurrence| occurrence.at_ms > decided_until) {
        let at_ms = occurrence.at_ms;
        let start_after = at_ms.saturating_add(jitter(key, at_ms, definition.jitter_ms));
        if start_after >= on_time_from {
            plan.due.push(PlannedOccurrence { at_ms, start_after, source: RunSource::Schedule });
            continue;
        }
        match reason_not_caught_up(definition, at_ms, now_ms, caught_up) {
            None => {
                caught_up += 1;
                plan.due.push(PlannedOccurrence { at_ms, start_after, source: RunSource::Catchup });
            }
            Some(reason) => {
                if plan.missed.len() < RECORDED_MAX {
                    plan.missed.push((at_ms, reason));
                }
                plan.missed_count += 1;
            }
        }
        let is_all_older_missed = at_ms.saturating_add(definition.jitter_ms) < on_time_from;
        if plan.missed_count >= MISSED_COUNT_MAX && is_all_older_missed {
            break;
        }
    }
    plan.due.reverse();
    plan.missed.reverse();
    if plan.due.len() > PLANNED_MAX {
        plan.due.truncate(PLANNED_MAX);
        plan.decided_until = plan.due.last().map_or(decided_until, |last| last.at_ms);
        plan.missed.retain(|(at_ms, _reason)| *at_ms <= plan.decided_until);
    }
    plan.next_at = timetable.after(plan.decided_until).next().map(|occurrence| occurrence.at_ms);
    plan
}

/// Returns why a missed occurrence is not caught up, or `None` if it is.
fn reason_not_caught_up(definition: &Definition, at_ms: i64, now_ms: i64, caught_up: i64) -> Option<String> {
    let is_too_old = |window_ms: i64| at_ms < now_ms.saturating_sub(window_ms);
    match definition.catchup {
        Catchup::None => return Some("missed, and nothing is caught up (catchup = \"none\")".to_owned()),
        Catchup::Last if caught_up >= 1 => {
            return Some("missed, and only the last one is caught up (catchup = \"last\")".to_owned());
        }
        Catchup::Last | Catchup::All => {}
    }
    if definition.catchup_window_ms.is_some_and(is_too_old) {
        return Some("missed, and older than catchup_window".to_owned());
    }
    if caught_up >= definition.catchup_max {
        return Some(format!("missed, and more than catchup_max = {} were missed", definition.catchup_max));
    }
    None
}

#[cfg(test)]
mod tests;
