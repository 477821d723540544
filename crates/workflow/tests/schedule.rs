//! When schedules occur: tables by hand.
#![allow(clippy::unwrap_used)]

use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};
use windlass_workflow::schedule::{Moved, Timetable, local_text, parse_instant};

fn schedule(rule: Rule, timezone: &str) -> Schedule {
    Schedule {
        name: "default".to_owned(),
        rule,
        timezone: timezone.to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

fn cron(text: &str, timezone: &str) -> Timetable {
    Timetable::of(&schedule(Rule::Cron(text.to_owned()), timezone)).unwrap()
}

/// The occurrences after `from` and up to `to` as the zone's clock shows them, `!` behind those that a change
/// of the clock touches.
fn shown(text: &str, timezone: &str, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (parse_instant(from, timezone).unwrap(), parse_instant(to, timezone).unwrap());
    let timetable = cron(text, timezone);
    let ascending: Vec<_> =
        timetable.after(from - 1).take_while(|occurrence| occurrence.at_ms < to).collect();
    let mut descending: Vec<_> =
        timetable.until(to - 1).take_while(|occurrence| occurrence.at_ms >= from).collect();
    descending.reverse();
    assert_eq!(ascending, descending, "both directions agree: {text} in {timezone}");
    let show = |occurrence: &windlass_workflow::schedule::Occurrence| {
        let mark = match occurrence.moved {
            Some(Moved::GapForward { .. }) => " gap",
            Some(Moved::FoldFirst { .. }) => " first",
            None => "",
        };
        format!("{}{mark}", &local_text(occurrence.at_ms, timezone)[5..])
    };
    ascending.iter().map(show).collect()
}

#[test]
fn a_fixed_time_that_is_left_out_occurs_once_after_the_gap() {
    let berlin = |text: &str| shown(text, "Europe/Berlin", "2026-03-28T12:00", "2026-03-30T12:00");
    assert_eq!(berlin("30 2 * * *"), ["03-29T03:00:00+02:00 gap", "03-30T02:30:00+02:00"]);
    assert_eq!(
        berlin("30 2,14 * * *"),
        ["03-28T14:30:00+01:00", "03-29T03:00:00+02:00 gap", "03-29T14:30:00+02:00", "03-30T02:30:00+02:00"]
    );
    assert_eq!(
        berlin("0,30 2 * * *"),
        ["03-29T03:00:00+02:00 gap", "03-30T02:00:00+02:00", "03-30T02:30:00+02:00"]
    );
    assert_eq!(
        berlin("0 */2 29 * *"),
        [
            "03-29T00:00:00+01:00",
            "03-29T03:00:00+02:00 gap",
            "03-29T04:00:00+02:00",
            "03-29T06:00:00+02:00",
            "03-29T08:00:00+02:00",
            "03-29T10:00:00+02:00",
            "03-29T12:00:00+02:00",
            "03-29T14:00:00+02:00",
            "03-29T16:00:00+02:00",
            "03-29T18:00:00+02:00",
            "03-29T20:00:00+02:00",
            "03-29T22:00:00+02:00",
        ]
    );
}

#[test]
fn a_fixed_time_that_is_there_twice_occurs_the_first_time() {
    let berlin = |text: &str| shown(text, "Europe/Berlin", "2026-10-24T12:00", "2026-10-26T12:00");
    assert_eq!(berlin("30 2 * * *"), ["10-25T02:30:00+02:00 first", "10-26T02:30:00+01:00"]);
    assert_eq!(
        berlin("0 1-3 25 * *"),
        ["10-25T01:00:00+02:00", "10-25T02:00:00+02:00 first", "10-25T03:00:00+01:00"]
    );
}

#[test]
fn an_hourly_rule_occurs_at_each_real_hour() {
    let spring = shown("0 * * * *", "Europe/Berlin", "2026-03-29T00:30", "2026-03-29T04:30");
    assert_eq!(spring, ["03-29T01:00:00+01:00", "03-29T03:00:00+02:00", "03-29T04:00:00+02:00"]);
    let autumn = shown("0 * * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T03:30");
    assert_eq!(
        autumn,
        ["10-25T01:00:00+02:00", "10-25T02:00:00+02:00", "10-25T02:00:00+01:00", "10-25T03:00:00+01:00"]
    );
}

#[test]
fn a_day_that_is_left_out_occurs_at_the_next_days_start() {
    let apia = |text: &str| shown(text, "Pacific/Apia", "2011-12-29T00:00", "2012-01-01T00:00");
    assert_eq!(
        apia("0 12 * * *"),
        ["12-29T12:00:00-10:00", "12-31T00:00:00+14:00 gap", "12-31T12:00:00+14:00"]
    );
    assert_eq!(apia("0 0 * * *"), ["12-29T00:00:00-10:00", "12-31T00:00:00+14:00 gap"]);
}
