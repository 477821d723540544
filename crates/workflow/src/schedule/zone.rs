//! Time zones: the local time at an instant, and the instant of a local time.
//!
//! Instants are whole seconds since the Unix epoch.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::{RuleError, ScheduleField};

/// No local time differs from UTC by more than this, in seconds.
const WIDEST_OFFSET_S: i64 = 16 * 3_600;
/// No zone changes its clock twice within this time, in seconds. The two closest changes in history are some days apart.
const BETWEEN_CHANGES_S: i64 = 86_400;

/// A time zone by its IANA name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zone(Tz);

/// A change of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Change {
    /// The first instant after the change.
    pub(super) at_s: i64,
    /// The local time at that instant without the change.
    pub(super) old_local: NaiveDateTime,
    /// The local time at that instant.
    pub(super) new_local: NaiveDateTime,
}

impl Zone {
    pub(super) fn named(name: &str) -> Result<Zone, RuleError> {
        name.parse().map(Zone).map_err(|_| {
            let reason = format!("there is no time zone `{}`", name.escape_debug());
            RuleError { field: ScheduleField::Timezone, ..RuleError::new(reason, help_for(name)) }
        })
    }

    pub(super) fn tz(self) -> Tz {
        self.0
    }

    /// The difference between local time and UTC, in seconds.
    fn offset_s(self, at_s: i64) -> i64 {
        let utc = utc(at_s);
        i64::from(self.0.offset_from_utc_datetime(&utc).fix().local_minus_utc())
    }

    /// The local time at an instant.
    pub(super) fn local(self, at_s: i64) -> NaiveDateTime {
        utc(at_s + self.offset_s(at_s))
    }

    /// The first instant at which the clock shows this local time or a later one. If the clock shows the time twice, it is
    /// the first of the two. If the clock skips the time, it is the end of the gap.
    pub(super) fn first_showing(self, local: NaiveDateTime) -> i64 {
        let as_utc = seconds(local);
        match self.0.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) => as_utc - i64::from(offset.fix().local_minus_utc()),
            MappedLocalTime::Ambiguous(one, other) => {
                let offset = one.fix().local_minus_utc().max(other.fix().local_minus_utc());
                as_utc - i64::from(offset)
            }
            MappedLocalTime::None => {
                let (mut before, mut after) = (as_utc - WIDEST_OFFSET_S, as_utc + WIDEST_OFFSET_S);
                while after - before > 1 {
                    let middle = before.midpoint(after);
                    match self.local(middle) < local {
                        true => before = middle,
                        false => after = middle,
                    }
                }
                after
            }
        }
    }

    /// Whether the clock shows this local time twice.
    pub(super) fn shows_twice(self, local: NaiveDateTime) -> bool {
        matches!(self.0.offset_from_local_datetime(&local), MappedLocalTime::Ambiguous(..))
    }

    /// The change of the clock at exactly this instant.
    pub(super) fn change_at(self, at_s: i64) -> Option<Change> {
        let (old, new) = (self.offset_s(at_s - 1), self.offset_s(at_s));
        (old != new).then(|| Change { at_s, old_local: utc(at_s + old), new_local: utc(at_s + new) })
    }

    /// The first change in `after_s < t <= until_s`.
    pub(super) fn first_change(self, after_s: i64, until_s: i64) -> Option<Change> {
        let mut from = after_s;
        while from < until_s {
            let to = until_s.min(from + BETWEEN_CHANGES_S);
            if let Some(at_s) = self.change_between(from, to) {
                return self.change_at(at_s);
            }
            from = to;
        }
        None
    }

    /// The last change in `after_s < t <= until_s`.
    pub(super) fn last_change(self, after_s: i64, until_s: i64) -> Option<Change> {
        let mut to = until_s;
        while to > after_s {
            let from = after_s.max(to - BETWEEN_CHANGES_S);
            if let Some(at_s) = self.change_between(from, to) {
                return self.change_at(at_s);
            }
            to = from;
        }
        None
    }

    /// The instant at which the clock changes in `from_s < t <= to_s`, which has at most one change.
    fn change_between(self, from_s: i64, to_s: i64) -> Option<i64> {
        let old = self.offset_s(from_s);
        if self.offset_s(to_s) == old {
            return None;
        }
        let (mut before, mut after) = (from_s, to_s);
        while after - before > 1 {
            let middle = before.midpoint(after);
            match self.offset_s(middle) == old {
                true => before = middle,
                false => after = middle,
            }
        }
        Some(after)
    }

    /// The earliest local time that the clock has not shown yet at this instant.
    pub(super) fn first_unshown(self, at_s: i64) -> NaiveDateTime {
        let local = self.local(at_s);
        let first_s = self.first_showing(local);
        match self.last_change(first_s, at_s) {
            // The clock shows this time for the second time. It has shown everything up to the change.
            Some(change) => change.old_local,
            None => local + TimeDelta::seconds(1),
        }
    }
}

/// Suggests a zone: that of a city with this name, or one that is spelled nearly so.
fn help_for(name: &str) -> String {
    let names = || TZ_VARIANTS.iter().map(|zone| zone.name());
    let city = |zone: &&str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
    // An abbreviation of three letters like `PST` is near to many names but means none of them.
    let mut budget = if name.len() > 3 { TZ_VARIANTS.len() } else { 0 };
    match names().find(city).or_else(|| crate::suggest::nearest(name, names(), &mut budget)) {
        Some(zone) => format!("did you mean `{zone}`?"),
        None => "write an IANA name, like `Europe/Berlin`, or `UTC`".to_owned(),
    }
}

/// The time in UTC. Instants that chrono can't represent are beyond the limits of schedules.
pub(super) fn utc(at_s: i64) -> NaiveDateTime {
    let time = DateTime::from_timestamp(at_s, 0);
    time.map_or(if at_s < 0 { NaiveDateTime::MIN } else { NaiveDateTime::MAX }, |time| time.naive_utc())
}

/// The seconds of a local time, counted as if it were in UTC.
pub(super) fn seconds(local: NaiveDateTime) -> i64 {
    local.and_utc().timestamp()
}
