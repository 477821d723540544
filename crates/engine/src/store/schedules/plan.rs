//! Which occurrences are to be decided, and which of them were missed: pure. Whether one may start beside
//! the runs that are not over is decided in [`super::overlap`].

use windlass_workflow::model::{Catchup, Schedule as Definition};
use windlass_workflow::schedule::{Timetable, jitter};

use crate::status::RunSource;

/// What is so much late at most counts as on time, in milliseconds.
pub const ON_TIME_MS: i64 = 10_000;
/// Missed occurrences that get no run are noted one by one up to this many, the newest of them.
pub const NOTED_MAX: usize = 100;
/// Missed occurrences that get no run are counted up to this many.
pub const COUNTED_MAX: usize = 10_000;
/// Occurrences that get a run or wait for one, of one transaction at most.
pub(super) const PLANNED_MAX: usize = 10_000;

/// An occurrence that is to get a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Planned {
    /// The nominal time.
    pub(super) at_ms: i64,
    /// The nominal time and what jitter adds.
    pub(super) start_after: i64,
    pub(super) source: RunSource,
}

/// What is to be decided of a schedule at an instant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    /// What is to get a run, the earliest first.
    pub(super) due: Vec<Planned>,
    /// What was missed and gets none, the earliest first, and why: [`NOTED_MAX`] at most.
    pub(super) missed: Vec<(i64, String)>,
    /// How many were missed and get none: [`COUNTED_MAX`] says that there are at least so many.
    pub(super) missed_count: usize,
    /// Everything up to here is decided with this.
    pub(super) decided_until: i64,
    /// The nominal time of the next occurrence; not in the future when there was too much for one plan.
    pub(super) next_at: Option<i64>,
}

/// Plans what lies after `decided_until` and not after `now_ms`. A clock that went back behind the cursor
/// finds nothing, because all of that is decided.
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
    // From the newest back: only so many of the old ones matter.
    for occurrence in timetable.until(now_ms).take_while(|occurrence| occurrence.at_ms > decided_until) {
        let at_ms = occurrence.at_ms;
        let start_after = at_ms.saturating_add(jitter(key, at_ms, definition.jitter_ms));
        if start_after >= on_time_from {
            plan.due.push(Planned { at_ms, start_after, source: RunSource::Schedule });
            continue;
        }
        match refusal(definition, at_ms, now_ms, caught_up) {
            None => {
                caught_up += 1;
                plan.due.push(Planned { at_ms, start_after, source: RunSource::Catchup });
            }
            Some(reason) => {
                if plan.missed.len() < NOTED_MAX {
                    plan.missed.push((at_ms, reason));
                }
                plan.missed_count += 1;
            }
        }
        let is_all_older_missed = at_ms.saturating_add(definition.jitter_ms) < on_time_from;
        if plan.missed_count >= COUNTED_MAX && is_all_older_missed {
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

/// Why a missed occurrence is not caught up, if it is not.
fn refusal(definition: &Definition, at_ms: i64, now_ms: i64, caught_up: i64) -> Option<String> {
    let is_too_old = |window_ms: i64| at_ms < now_ms.saturating_sub(window_ms);
    match definition.catchup {
        Catchup::None => return Some("missed: nothing is caught up (catchup = \"none\")".to_owned()),
        Catchup::Last if caught_up >= 1 => {
            return Some("missed: only the last is caught up (catchup = \"last\")".to_owned());
        }
        Catchup::Last | Catchup::All => {}
    }
    if definition.catchup_window_ms.is_some_and(is_too_old) {
        return Some("missed: it is older than catchup_window".to_owned());
    }
    if caught_up >= definition.catchup_max {
        return Some(format!("missed: more than catchup_max = {} were", definition.catchup_max));
    }
    None
}

#[cfg(test)]
mod tests;
