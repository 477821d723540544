//! The local times of a cron rule. Zones and changes of the clock play no part here.

use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike};
use croner::{CronPattern, Weekday};

use crate::limits;

/// How many times are compared to find the shortest interval. The intervals of a cron rule repeat sooner.
const COMPARED: usize = 100;

/// The seconds, minutes, hours and days that a rule allows. The masks have one bit for each number.
#[derive(Debug, Clone)]
pub(super) struct LocalTimes {
    days: CronPattern,
    seconds: u64,
    minutes: u64,
    hours: u64,
}

impl LocalTimes {
    pub(super) fn of(pattern: CronPattern) -> LocalTimes {
        let mask = |values: Vec<u16>| values.into_iter().fold(0, |mask, value| mask | 1 << value);
        LocalTimes {
            seconds: mask(pattern.seconds.values()),
            minutes: mask(pattern.minutes.values()),
            hours: mask(pattern.hours.values()),
            days: pattern,
        }
    }

    /// Whether all 24 hours of a day are allowed.
    pub(super) fn every_hour(&self) -> bool {
        self.hours.count_ones() == 24
    }

    /// Whether the rule allows any time.
    pub(super) fn has_any(&self) -> bool {
        self.first_from(any_time()).is_some()
    }

    /// The shortest interval between the first [`COMPARED`] times, in seconds.
    pub(super) fn shortest_interval_s(&self) -> Option<i64> {
        let mut shortest: Option<i64> = None;
        let mut last = self.first_from(any_time())?;
        for _ in 1..COMPARED {
            let Some(next) = self.first_from(last + TimeDelta::seconds(1)) else { break };
            let interval_s = (next - last).num_seconds();
            shortest = Some(shortest.map_or(interval_s, |shortest| shortest.min(interval_s)));
            last = next;
        }
        shortest
    }

    /// The first time of the rule at or after `from`.
    pub(super) fn first_from(&self, from: NaiveDateTime) -> Option<NaiveDateTime> {
        let from = rounded_up(from)?;
        if self.is_day(from.date())
            && let Some(time) = self.first_time_from(from.time())
        {
            return Some(from.date().and_time(time));
        }
        let day = self.first_day_from(from.date().succ_opt()?)?;
        Some(day.and_time(self.first_time_from(NaiveTime::MIN)?))
    }

    /// The last time of the rule at or before `until`.
    pub(super) fn last_until(&self, until: NaiveDateTime) -> Option<NaiveDateTime> {
        if self.is_day(until.date())
            && let Some(time) = self.last_time_until(until.time())
        {
            return Some(until.date().and_time(time));
        }
        let day = self.last_day_until(until.date().pred_opt()?)?;
        Some(day.and_time(self.last_time_until(NaiveTime::from_hms_opt(23, 59, 59)?)?))
    }

    fn is_day(&self, day: NaiveDate) -> bool {
        let weekday = Weekday::from_days_from_sunday(day.weekday().num_days_from_sunday());
        self.is_month(day)
            && self.days.day_match(day.year(), day.month(), day.day(), weekday).unwrap_or(false)
    }

    fn is_month(&self, day: NaiveDate) -> bool {
        self.days.month_match(day.month()).unwrap_or(false)
    }

    fn first_day_from(&self, from: NaiveDate) -> Option<NaiveDate> {
        let last_year = from.year() + limits::SCHEDULE_SEARCH_YEARS;
        let mut day = from;
        while day.year() <= last_year {
            if self.is_day(day) {
                return Some(day);
            }
            day = if self.is_month(day) {
                day.succ_opt()?
            } else {
                day.with_day(1)?.checked_add_months(Months::new(1))?
            };
        }
        None
    }

    fn last_day_until(&self, until: NaiveDate) -> Option<NaiveDate> {
        let first_year = until.year() - limits::SCHEDULE_SEARCH_YEARS;
        let mut day = until;
        while day.year() >= first_year {
            if self.is_day(day) {
                return Some(day);
            }
            day = if self.is_month(day) { day.pred_opt()? } else { day.with_day(1)?.pred_opt()? };
        }
        None
    }

    fn first_time_from(&self, from: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (from.hour(), from.minute(), from.second());
        let first = |hour, minute, second| NaiveTime::from_hms_opt(hour, minute, second);
        let (least_minute, least_second) = (next_bit(self.minutes, 0)?, next_bit(self.seconds, 0)?);
        if has_bit(self.hours, hour) {
            if has_bit(self.minutes, minute)
                && let Some(second) = next_bit(self.seconds, second)
            {
                return first(hour, minute, second);
            }
            if let Some(minute) = next_bit(self.minutes, minute + 1) {
                return first(hour, minute, least_second);
            }
        }
        first(next_bit(self.hours, hour + 1)?, least_minute, least_second)
    }

    fn last_time_until(&self, until: NaiveTime) -> Option<NaiveTime> {
        let (hour, minute, second) = (until.hour(), until.minute(), until.second());
        let last = |hour, minute, second| NaiveTime::from_hms_opt(hour, minute, second);
        let (most_minute, most_second) = (last_bit(self.minutes, 59)?, last_bit(self.seconds, 59)?);
        if has_bit(self.hours, hour) {
            if has_bit(self.minutes, minute)
                && let Some(second) = last_bit(self.seconds, second)
            {
                return last(hour, minute, second);
            }
            if let Some(minute) = minute.checked_sub(1).and_then(|minute| last_bit(self.minutes, minute)) {
                return last(hour, minute, most_second);
            }
        }
        last(last_bit(self.hours, hour.checked_sub(1)?)?, most_minute, most_second)
    }
}

/// A time to start from when any time will do.
fn any_time() -> NaiveDateTime {
    NaiveDateTime::default() + TimeDelta::days(30 * 365)
}

/// The time, rounded up to a whole second.
fn rounded_up(time: NaiveDateTime) -> Option<NaiveDateTime> {
    match time.nanosecond() {
        0 => Some(time),
        _ => time.with_nanosecond(0)?.checked_add_signed(TimeDelta::seconds(1)),
    }
}

fn has_bit(mask: u64, bit: u32) -> bool {
    mask >> bit & 1 == 1
}

/// The lowest set bit that is not below `from`.
fn next_bit(mask: u64, from: u32) -> Option<u32> {
    let rest = mask >> from;
    (rest != 0).then(|| from + rest.trailing_zeros())
}

/// The highest set bit that is not above `until`.
fn last_bit(mask: u64, until: u32) -> Option<u32> {
    let rest = mask << (63 - until);
    (rest != 0).then(|| until - rest.leading_zeros())
}
