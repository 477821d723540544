//! Lists the occurrences of a timetable, forwards and backwards.
//!
//! For a rule that names hours, the iterator goes through the local times of the rule, and converts each to the instant at
//! which the clock first shows that time or a later one. A later local time never gives an earlier instant, so the
//! occurrences are in order. All local times inside a gap give the end of the gap, and are one occurrence.
//!
//! For a rule that allows every hour, the iterator goes through instants, from one change of the clock to the next.

use chrono::{NaiveDateTime, TimeDelta};

use super::cron::{ClockChangeRule, Cron};
use super::local::LocalTimes;
use super::zone::{self, Zone};
use super::{Moved, Occurrence, Times, Timetable};
use crate::limits;

/// No change of a clock is larger than this, in seconds. After a clock was put back, it repeats at most this much.
const LARGEST_CHANGE_S: i64 = 2 * 86_400;

/// The occurrences after an instant, in ascending order.
#[derive(Debug, Clone)]
pub struct Occurrences<'t> {
    timetable: &'t Timetable,
    cursor: Cursor<'t>,
}

/// The occurrences up to an instant, in descending order.
#[derive(Debug, Clone)]
pub struct Backwards<'t> {
    timetable: &'t Timetable,
    cursor: Cursor<'t>,
}

/// Where an iterator is.
#[derive(Debug, Clone)]
enum Cursor<'t> {
    /// At a local time.
    Local { times: &'t LocalTimes, zone: Zone, at: NaiveDateTime },
    /// At an instant, in seconds.
    Instants { times: &'t LocalTimes, zone: Zone, at_s: i64 },
    /// At a multiple of the interval.
    Interval { interval_ms: i64, origin_ms: i64, multiple: i64 },
    /// Before the only occurrence.
    Once { at_ms: i64 },
    /// After the last occurrence.
    Over,
}

impl<'t> Occurrences<'t> {
    pub(super) fn new(timetable: &'t Timetable, instant_ms: i64) -> Occurrences<'t> {
        let not_before = timetable.start_ms.map_or(i64::MIN, |start_ms| start_ms.saturating_sub(1));
        let after_ms = instant_ms.max(not_before).max(limits::SCHEDULE_FIRST_MS);
        let cursor = match &timetable.times {
            _ if after_ms >= limits::SCHEDULE_LAST_MS => Cursor::Over,
            Times::Cron(cron, zone) => {
                let Cron { times, clock_changes } = cron.as_ref();
                let at_s = after_ms.div_euclid(1_000);
                match clock_changes {
                    ClockChangeRule::OncePerLocalTime => {
                        Cursor::Local { times, zone: *zone, at: zone.first_unshown(at_s) }
                    }
                    ClockChangeRule::WheneverShown => Cursor::Instants { times, zone: *zone, at_s: at_s + 1 },
                }
            }
            Times::Every { interval_ms, origin_ms } => Cursor::Interval {
                interval_ms: *interval_ms,
                origin_ms: *origin_ms,
                multiple: after_ms.saturating_sub(*origin_ms).div_euclid(*interval_ms) + 1,
            },
            Times::Once { at_ms } if *at_ms > after_ms => Cursor::Once { at_ms: *at_ms },
            Times::Once { .. } => Cursor::Over,
        };
        Occurrences { timetable, cursor }
    }
}

impl<'t> Backwards<'t> {
    pub(super) fn new(timetable: &'t Timetable, instant_ms: i64) -> Backwards<'t> {
        let before_end = timetable.end_ms.map_or(i64::MAX, |end_ms| end_ms.saturating_sub(1));
        let until_ms = instant_ms.min(before_end).min(limits::SCHEDULE_LAST_MS);
        let cursor = match &timetable.times {
            _ if until_ms <= limits::SCHEDULE_FIRST_MS => Cursor::Over,
            Times::Cron(cron, zone) => {
                let Cron { times, clock_changes } = cron.as_ref();
                let at_s = until_ms.div_euclid(1_000);
                match clock_changes {
                    ClockChangeRule::OncePerLocalTime => {
                        let at = zone.first_unshown(at_s) - TimeDelta::seconds(1);
                        Cursor::Local { times, zone: *zone, at }
                    }
                    ClockChangeRule::WheneverShown => Cursor::Instants { times, zone: *zone, at_s },
                }
            }
            Times::Every { interval_ms, origin_ms } => Cursor::Interval {
                interval_ms: *interval_ms,
                origin_ms: *origin_ms,
                multiple: until_ms.saturating_sub(*origin_ms).div_euclid(*interval_ms),
            },
            Times::Once { at_ms } if *at_ms <= until_ms => Cursor::Once { at_ms: *at_ms },
            Times::Once { .. } => Cursor::Over,
        };
        Backwards { timetable, cursor }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let occurrence = self.cursor.forwards();
        let is_within = |occurrence: &Occurrence| {
            occurrence.at_ms <= limits::SCHEDULE_LAST_MS
                && self.timetable.end_ms.is_none_or(|end_ms| occurrence.at_ms < end_ms)
        };
        let occurrence = occurrence.filter(is_within);
        if occurrence.is_none() {
            self.cursor = Cursor::Over;
        }
        occurrence
    }
}

impl Iterator for Backwards<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let occurrence = self.cursor.backwards();
        let is_within = |occurrence: &Occurrence| {
            occurrence.at_ms > limits::SCHEDULE_FIRST_MS
                && self.timetable.start_ms.is_none_or(|start_ms| occurrence.at_ms >= start_ms)
        };
        let occurrence = occurrence.filter(is_within);
        if occurrence.is_none() {
            self.cursor = Cursor::Over;
        }
        occurrence
    }
}

impl Cursor<'_> {
    fn forwards(&mut self) -> Option<Occurrence> {
        match self {
            Cursor::Local { times, zone, at } => {
                let found = LocalOccurrence::of(times.first_from(*at)?, times, *zone);
                *at = found.last_local + TimeDelta::seconds(1);
                Some(found.occurrence)
            }
            Cursor::Instants { times, zone, at_s } => {
                let found_s = first_shown(times, *zone, *at_s)?;
                *at_s = found_s + 1;
                Some(Occurrence { at_ms: found_s * 1_000, moved: None })
            }
            Cursor::Interval { interval_ms, origin_ms, multiple } => {
                let at_ms = multiple.checked_mul(*interval_ms)?.checked_add(*origin_ms)?;
                *multiple += 1;
                Some(Occurrence { at_ms, moved: None })
            }
            Cursor::Once { .. } => self.only(),
            Cursor::Over => None,
        }
    }

    fn backwards(&mut self) -> Option<Occurrence> {
        match self {
            Cursor::Local { times, zone, at } => {
                let found = LocalOccurrence::of(times.last_until(*at)?, times, *zone);
                *at = found.first_local - TimeDelta::seconds(1);
                Some(found.occurrence)
            }
            Cursor::Instants { times, zone, at_s } => {
                let found_s = last_shown(times, *zone, *at_s)?;
                *at_s = found_s - 1;
                Some(Occurrence { at_ms: found_s * 1_000, moved: None })
            }
            Cursor::Interval { interval_ms, origin_ms, multiple } => {
                let at_ms = multiple.checked_mul(*interval_ms)?.checked_add(*origin_ms)?;
                *multiple -= 1;
                Some(Occurrence { at_ms, moved: None })
            }
            Cursor::Once { .. } => self.only(),
            Cursor::Over => None,
        }
    }

    /// The only occurrence, once.
    fn only(&mut self) -> Option<Occurrence> {
        match std::mem::replace(self, Cursor::Over) {
            Cursor::Once { at_ms } => Some(Occurrence { at_ms, moved: None }),
            Cursor::Local { .. } | Cursor::Instants { .. } | Cursor::Interval { .. } | Cursor::Over => None,
        }
    }
}

/// An occurrence of a rule that names hours, and the range of local times that it stands for. The range has more than one
/// time if the clock skips local times.
struct LocalOccurrence {
    occurrence: Occurrence,
    first_local: NaiveDateTime,
    last_local: NaiveDateTime,
}

impl LocalOccurrence {
    /// The occurrence to which a local time of the rule belongs.
    fn of(local: NaiveDateTime, times: &LocalTimes, zone: Zone) -> LocalOccurrence {
        let at_s = zone.first_showing(local);
        let at_ms = at_s * 1_000;
        if let Some(change) = zone.change_at(at_s)
            && let Some(missing) = times.first_from(change.old_local)
            && missing < change.new_local
        {
            let moved = Some(Moved::GapForward { local: missing });
            return LocalOccurrence {
                occurrence: Occurrence { at_ms, moved },
                first_local: change.old_local,
                last_local: change.new_local,
            };
        }
        let moved = zone.shows_twice(local).then_some(Moved::FoldFirst { local });
        LocalOccurrence { occurrence: Occurrence { at_ms, moved }, first_local: local, last_local: local }
    }
}

/// The first instant at or after `from_s` at which the clock shows a time of the rule.
fn first_shown(times: &LocalTimes, zone: Zone, from_s: i64) -> Option<i64> {
    let mut at_s = from_s;
    loop {
        let local = zone.local(at_s);
        let ahead_s = zone::seconds(times.first_from(local)?) - zone::seconds(local);
        let near_s = ahead_s.min(LARGEST_CHANGE_S);
        match zone.first_change(at_s, at_s + near_s) {
            Some(change) => at_s = change.at_s,
            None if near_s == ahead_s => return Some(at_s + ahead_s),
            // The next time of the rule is far away. Continue near it, where a change of the clock can move it.
            None => at_s += near_s.max(ahead_s - LARGEST_CHANGE_S),
        }
    }
}

/// The last instant at or before `until_s` at which the clock shows a time of the rule.
fn last_shown(times: &LocalTimes, zone: Zone, until_s: i64) -> Option<i64> {
    let mut at_s = until_s;
    loop {
        let local = zone.local(at_s);
        let behind_s = zone::seconds(local) - zone::seconds(times.last_until(local)?);
        let near_s = behind_s.min(LARGEST_CHANGE_S);
        match zone.last_change(at_s - near_s, at_s) {
            Some(change) => at_s = change.at_s - 1,
            None if near_s == behind_s => return Some(at_s - behind_s),
            None => at_s -= near_s.max(behind_s - LARGEST_CHANGE_S),
        }
    }
}
