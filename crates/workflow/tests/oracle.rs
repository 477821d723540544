//! Compares occurrences with those that `oracle/oracle.py` computed: over decades by count and hash, and around clock changes
//! one by one.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDateTime};
use sha2::{Digest, Sha256};
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};
use windlass_workflow::schedule::{Occurrence, Timetable};

const DECADES: &str = include_str!("oracle/decades.txt");
const CHANGES: &str = include_str!("oracle/changes.txt");

fn timetable(cron: &str, timezone: &str) -> Timetable {
    let schedule = Schedule {
        name: "default".to_owned(),
        rule: Rule::Cron(cron.to_owned()),
        timezone: timezone.to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    };
    Timetable::of(&schedule).unwrap_or_else(|error| panic!("{cron} in {timezone}: {error}"))
}

/// The number of occurrences that are also searched backwards.
const BACKWARDS: usize = 1_000;

/// The occurrences in `from_s <= t < to_s`, in seconds. Both directions must find the same.
fn occurrences(timetable: &Timetable, from_s: i64, to_s: i64) -> Result<Vec<i64>, String> {
    let (from_ms, to_ms) = (from_s * 1_000, to_s * 1_000);
    let ascending: Vec<Occurrence> =
        timetable.after(from_ms - 1).take_while(|occurrence| occurrence.at_ms < to_ms).collect();
    let descending = timetable.until(to_ms - 1).take_while(|occurrence| occurrence.at_ms >= from_ms);
    match descending.take(BACKWARDS).eq(ascending.iter().rev().take(BACKWARDS).copied()) {
        true => Ok(ascending.iter().map(|occurrence| occurrence.at_ms / 1_000).collect()),
        false => Err("forwards and backwards differ".to_owned()),
    }
}

/// A rule of `decades.txt`, and its range of instants in seconds.
struct RuleRange<'t> {
    cron: &'t str,
    from_s: i64,
    to_s: i64,
}

fn year_s(year: &str) -> i64 {
    DateTime::parse_from_rfc3339(&format!("{year}-01-01T00:00:00Z")).unwrap().timestamp()
}

fn rules() -> Vec<RuleRange<'static>> {
    let lines = DECADES.lines().filter_map(|line| line.strip_prefix("rule "));
    let rule = |line: &'static str| {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap();
        let (from_s, to_s) = (year_s(word()), year_s(word()));
        RuleRange { cron: word(), from_s, to_s }
    };
    lines.map(rule).collect()
}

/// The count and the hash of occurrences, as the oracle writes them.
fn summary(found: &[i64]) -> String {
    let mut text = String::with_capacity(found.len() * 11);
    for at_s in found {
        writeln!(text, "{at_s}").unwrap();
    }
    let digest = Sha256::digest(text.trim_end().as_bytes());
    let hash: String = digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("{}:{hash}", found.len())
}

/// Compares every `parts`th zone, beginning with number `part`.
fn compare_decades(part: usize, parts: usize) {
    let rules = rules();
    let zones: Vec<&str> = DECADES.lines().filter_map(|line| line.strip_prefix("zone ")).collect();
    assert!(rules.len() >= 60 && zones.len() >= 40, "{} rules, {} zones", rules.len(), zones.len());
    let mut wrong = Vec::new();
    for line in zones.iter().skip(part).step_by(parts) {
        let mut cells = line.split(' ');
        let zone = cells.next().unwrap();
        let expected: Vec<&str> = cells.collect();
        assert_eq!(expected.len(), rules.len(), "{zone}");
        for (rule, expected) in rules.iter().zip(expected).filter(|(_, expected)| *expected != "-") {
            let found = occurrences(&timetable(rule.cron, zone), rule.from_s, rule.to_s);
            let found = found.map(|found| summary(&found)).unwrap_or_else(|error| error);
            if found != expected {
                wrong.push(format!("{} in {zone}: {found}, not {expected}", rule.cron));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn decades_agree_in_the_first_third_of_the_zones() {
    compare_decades(0, 3);
}

#[test]
fn decades_agree_in_the_second_third_of_the_zones() {
    compare_decades(1, 3);
}

#[test]
fn decades_agree_in_the_last_third_of_the_zones() {
    compare_decades(2, 3);
}

#[test]
fn occurrences_around_clock_changes_agree() {
    let seconds =
        |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%MZ").unwrap().and_utc().timestamp();
    let mut window = ("", 0, 0);
    let (mut windows, mut wrong) = (0, Vec::new());
    for line in CHANGES.lines() {
        if let Some(line) = line.strip_prefix("window ") {
            let words: Vec<&str> = line.split(' ').collect();
            window = (words[0], seconds(words[1]), seconds(words[2]));
            windows += 1;
        } else if let Some((cron, expected)) = line.trim_start().split_once(" = ") {
            let (zone, from_s, to_s) = window;
            let found = occurrences(&timetable(cron, zone), from_s, to_s + 1).map(|found| {
                let show = |at_s: &i64| {
                    DateTime::from_timestamp(*at_s, 0).unwrap().format("%d.%H:%M:%S").to_string()
                };
                match found.is_empty() {
                    true => "-".to_owned(),
                    false => found.iter().map(show).collect::<Vec<_>>().join(" "),
                }
            });
            let found = found.unwrap_or_else(|error| error);
            if found != expected {
                wrong.push(format!("{cron} in {zone}:\n  {found}\nnot\n  {expected}"));
            }
        }
    }
    assert!(windows >= 30, "{windows}");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
