//! The occurrences of schedules, in tables written by hand.
#![allow(clippy::unwrap_used)]

use windlass_workflow::limits;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};
use windlass_workflow::schedule::{Moved, Occurrence, Timetable, jitter, local_text, parse_instant};

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

/// The occurrences from `from` up to `to` in local time. An occurrence that a change of the clock affects is marked `gap` or
/// `first`.
fn shown(text: &str, timezone: &str, from: &str, to: &str) -> Vec<String> {
    let (from, to) = (parse_instant(from, timezone).unwrap(), parse_instant(to, timezone).unwrap());
    let timetable = cron(text, timezone);
    let ascending: Vec<_> =
        timetable.after(from - 1).take_while(|occurrence| occurrence.at_ms < to).collect();
    let mut descending: Vec<_> =
        timetable.until(to - 1).take_while(|occurrence| occurrence.at_ms >= from).collect();
    descending.reverse();
    assert_eq!(ascending, descending, "both directions agree: {text} in {timezone}");
    let show = |occurrence: &Occurrence| {
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
fn a_time_that_the_clock_skips_occurs_once_after_the_gap() {
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
fn a_time_that_the_clock_shows_twice_occurs_the_first_time() {
    let berlin = |text: &str| shown(text, "Europe/Berlin", "2026-10-24T12:00", "2026-10-26T12:00");
    assert_eq!(berlin("30 2 * * *"), ["10-25T02:30:00+02:00 first", "10-26T02:30:00+01:00"]);
    assert_eq!(
        berlin("0 1-3 25 * *"),
        ["10-25T01:00:00+02:00", "10-25T02:00:00+02:00 first", "10-25T03:00:00+01:00"]
    );
}

#[test]
fn an_hourly_rule_occurs_every_hour_across_clock_changes() {
    let spring = shown("0 * * * *", "Europe/Berlin", "2026-03-29T00:30", "2026-03-29T04:30");
    assert_eq!(spring, ["03-29T01:00:00+01:00", "03-29T03:00:00+02:00", "03-29T04:00:00+02:00"]);
    let autumn = shown("0 * * * *", "Europe/Berlin", "2026-10-25T00:30", "2026-10-25T03:30");
    assert_eq!(
        autumn,
        ["10-25T01:00:00+02:00", "10-25T02:00:00+02:00", "10-25T02:00:00+01:00", "10-25T03:00:00+01:00"]
    );
}

#[test]
fn a_time_on_a_skipped_day_occurs_at_the_start_of_the_next_day() {
    let apia = |text: &str| shown(text, "Pacific/Apia", "2011-12-29T00:00", "2012-01-01T00:00");
    assert_eq!(
        apia("0 12 * * *"),
        ["12-29T12:00:00-10:00", "12-31T00:00:00+14:00 gap", "12-31T12:00:00+14:00"]
    );
    assert_eq!(apia("0 0 * * *"), ["12-29T00:00:00-10:00", "12-31T00:00:00+14:00 gap"]);
}

#[test]
fn changes_by_half_an_hour_and_just_after_midnight_are_handled() {
    let lord_howe = |text: &str| shown(text, "Australia/Lord_Howe", "2026-10-04T00:00", "2026-10-04T04:00");
    assert_eq!(lord_howe("0,15,30,45 2 * * *"), ["10-04T02:30:00+11:00 gap", "10-04T02:45:00+11:00"]);
    // The clock skips 02:00 to 02:30, so a rule for every hour does not occur at 02:00.
    assert_eq!(
        lord_howe("0 * * * *"),
        ["10-04T00:00:00+10:30", "10-04T01:00:00+10:30", "10-04T03:00:00+11:00"]
    );
    // At 00:01 the clock is put back to 23:01 of the day before.
    let st_johns = |text: &str| shown(text, "America/St_Johns", "2010-11-06T23:00", "2010-11-07T01:00");
    assert_eq!(st_johns("0 0 7 11 *"), ["11-07T00:00:00-02:30 first"]);
    assert_eq!(st_johns("30 23 * * *"), ["11-06T23:30:00-02:30 first"]);
    assert_eq!(
        st_johns("*/30 * * * *"),
        [
            "11-06T23:00:00-02:30",
            "11-06T23:30:00-02:30",
            "11-07T00:00:00-02:30",
            "11-06T23:30:00-03:30",
            "11-07T00:00:00-03:30",
            "11-07T00:30:00-03:30",
        ]
    );
}

#[test]
fn a_skipped_midnight_occurs_at_the_first_instant_of_the_day() {
    let sao_paulo = |text: &str| shown(text, "America/Sao_Paulo", "2018-11-03T00:00", "2018-11-05T12:00");
    assert_eq!(
        sao_paulo("@daily"),
        ["11-03T00:00:00-03:00", "11-04T01:00:00-02:00 gap", "11-05T00:00:00-02:00"]
    );
    assert_eq!(sao_paulo("0 0 * * SUN"), ["11-04T01:00:00-02:00 gap"]);
}

#[test]
fn the_effect_of_a_clock_change_is_described() {
    let moved = |text: &str, from: &str| {
        let from_ms = parse_instant(from, "Europe/Berlin").unwrap();
        let occurrence = cron(text, "Europe/Berlin").after(from_ms).next().unwrap();
        occurrence.moved.map(|moved| moved.to_string())
    };
    let gap = moved("15,45 2 * * *", "2026-03-29");
    assert_eq!(gap.unwrap(), "2026-03-29 02:15:00 does not exist: the clock is put forward");
    let fold = moved("30 2 * * *", "2026-10-25");
    assert_eq!(fold.unwrap(), "2026-10-25 02:30:00 comes twice: the clock is put back");
    assert_eq!(moved("30 2 * * *", "2026-10-26"), None);
    assert_eq!(moved("0 * * * *", "2026-03-29T01:00"), None);
}

/// The first `count` occurrences after the beginning of 2026 in UTC.
fn first(text: &str, count: usize) -> Vec<String> {
    let from_ms = parse_instant("2026-01-01", "UTC").unwrap();
    let timetable = cron(text, "UTC");
    let times = timetable.after(from_ms).take(count);
    times.map(|occurrence| local_text(occurrence.at_ms, "UTC")[..19].to_owned()).collect()
}

#[test]
fn every_syntax_of_a_field_is_parsed() {
    let cases: [(&str, &[&str]); 28] = [
        ("0 0 * * *", &["2026-01-02T00:00:00", "2026-01-03T00:00:00"]),
        ("30 0 12 * * *", &["2026-01-01T12:00:30", "2026-01-02T12:00:30"]),
        ("*/20 * * * * *", &["2026-01-01T00:00:20", "2026-01-01T00:00:40", "2026-01-01T00:01:00"]),
        ("5/25 * * * *", &["2026-01-01T00:05:00", "2026-01-01T00:30:00", "2026-01-01T00:55:00"]),
        ("10-20/5 1 * * *", &["2026-01-01T01:10:00", "2026-01-01T01:15:00", "2026-01-01T01:20:00"]),
        ("0 22-1 * * *", &["2026-01-01T01:00:00", "2026-01-01T22:00:00", "2026-01-01T23:00:00"]),
        ("0 22-4/3 * * *", &["2026-01-01T01:00:00", "2026-01-01T04:00:00", "2026-01-01T22:00:00"]),
        ("0 0 * * mon", &["2026-01-05T00:00:00", "2026-01-12T00:00:00"]),
        ("0 0 * * Fri-Sun", &["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("0 0 * * SAT-MON", &["2026-01-03T00:00:00", "2026-01-04T00:00:00", "2026-01-05T00:00:00"]),
        ("0 0 * * 0-7", &["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-04T00:00:00"]),
        ("0 0 * * 7", &["2026-01-04T00:00:00", "2026-01-11T00:00:00"]),
        ("0 0 * * 5/1", &["2026-01-02T00:00:00", "2026-01-03T00:00:00", "2026-01-09T00:00:00"]),
        ("0 0 1 feb,Nov-jan *", &["2026-02-01T00:00:00", "2026-11-01T00:00:00", "2026-12-01T00:00:00"]),
        ("0 0 L * *", &["2026-01-31T00:00:00", "2026-02-28T00:00:00"]),
        ("0 0 l 2 *", &["2026-02-28T00:00:00", "2027-02-28T00:00:00", "2028-02-29T00:00:00"]),
        ("0 0 LW * *", &["2026-01-30T00:00:00", "2026-02-27T00:00:00", "2026-03-31T00:00:00"]),
        ("0 0 1W,15w * *", &["2026-01-15T00:00:00", "2026-02-02T00:00:00", "2026-02-16T00:00:00"]),
        ("0 0 31W * *", &["2026-01-30T00:00:00", "2026-03-31T00:00:00", "2026-05-29T00:00:00"]),
        ("0 0 * * MON#2", &["2026-01-12T00:00:00", "2026-02-09T00:00:00"]),
        ("0 0 * * 7#1,5#5", &["2026-01-04T00:00:00", "2026-01-30T00:00:00", "2026-02-01T00:00:00"]),
        ("0 0 * * FRIL", &["2026-01-30T00:00:00", "2026-02-27T00:00:00"]),
        ("0 0 * * 7L", &["2026-01-25T00:00:00", "2026-02-22T00:00:00"]),
        // If both kinds of day are restricted, a day that matches either of them counts.
        ("0 0 13 * FRI", &["2026-01-02T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"]),
        ("0 0 ? * MON", &["2026-01-05T00:00:00", "2026-01-12T00:00:00"]),
        ("0 0 */1 * MON", &["2026-01-05T00:00:00", "2026-01-12T00:00:00"]),
        ("0 0 * 2 MON#5", &["2044-02-29T00:00:00", "2072-02-29T00:00:00", "2112-02-29T00:00:00"]),
        (" @Yearly ", &["2027-01-01T00:00:00", "2028-01-01T00:00:00"]),
    ];
    for (text, expected) in cases {
        assert_eq!(first(text, expected.len()), expected, "{text}");
    }
}

#[test]
fn every_word_stands_for_its_expression() {
    let words = [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ];
    for (word, expression) in words {
        assert_eq!(first(word, 50), first(expression, 50), "{word}");
    }
}

fn refusal(schedule: &Schedule) -> String {
    Timetable::of(schedule).expect_err(&format!("{schedule:?}")).to_string()
}

#[test]
fn invalid_rules_are_refused_with_a_reason() {
    let long = format!("0 0 {} * *", ["1"; 300].join(","));
    let cases = [
        ("", "is empty"),
        ("daily", "this one has 1; write minute, hour"),
        ("* * * *", "this one has 4"),
        ("0 0 0 1 1 * 2026", "seven; there is no field for years"),
        ("60 * * * *", "in the minute field, `60` is not within 0 to 59"),
        ("* 24 * * *", "in the hour field, `24` is not within 0 to 23"),
        ("* * 0 * *", "in the day of month field, `0` is not within 1 to 31"),
        ("* * * 13 *", "in the month field, `13`"),
        ("* * * * 8", "in the day of week field, `8` is not within 0 to 7"),
        ("61 * * * * *", "in the second field"),
        ("99999999999 * * * *", "is not within 0 to 59"),
        ("* MON * * *", "in the hour field, `MON` is not an hour"),
        ("* * * FOO *", "in the month field, `FOO` is not a month"),
        ("* * * JANUARY *", "did you mean `JAN`?"),
        ("* * * * MON-", "`MON-` has no number"),
        ("1,,2 * * * *", "empty item"),
        ("*/0 * * * *", "at least 1"),
        ("*/x * * * *", "`x` is not a step"),
        (
            "*/90 * * * *",
            "a step of 90 is larger than the range 0 to 59; for an interval of any length use `every`",
        ),
        ("0 0 * * */7", "a step of 7"),
        ("+5 * * * *", "`+5` is not a minute"),
        ("1--5 * * * *", "is not a minute"),
        ("* * * * MON#6", "must be 1 to 5"),
        ("* * * * MON#", "must be 1 to 5"),
        ("* * * * L", "needs a day of the week"),
        ("* * L-3 * *", "`L` is not a day of month"),
        ("* * W * *", "has no number"),
        ("* * L,LW * *", "`L` and `LW`"),
        ("? * * * *", "`?` is not a minute"),
        ("0 0 1 * +FRI", "`+FRI` is not a day of week"),
        ("0 0 30 2 *", "never occurs"),
        ("0 0 31 2,4,6,9,11 *", "never occurs"),
        ("0 0 30W 2 *", "never occurs"),
        ("@reboot", "there is no `@reboot`; the words are @yearly"),
        ("@every 5m", "write every = "),
        ("@once", "write at = "),
        ("@weekyl", "did you mean `@weekly`?"),
        ("* * * * *\u{a0}*", "in the day of week field"),
        (&long, "607 bytes; the limit is 500"),
    ];
    for (text, reason) in cases {
        let message = refusal(&schedule(Rule::Cron(text.to_owned()), "UTC"));
        assert!(message.contains(reason), "{text}: {message}");
    }
}

#[test]
fn unknown_zones_are_refused_with_a_suggestion() {
    let cases = [
        ("Europe/Berln", "did you mean `Europe/Berlin`?"),
        ("europe/berlin", "did you mean `Europe/Berlin`?"),
        ("Tokyo", "did you mean `Asia/Tokyo`?"),
        ("Mars/Olympus", "write an IANA name"),
        ("PST", "write an IANA name"),
        ("", "write an IANA name"),
        ("+02:00", "write an IANA name"),
    ];
    for (zone, reason) in cases {
        for rule in [Rule::Cron("@daily".to_owned()), Rule::EveryMs(60_000)] {
            let message = refusal(&schedule(rule, zone));
            assert!(
                message.contains("there is no time zone") && message.contains(reason),
                "{zone}: {message}"
            );
        }
    }
}

#[test]
fn intervals_jitter_and_ends_have_limits() {
    let every = |interval_ms| schedule(Rule::EveryMs(interval_ms), "UTC");
    for interval_ms in [i64::MIN, 0, limits::SCHEDULE_INTERVAL_MS - 1, limits::DURATION_MS + 1, i64::MAX] {
        assert!(refusal(&every(interval_ms)).contains("out of range"), "{interval_ms}");
    }
    assert!(Timetable::of(&every(limits::SCHEDULE_INTERVAL_MS)).is_ok());
    assert!(Timetable::of(&every(limits::DURATION_MS)).is_ok());

    let jittery = |rule: Rule, jitter_ms| Schedule { jitter_ms, ..schedule(rule, "UTC") };
    let cases = [
        (Rule::EveryMs(60_000), 60_000),
        (Rule::Cron("0,20 * * * *".to_owned()), 20 * 60_000),
        (Rule::Cron("0 0 * * MON".to_owned()), 7 * 86_400_000),
        (Rule::Cron("0 0 * * FRI,SUN".to_owned()), 2 * 86_400_000),
        (Rule::Cron("0 0 29 2 *".to_owned()), (4 * 365 + 1) * 86_400_000),
        (Rule::Cron("0,40 0,50 * * * *".to_owned()), 40_000),
    ];
    for (rule, most_ms) in cases {
        assert!(Timetable::of(&jittery(rule.clone(), most_ms)).is_ok(), "{rule:?}");
        let message = refusal(&jittery(rule, most_ms + 1));
        assert!(message.contains("is longer than the shortest interval"), "{message}");
    }

    let bound = |from: &str, to: &str| {
        let instant = |text: &str| Some(parse_instant(text, "UTC").unwrap());
        Schedule {
            start_ms: instant(from),
            end_ms: instant(to),
            ..schedule(Rule::Cron("@daily".to_owned()), "UTC")
        }
    };
    assert!(Timetable::of(&bound("2026-01-01", "2026-01-01T00:00:01")).is_ok());
    assert!(refusal(&bound("2026-01-02", "2026-01-02")).contains("not after `start`"));
    assert!(refusal(&bound("2026-01-01T01:00", "2026-01-02")).contains("never occurs between"));
}

#[test]
fn an_interval_counts_from_its_start_or_from_the_epoch() {
    let times = |start_ms, after_ms| {
        let every = Schedule { start_ms, ..schedule(Rule::EveryMs(90_000), "Europe/Berlin") };
        let timetable = Timetable::of(&every).unwrap();
        timetable.after(after_ms).take(3).map(|occurrence| occurrence.at_ms).collect::<Vec<_>>()
    };
    assert_eq!(times(None, 90_000), [180_000, 270_000, 360_000]);
    assert_eq!(times(None, 89_999), [90_000, 180_000, 270_000]);
    assert_eq!(times(Some(100_000), 0), [100_000, 190_000, 280_000]);
    assert_eq!(times(Some(100_000), 100_000), [190_000, 280_000, 370_000]);
}

#[test]
fn the_first_and_the_last_occurrence_are_within_the_limits() {
    for rule in ["0 0 29 2 *", "* * * * * *", "0 * * * MON", "30 2 * * *"] {
        for zone in ["Pacific/Apia", "America/Juneau", "UTC"] {
            let timetable = cron(rule, zone);
            let earliest = timetable.after(i64::MIN).next().unwrap();
            assert!(earliest.at_ms > limits::SCHEDULE_FIRST_MS);
            assert_eq!(timetable.until(earliest.at_ms).take(2).collect::<Vec<_>>(), [earliest], "{rule}");
            let latest = timetable.until(i64::MAX).next().unwrap();
            assert!(latest.at_ms <= limits::SCHEDULE_LAST_MS);
            assert_eq!(timetable.after(latest.at_ms).next(), None, "{rule} in {zone}");
            assert_eq!(timetable.after(i64::MAX).next(), None);
            assert_eq!(timetable.until(i64::MIN).next(), None);
        }
    }
    let every = Timetable::of(&schedule(Rule::EveryMs(1_000), "UTC")).unwrap();
    assert_eq!(every.after(i64::MAX).next(), None);
    assert!(every.after(i64::MIN).next().is_some() && every.until(i64::MAX).next().is_some());
    let late = Schedule { start_ms: Some(i64::MAX), ..schedule(Rule::EveryMs(1_000), "UTC") };
    assert_eq!(Timetable::of(&late).unwrap().after(0).next(), None);
}

#[test]
fn rare_occurrences_are_found_quickly() {
    let now_ms = parse_instant("2026-03-01", "UTC").unwrap();
    let start = std::time::Instant::now();
    for rule in ["0 0 * 2 MON#5", "0 0 29 2 *", "*/10 * * 2 MON#5", "30 2 31 12 *"] {
        for _ in 0..10 {
            let timetable = cron(rule, "Europe/Berlin");
            assert!(timetable.after(now_ms).next().is_some());
            assert!(timetable.until(now_ms).take(10).count() == 10);
        }
    }
    // This takes some hundredths of a second. A search over every minute would take minutes.
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn instants_are_read_in_the_zone_unless_they_have_an_offset() {
    let berlin =
        |text: &str| parse_instant(text, "Europe/Berlin").map(|at_ms| local_text(at_ms, "Europe/Berlin"));
    let cases = [
        ("2026-11-21", "2026-11-21T00:00:00+01:00"),
        ("2026-07-21T02:30", "2026-07-21T02:30:00+02:00"),
        ("2026-07-21 02:30:15", "2026-07-21T02:30:15+02:00"),
        ("2026-07-21t02:30:15.250", "2026-07-21T02:30:15.250+02:00"),
        ("2026-07-21T02:30:00Z", "2026-07-21T04:30:00+02:00"),
        (" 2026-07-21 02:30:00-05:00 ", "2026-07-21T09:30:00+02:00"),
        // A time that the clock skips, and a time that it shows twice.
        ("2026-03-29T02:30", "2026-03-29T03:00:00+02:00"),
        ("2026-10-25T02:30", "2026-10-25T02:30:00+02:00"),
    ];
    for (text, expected) in cases {
        assert_eq!(berlin(text).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        "",
        "now",
        "2026-02-30",
        "2026-11-21T25:00",
        "21.11.2026",
        "2026-11-21T02:30:00+25:00",
        "2026-11-ü1 x",
    ] {
        assert!(berlin(text).is_err_and(|reason| reason.contains("2026-11-21")), "{text}");
    }
    assert!(parse_instant("2026-11-21", "Nowhere").unwrap_err().contains("no time zone"));
    assert_eq!(local_text(0, "Nowhere"), "1970-01-01T00:00:00+00:00");
    assert_eq!(local_text(1, "Asia/Kathmandu"), "1970-01-01T05:30:00.001+05:30");
}

#[test]
fn jitter_is_deterministic_and_evenly_spread() {
    let delay = |key: &str, at_ms| jitter(key, at_ms, 10_000);
    assert_eq!(delay("w/s", 1_000), delay("w/s", 1_000));
    let mut all: Vec<i64> = (0..1_000).map(|at| delay("w/s", at * 60_000)).collect();
    assert!(all.iter().all(|delay_ms| (0..=10_000).contains(delay_ms)));
    all.sort_unstable();
    // The delays are spread evenly if each quartile is near its expected value.
    for quarter in 1..4_usize {
        assert!((all[quarter * 250] - 2_500 * quarter as i64).abs() < 1_000, "{}", all[quarter * 250]);
    }
    let others: Vec<i64> = (0..50).map(|number| delay(&format!("w/s{number}"), 0)).collect();
    assert!(others.iter().collect::<std::collections::BTreeSet<_>>().len() > 40, "{others:?}");
    assert_eq!((jitter("a", 5, 0), jitter("a", 5, -1)), (0, 0));
    assert!((0..=i64::MAX).contains(&jitter("a", 5, i64::MAX)));
}

#[test]
fn a_schedule_with_one_instant_occurs_once() {
    let at_ms = parse_instant("2026-03-29T02:30", "Europe/Berlin").unwrap();
    let timetable = Timetable::of(&schedule(Rule::AtMs(at_ms), "Europe/Berlin")).unwrap();
    let only = Occurrence { at_ms, moved: None };
    assert_eq!(timetable.after(i64::MIN).collect::<Vec<_>>(), [only]);
    assert_eq!(timetable.until(i64::MAX).collect::<Vec<_>>(), [only]);
    assert_eq!((timetable.after(at_ms - 1).next(), timetable.after(at_ms).next()), (Some(only), None));
    assert_eq!((timetable.until(at_ms).next(), timetable.until(at_ms - 1).next()), (Some(only), None));
}
