//! Properties of occurrences that hold for every rule, zone and instant.
#![allow(clippy::unwrap_used)]

use chrono::{Datelike, NaiveDate, NaiveDateTime, Offset, TimeDelta, TimeZone, Timelike};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};
use windlass_workflow::schedule::{Moved, Occurrence, Timetable, parse_instant};

const DAY_S: i64 = 86_400;

fn timetable(rule: Rule, timezone: &str, start_ms: Option<i64>, end_ms: Option<i64>) -> Timetable {
    let schedule = Schedule {
        name: "default".to_owned(),
        rule,
        timezone: timezone.to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms,
        end_ms,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    };
    Timetable::of(&schedule).unwrap()
}

fn cron(text: &str, timezone: &str) -> Timetable {
    timetable(Rule::Cron(text.to_owned()), timezone, None, None)
}

/// The numbers that a rule allows, for a search by brute force.
#[derive(Debug, Clone)]
struct Numbers {
    minutes: Vec<u32>,
    hours: Vec<u32>,
    weekdays: Vec<u32>,
}

impl Numbers {
    fn text(&self) -> String {
        let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let weekdays = match self.weekdays.len() {
            7 => "*".to_owned(),
            _ => list(&self.weekdays),
        };
        format!("{} {} * * {weekdays}", list(&self.minutes), list(&self.hours))
    }

    fn allows(&self, local: NaiveDateTime) -> bool {
        local.second() == 0
            && self.minutes.contains(&local.minute())
            && self.hours.contains(&local.hour())
            && self.weekdays.contains(&local.weekday().num_days_from_sunday())
    }
}

fn local(at_s: i64, zone: Tz) -> NaiveDateTime {
    let utc = chrono::DateTime::from_timestamp(at_s, 0).unwrap().naive_utc();
    utc + TimeDelta::seconds(i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc()))
}

/// Finds the occurrences by looking at every minute. A rule for every hour occurs when the clock shows one of its times.
/// Another rule occurs when the clock shows one of its times, or a later time, for the first time.
fn by_brute_force(numbers: &Numbers, zone: Tz, from_s: i64, to_s: i64) -> Vec<i64> {
    let every_hour = numbers.hours.len() == 24;
    let mut shown_until = local(from_s - 2 * DAY_S, zone);
    let mut found = Vec::new();
    for at_s in (from_s - 2 * DAY_S + 60..to_s).step_by(60) {
        let now = local(at_s, zone);
        let occurs = if every_hour {
            numbers.allows(now)
        } else {
            let mut news = (1..).map(|minutes| shown_until + TimeDelta::minutes(minutes));
            news.by_ref().take_while(|time| *time <= now).any(|time| numbers.allows(time))
        };
        shown_until = shown_until.max(now);
        if occurs && at_s >= from_s {
            found.push(at_s);
        }
    }
    found
}

/// Zones with clock changes of every kind. After 1972 all of these are by whole minutes.
const ZONES: [&str; 18] = [
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "America/Havana",
    "America/Caracas",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kwajalein",
    "Antarctica/Troll",
    "UTC",
];

/// An instant between 1973 and 2040 in whole minutes, usually within a day of a clock change.
fn instants() -> impl Strategy<Value = (Tz, i64)> {
    let zone = proptest::sample::select(ZONES.to_vec()).prop_map(|name| name.parse::<Tz>().unwrap());
    (zone, 94_694_400_i64..2_208_988_800, -1_500_i64..1_500, 0..4).prop_map(|(zone, at_s, minutes, pick)| {
        let at_s = at_s - at_s % 60;
        let offset = |at_s: i64| local(at_s, zone) - local(0, zone) - TimeDelta::seconds(at_s);
        let mut days = (0..400).map(|day| at_s + day * DAY_S);
        let change = days.find(|day| offset(*day) != offset(day + DAY_S)).filter(|_| pick > 0);
        (zone, change.unwrap_or(at_s) + minutes * 60)
    })
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let some =
        |count: u32, most: usize| proptest::sample::subsequence((0..count).collect::<Vec<_>>(), 1..=most);
    let hours = prop_oneof![
        2 => some(24, 3),
        2 => some(5, 4),
        1 => Just((0..24).collect::<Vec<_>>()),
        1 => Just((0..23).collect::<Vec<_>>()),
    ];
    let weekdays = prop_oneof![Just((0..7).collect::<Vec<_>>()), some(7, 6)];
    (some(60, 4), hours, weekdays).prop_map(|(minutes, hours, weekdays)| Numbers { minutes, hours, weekdays })
}

/// Rules of every kind.
const RULES: [&str; 16] = [
    "30 2 * * *",
    "0 0 * * *",
    "1 0 * * *",
    "59 23 * * 0",
    "0,30 1-3 * * *",
    "30 2,14 * * *",
    "0 * * * *",
    "*/15 * * * *",
    "7 * 1 * *",
    "*/30 * L * *",
    "0 0 29 2 *",
    "30 2 LW * *",
    "0 12 * * MON#5",
    "*/10 * * * * *",
    "30 */20 1-2 * * *",
    "15,45 59 23 31 12 *",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn occurrences_equal_those_of_a_search_by_brute_force(
        (zone, at_s) in instants(), numbers in numbers()
    ) {
        let (from_s, to_s) = (at_s - DAY_S, at_s + 2 * DAY_S);
        let timetable = cron(&numbers.text(), zone.name());
        let found: Vec<i64> = timetable
            .after(from_s * 1_000 - 1)
            .map(|occurrence| occurrence.at_ms / 1_000)
            .take_while(|found_s| *found_s < to_s)
            .collect();
        prop_assert_eq!(found, by_brute_force(&numbers, zone, from_s, to_s), "{} in {}", numbers.text(), zone);
    }

    #[test]
    fn both_directions_agree_from_any_instant(
        (zone, at_s) in instants(), rule in proptest::sample::select(RULES.to_vec()), rest_ms in 0..1_000_i64
    ) {
        let timetable = cron(rule, zone.name());
        let at_ms = at_s * 1_000 + rest_ms;
        let later: Vec<Occurrence> = timetable.after(at_ms).take(20).collect();
        prop_assert!(later.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms), "{later:?}");
        prop_assert!(later[0].at_ms > at_ms);
        let last_ms = later[later.len() - 1].at_ms;
        let mut back: Vec<Occurrence> = timetable.until(last_ms).take(later.len()).collect();
        back.reverse();
        prop_assert_eq!(&back, &later, "{} in {}", rule, zone);
        // There is no occurrence between the last one before an instant and the first one after it.
        let last = timetable.until(at_ms).next().unwrap();
        prop_assert!(last.at_ms <= at_ms);
        prop_assert_eq!(timetable.after(last.at_ms).next(), Some(later[0]), "{} in {}", rule, zone);
        prop_assert_eq!(timetable.after(last.at_ms - 1).next(), Some(last), "{} in {}", rule, zone);
        prop_assert_eq!(timetable.until(later[0].at_ms - 1).next(), Some(last), "{} in {}", rule, zone);
    }

    #[test]
    fn clock_changes_do_not_affect_intervals(
        (zone, at_s) in instants(),
        interval_ms in 1_000_i64..100_000_000,
        start_ms in proptest::option::of(0_i64..2_000_000_000_000),
    ) {
        let timetable = timetable(Rule::EveryMs(interval_ms), zone.name(), start_ms, None);
        let at_ms = at_s * 1_000;
        let later: Vec<i64> = timetable.after(at_ms).take(10).map(|occurrence| occurrence.at_ms).collect();
        let origin_ms = start_ms.unwrap_or(0);
        prop_assert!(later.iter().all(|found| (found - origin_ms) % interval_ms == 0));
        prop_assert!(later.windows(2).all(|pair| pair[1] - pair[0] == interval_ms));
        prop_assert!(later[0] > at_ms && later[0] >= start_ms.unwrap_or(i64::MIN));
        prop_assert!(later[0] - at_ms <= interval_ms || Some(later[0]) == start_ms);
        let before: Vec<i64> = timetable.until(later[9]).take(10).map(|occurrence| occurrence.at_ms).collect();
        prop_assert!(before.iter().rev().eq(later.iter()));
    }

    #[test]
    fn all_occurrences_are_between_start_and_end(
        (zone, at_s) in instants(), rule in proptest::sample::select(RULES.to_vec())
    ) {
        let free = cron(rule, zone.name());
        let some: Vec<i64> = free.after(at_s * 1_000).take(8).map(|occurrence| occurrence.at_ms).collect();
        // `start` is included, `end` is not.
        let bound = timetable(Rule::Cron(rule.to_owned()), zone.name(), Some(some[2]), Some(some[6]));
        let all: Vec<i64> = bound.after(i64::MIN).map(|occurrence| occurrence.at_ms).collect();
        prop_assert_eq!(&all, &some[2..6]);
        let mut back: Vec<i64> = bound.until(i64::MAX).map(|occurrence| occurrence.at_ms).collect();
        back.reverse();
        prop_assert_eq!(&back, &some[2..6]);
        prop_assert_eq!(bound.after(some[5]).next(), None);
        prop_assert_eq!(bound.until(some[2] - 1).next(), None);
    }
}

/// Occurrences from the first day of a year in local time to that of another.
fn in_years(timetable: &Timetable, zone: &str, first: i32, last: i32) -> Vec<Occurrence> {
    let new_year = |year: i32| parse_instant(&format!("{year}-01-01"), zone).unwrap();
    let (from_ms, to_ms) = (new_year(first), new_year(last));
    timetable.after(from_ms - 1).take_while(|occurrence| occurrence.at_ms < to_ms).collect()
}

#[test]
fn a_daily_rule_occurs_once_a_day_in_every_zone() {
    for zone in TZ_VARIANTS {
        let timetable = cron("30 2 * * *", zone.name());
        let found = in_years(&timetable, zone.name(), 2008, 2020);
        let mut day = NaiveDate::from_ymd_opt(2008, 1, 1).unwrap();
        for occurrence in &found {
            // The local time of the rule, also if the clock skips it.
            let meant = match occurrence.moved {
                Some(Moved::GapForward { local } | Moved::FoldFirst { local }) => local,
                None => local(occurrence.at_ms / 1_000, zone),
            };
            assert_eq!(meant, day.and_hms_opt(2, 30, 0).unwrap(), "in {zone}");
            day = day.succ_opt().unwrap();
        }
        assert_eq!(day, NaiveDate::from_ymd_opt(2020, 1, 1).unwrap(), "in {zone}");
    }
}

#[test]
fn an_hourly_rule_occurs_every_hour_where_clocks_change_by_whole_hours() {
    let mut others = Vec::new();
    for zone in TZ_VARIANTS {
        let timetable = cron("0 * * * *", zone.name());
        let found = in_years(&timetable, zone.name(), 2025, 2026);
        assert!(found.iter().all(|occurrence| occurrence.moved.is_none()), "in {zone}");
        let days = (found[found.len() - 1].at_ms - found[0].at_ms) / 86_400_000;
        assert!((364..=365).contains(&days), "in {zone}");
        if !found.windows(2).all(|pair| pair[1].at_ms - pair[0].at_ms == 3_600_000) {
            others.push(zone.name());
        }
    }
    // The clocks there change by half an hour.
    assert_eq!(others, ["Australia/LHI", "Australia/Lord_Howe"]);
}
