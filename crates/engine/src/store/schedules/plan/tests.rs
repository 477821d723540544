use windlass_workflow::model::{Overlap, Rule};

use super::*;

const SECOND: i64 = 1_000;
/// Long enough after 1970 for all tests here.
const NOW: i64 = 1_000_000 * SECOND;

/// A schedule that occurs every ten seconds.
fn definition(catchup: Catchup) -> Definition {
    Definition {
        name: "default".to_owned(),
        rule: Rule::EveryMs(10 * SECOND),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Skip,
        catchup,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

/// Plans at [`NOW`], which is a nominal time, with the cursor `outage_s` seconds earlier.
fn after_outage(definition: &Definition, outage_s: i64) -> Plan {
    let timetable = Timetable::of(definition).expect("a valid rule");
    plan("report/default", definition, &timetable, NOW - outage_s * SECOND, NOW)
}

/// Due occurrences that are caught up, and those that are on time, in seconds before [`NOW`].
fn due(plan: &Plan) -> (Vec<i64>, Vec<i64>) {
    let seconds = |source: RunSource| {
        plan.due
            .iter()
            .filter(|planned| planned.source == source)
            .map(|planned| (NOW - planned.at_ms) / SECOND)
            .collect::<Vec<i64>>()
    };
    (seconds(RunSource::Catchup), seconds(RunSource::Schedule))
}

fn missed(plan: &Plan) -> Vec<i64> {
    plan.missed.iter().map(|(at_ms, _reason)| (NOW - at_ms) / SECOND).collect()
}

#[test]
fn up_to_ten_seconds_late_is_on_time_and_older_is_caught_up() {
    let bounded = |catchup, window_s: Option<i64>, most| Definition {
        catchup_window_ms: window_s.map(|window_s| window_s * SECOND),
        catchup_max: most,
        ..definition(catchup)
    };
    // (definition, seconds since the cursor, caught up, on time, missed)
    type Case = (Definition, i64, Vec<i64>, Vec<i64>, Vec<i64>);
    let cases: Vec<Case> = vec![
        (definition(Catchup::Last), 0, vec![], vec![], vec![]),
        (definition(Catchup::Last), -60, vec![], vec![], vec![]),
        (definition(Catchup::None), 5, vec![], vec![0], vec![]),
        (definition(Catchup::None), 15, vec![], vec![10, 0], vec![]),
        (definition(Catchup::None), 45, vec![], vec![10, 0], vec![40, 30, 20]),
        (definition(Catchup::Last), 45, vec![20], vec![10, 0], vec![40, 30]),
        (definition(Catchup::All), 45, vec![40, 30, 20], vec![10, 0], vec![]),
        (bounded(Catchup::All, Some(30), 1_000), 65, vec![30, 20], vec![10, 0], vec![60, 50, 40]),
        (bounded(Catchup::All, None, 2), 65, vec![30, 20], vec![10, 0], vec![60, 50, 40]),
        (bounded(Catchup::All, Some(20), 2), 65, vec![20], vec![10, 0], vec![60, 50, 40, 30]),
        (bounded(Catchup::All, Some(1), 1), 45, vec![], vec![10, 0], vec![40, 30, 20]),
        (bounded(Catchup::Last, Some(15), 1), 45, vec![], vec![10, 0], vec![40, 30, 20]),
        (
            Definition { start_ms: Some(NOW - 30 * SECOND), ..definition(Catchup::All) },
            65,
            vec![30, 20],
            vec![10, 0],
            vec![],
        ),
        (
            Definition { end_ms: Some(NOW - 20 * SECOND), ..definition(Catchup::All) },
            45,
            vec![40, 30],
            vec![],
            vec![],
        ),
    ];
    for (definition, outage_s, caught_up, on_time, expected_missed) in cases {
        let plan = after_outage(&definition, outage_s);
        assert_eq!(due(&plan), (caught_up, on_time), "{definition:?} after {outage_s} s");
        assert_eq!(missed(&plan), expected_missed, "{definition:?} after {outage_s} s");
        assert_eq!(plan.missed_count, expected_missed.len());
        assert_eq!(plan.decided_until, NOW.max(NOW - outage_s * SECOND), "the cursor never goes back");
    }
}

#[test]
fn the_next_occurrence_is_after_the_cursor() {
    let next = |definition: &Definition, outage_s| after_outage(definition, outage_s).next_at;
    assert_eq!(next(&definition(Catchup::Last), 45), Some(NOW + 10 * SECOND));
    assert_eq!(
        next(&definition(Catchup::Last), -3_600),
        Some(NOW + 3_610 * SECOND),
        "the clock was set back"
    );
    let over = Definition { end_ms: Some(NOW + 10 * SECOND), ..definition(Catchup::Last) };
    assert_eq!(next(&over, 45), None, "the end is exclusive");
    let later = Definition { start_ms: Some(NOW + 15 * SECOND), ..definition(Catchup::Last) };
    assert_eq!(next(&later, 45), Some(NOW + 15 * SECOND), "an interval is counted from the start");
}

#[test]
fn reasons_name_the_setting() {
    let all = Definition { catchup_max: 1, ..definition(Catchup::All) };
    let window = Definition { catchup_window_ms: Some(SECOND), ..definition(Catchup::All) };
    for (definition, word) in [
        (definition(Catchup::None), "catchup = \"none\""),
        (definition(Catchup::Last), "catchup = \"last\""),
        (all, "catchup_max = 1"),
        (window, "catchup_window"),
    ] {
        let plan = after_outage(&definition, 65);
        assert!(plan.missed[0].1.contains(word), "{:?}", plan.missed);
    }
}

#[test]
fn lateness_includes_jitter_and_jitter_is_deterministic() {
    let rule = Rule::EveryMs(100 * SECOND);
    let jittered = Definition { rule, jitter_ms: 100 * SECOND, ..definition(Catchup::None) };
    let plan = after_outage(&jittered, 7_200);
    assert_eq!(plan, after_outage(&jittered, 7_200));
    assert!(!plan.due.is_empty() && plan.missed_count > 0);
    for planned in &plan.due {
        assert!((0..=100 * SECOND).contains(&(planned.start_after - planned.at_ms)));
        assert!(planned.start_after >= NOW - ON_TIME_MS, "its start is on time");
    }
    assert_eq!(plan.due.len() + plan.missed_count, 72, "each occurrence is due or missed");
}

#[test]
fn a_plan_after_a_long_outage_is_bounded() {
    let every_second =
        |catchup, catchup_max| Definition { rule: Rule::EveryMs(SECOND), catchup_max, ..definition(catchup) };
    let plan = after_outage(&every_second(Catchup::Last, 1_000), 900_000);
    assert_eq!((plan.missed.len(), plan.missed_count), (RECORDED_MAX, MISSED_COUNT_MAX));
    assert_eq!(due(&plan).0, [11], "the occurrence before is the newest missed one");
    assert_eq!(missed(&plan).last(), Some(&12));

    // If there are too many for one transaction, the plan takes the oldest and the cursor stops behind them.
    let all = every_second(Catchup::All, 100_000);
    let plan = after_outage(&all, 50_000);
    assert_eq!(plan.due.len(), PLANNED_MAX);
    assert_eq!(plan.decided_until, plan.due[PLANNED_MAX - 1].at_ms);
    assert_eq!(plan.next_at, Some(plan.decided_until + SECOND), "the next one is due at once");
    let timetable = Timetable::of(&all).expect("a valid rule");
    let (mut cursor, mut planned) = (NOW - 50_000 * SECOND, Vec::new());
    while cursor < NOW {
        let plan = super::plan("report/default", &all, &timetable, cursor, NOW);
        planned.extend(plan.due.iter().map(|planned| planned.at_ms));
        cursor = plan.decided_until;
    }
    assert!(planned.windows(2).all(|pair| pair[0] + SECOND == pair[1]), "each occurrence once, in order");
    assert_eq!(planned.len(), 50_000);
}
