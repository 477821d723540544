//! The occurrences of a timetable, one after the other, in both directions.
//!
//! A rule with fixed hours walks over local times and asks for each when it is first shown. That is never
//! earlier for a later time, so the walk is in order; times that lie in one gap share its end and are one
//! occurrence. A rule for every hour walks over instants, from one change of the clock to the next.

use chrono::{NaiveDateTime, TimeDelta};

use super::cron::{Cron, Pace};
use super::local::LocalTimes;
use super::zone::{self, Zone};
use super::{Moved, Occurrence, Times, Timetable};
use crate::limits;

/// A clock that is put back shows again what it showed within this time, in seconds.
const NEAR_S: i64 = 2 * 86_400;

/// Occurrences after an instant, ascending.
#[derive(Debug, Clone)]
pub struct Occurrences<'t> {
    timetable: &'t Timetable,
    walk: Walk<'t>,
}

/// Occurrences up to an instant, descending.
#[derive(Debug, Clone)]
pub struct Backwards<'t> {
    timetable: &'t Timetable,
    walk: Walk<'t>,
}

#[derive(Debug, Clone)]
enum Walk<'t> {
    /// The next local time to look at.
    Local {
        times: &'t LocalTimes,
        zone: Zone,
        at: NaiveDateTime,
    },
    /// The next instant to look at, in seconds.
    Instants {
        times: &'t LocalTimes,
        zone: Zone,
        at_s: i64,
    },
    /// The next multiple of the interval.
    Interval {
        interval_ms: i64,
        origin_ms: i64,
        multiple: i64,
    },
    Over,
}

impl<'t> Occurrences<'t> {
    pub(super) fn new(timetable: &'t Timetable, instant_ms: i64) -> Occurrences<'t> {
        let not_before = timetable.start_ms.map_or(i64::MIN, |start_ms| start_ms.saturating_sub(1));
        let after_ms = instant_ms.max(not_before).max(limits::SCHEDULE_FIRST_MS);
        let walk = match &timetable.times {
            _ if after_ms >= limits::SCHEDULE_LAST_MS => Walk::Over,
            Times::Cron(cron, zone) => {
                let Cron { times, pace } = cron.as_ref();
                let at_s = after_ms.div_euclid(1_000);
                match pace {
                    Pace::Fixed => Walk::Local { times, zone: *zone, at: zone.first_unshown(at_s) },
                    Pace::EveryHour => Walk::Instants { times, zone: *zone, at_s: at_s + 1 },
                }
            }
            Times::Every { interval_ms, origin_ms } => Walk::Interval {
                interval_ms: *interval_ms,
                origin_ms: *origin_ms,
                multiple: after_ms.saturating_sub(*origin_ms).div_euclid(*interval_ms) + 1,
            },
        };
        Occurrences { timetable, walk }
    }
}

impl<'t> Backwards<'t> {
    pub(super) fn new(timetable: &'t Timetable, instant_ms: i64) -> Backwards<'t> {
        let before_end = timetable.end_ms.map_or(i64::MAX, |end_ms| end_ms.saturating_sub(1));
        let until_ms = instant_ms.min(before_end).min(limits::SCHEDULE_LAST_MS);
        let walk = match &timetable.times {
            _ if until_ms <= limits::SCHEDULE_FIRST_MS => Walk::Over,
            Times::Cron(cron, zone) => {
                let Cron { times, pace } = cron.as_ref();
                let at_s = until_ms.div_euclid(1_000);
                match pace {
                    Pace::Fixed => {
                        let at = zone.first_unshown(at_s) - TimeDelta::seconds(1);
                        Walk::Local { times, zone: *zone, at }
                    }
                    Pace::EveryHour => Walk::Instants { times, zone: *zone, at_s },
                }
            }
            Times::Every { interval_ms, origin_ms } => Walk::Interval {
                interval_ms: *interval_ms,
                origin_ms: *origin_ms,
                multiple: until_ms.saturating_sub(*origin_ms).div_euclid(*interval_ms),
            },
        };
        Backwards { timetable, walk }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let occurrence = self.walk.forwards();
        let is_within = |occurrence: &Occurrence| {
            occurrence.at_ms <= limits::SCHEDULE_LAST_MS
                && self.timetable.end_ms.is_none_or(|end_ms| occurrence.at_ms < end_ms)
        };
        let occurrence = occurrence.filter(is_within);
        if occurrence.is_none() {
            self.walk = Walk::Over;
        }
        occurrence
    }
}

impl Iterator for Backwards<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let occurrence = self.walk.backwards();
        let is_within = |occurrence: &Occurrence| {
            occurrence.at_ms > limits::SCHEDULE_FIRST_MS
                && self.timetable.start_ms.is_none_or(|start_ms| occurrence.at_ms >= start_ms)
        };
        let occurrence = occurrence.filter(is_within);
        if occurrence.is_none() {
            self.walk = Walk::Over;
        }
        occurrence
    }
}

impl Walk<'_> {
    fn forwards(&mut self) -> Option<Occurrence> {
        match self {
            Walk::Local { times, zone, at } => {
                let due = Due::of(times.first_from(*at)?, times, *zone);
                *at = due.last + TimeDelta::seconds(1);
                Some(due.occurrence)
            }
            Walk::Instants { times, zone, at_s } => {
                let found_s = first_shown(times, *zone, *at_s)?;
                *at_s = found_s + 1;
                Some(Occurrence { at_ms: found_s * 1_000, moved: None })
            }
            Walk::Interval { interval_ms, origin_ms, multiple } => {
                let at_ms = multiple.checked_mul(*interval_ms)?.checked_add(*origin_ms)?;
                *multiple += 1;
                Some(Occurrence { at_ms, moved: None })
            }
            Walk::Over => None,
        }
    }

    fn backwards(&mut self) -> Option<Occurrence> {
        match self {
            Walk::Local { times, zone, at } => {
                let due = Due::of(times.last_until(*at)?, times, *zone);
                *at = due.first - TimeDelta::seconds(1);
                Some(due.occurrence)
            }
            Walk::Instants { times, zone, at_s } => {
                let found_s = last_shown(times, *zone, *at_s)?;
                *at_s = found_s - 1;
                Some(Occurrence { at_ms: found_s * 1_000, moved: None })
            }
            Walk::Interval { interval_ms, origin_ms, multiple } => {
                let at_ms = multiple.checked_mul(*interval_ms)?.checked_add(*origin_ms)?;
                *multiple -= 1;
                Some(Occurrence { at_ms, moved: None })
            }
            Walk::Over => None,
        }
    }
}

/// An occurrence of a rule with fixed hours, and the local times that it stands for.
struct Due {
    occurrence: Occurrence,
    first: NaiveDateTime,
    last: NaiveDateTime,
}

impl Due {
    fn of(local: NaiveDateTime, times: &LocalTimes, zone: Zone) -> Due {
        let at_s = zone.first_showing(local);
        let at_ms = at_s * 1_000;
        if let Some(change) = zone.change_at(at_s)
            && let Some(missing) = times.first_from(change.old_local)
            && missing < change.new_local
        {
            let moved = Some(Moved::GapForward { local: missing });
            return Due {
                occurrence: Occurrence { at_ms, moved },
                first: change.old_local,
                last: change.new_local,
            };
        }
        let moved = zone.shows_twice(local).then_some(Moved::FoldFirst { local });
        Due { occurrence: Occurrence { at_ms, moved }, first: local, last: local }
    }
}

/// The first instant from `from_s` on at which the clock shows a time of the rule.
fn first_shown(times: &LocalTimes, zone: Zone, from_s: i64) -> Option<i64> {
    let mut at_s = from_s;
    loop {
        let local = zone.local(at_s);
        let ahead_s = zone::seconds(times.first_from(local)?) - zone::seconds(local);
        let near_s = ahead_s.min(NEAR_S);
        match zone.first_change(at_s, at_s + near_s) {
            Some(change) => at_s = change.at_s,
            None if near_s == ahead_s => return Some(at_s + ahead_s),
            // Nothing is shown between: leap over it, to where a change can matter again.
            None => at_s += near_s.max(ahead_s - NEAR_S),
        }
    }
}

/// The last instant up to `until_s` at which the clock shows a time of the rule.
fn last_shown(times: &LocalTimes, zone: Zone, until_s: i64) -> Option<i64> {
    let mut at_s = until_s;
    loop {
        let local = zone.local(at_s);
        let behind_s = zone::seconds(local) - zone::seconds(times.last_until(local)?);
        let near_s = behind_s.min(NEAR_S);
        match zone.last_change(at_s - near_s, at_s) {
            Some(change) => at_s = change.at_s - 1,
            None if near_s == behind_s => return Some(at_s - behind_s),
            None => at_s -= near_s.max(behind_s - NEAR_S),
        }
    }
}
