//! The first occurrences of a schedule: those before its registration, and schedules that occur once.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph};
use windlass_engine::RunSource;
use windlass_engine::store::{
    Fired, NewRegistration, NewTarget, NotificationEvent, OccurrenceStatus, RunFilter,
};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};

const HOUR_MS: i64 = 3_600_000;
/// When the tests begin: at a full hour.
const BEGIN_MS: i64 = 500_000 * HOUR_MS;

fn schedule(rule: Rule, catchup: Catchup) -> Definition {
    Definition {
        name: "default".to_owned(),
        rule,
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

/// An hourly schedule that began some hours before the tests.
fn since(hours: i64, catchup: Catchup) -> Definition {
    Definition { start_ms: Some(BEGIN_MS - hours * HOUR_MS), ..schedule(Rule::EveryMs(HOUR_MS), catchup) }
}

fn once(after_hours: i64) -> Definition {
    schedule(Rule::AtMs(BEGIN_MS + after_hours * HOUR_MS), Catchup::Last)
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench.clock.advance_ms(BEGIN_MS - bench.clock.now_ms());
    bench
}

fn apply(bench: &Bench, schedules: Vec<Definition>) {
    let workflow = Workflow { name: "report".to_owned(), schedules, ..graph(vec![vec![]]) };
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

/// Fires everything that is due, like a scheduler. Returns the hours of all runs so far, in their order, and their sources.
fn fire(bench: &Bench) -> Vec<(i64, RunSource)> {
    for _round in 0..1_000 {
        let due = bench.store.for_scheduler().schedules_to_fire(100, &[]).unwrap();
        let fired: Vec<Fired> =
            due.into_iter().map(|id| bench.store.for_scheduler().fire(id).unwrap()).collect();
        if !fired.iter().any(|fired| fired.again) {
            break;
        }
    }
    bench.assert_sound();
    let mut runs = bench.store.runs().list(&RunFilter::newest(10_000)).unwrap().rows;
    runs.sort_by_key(|run| run.id);
    let hour = |at_ms: i64| (at_ms - BEGIN_MS) / HOUR_MS;
    runs.iter().map(|run| (run.scheduled_for.map_or(-99, hour), run.source.unwrap())).collect()
}

fn hours(bench: &Bench) -> Vec<i64> {
    fire(bench).into_iter().map(|(hour, _source)| hour).collect()
}

#[test]
fn a_new_schedule_with_a_start_runs_its_past_if_everything_is_caught_up() {
    let bench = bench();
    apply(&bench, vec![since(3, Catchup::All)]);
    let past = [(-3, RunSource::Catchup), (-2, RunSource::Catchup), (-1, RunSource::Catchup)];
    let now = [(0, RunSource::Schedule)];
    assert_eq!(fire(&bench), [&past[..], &now].concat());
    bench.clock.advance_ms(HOUR_MS);
    assert_eq!(hours(&bench), [-3, -2, -1, 0, 1]);
    apply(&bench, vec![since(3, Catchup::All)]);
    apply(&bench, vec![since(9, Catchup::All)]);
    assert_eq!(hours(&bench), [-3, -2, -1, 0, 1], "only a new schedule has a past");
    apply(&bench, vec![]);
    bench.clock.advance_ms(2 * HOUR_MS);
    apply(&bench, vec![since(9, Catchup::All)]);
    assert_eq!(hours(&bench), [-3, -2, -1, 0, 1], "and one that is added again has none");
}

#[test]
fn the_past_of_a_schedule_has_the_limits_of_missed_occurrences() {
    for (definition, expected) in [
        (since(6, Catchup::Last), vec![]),
        (since(6, Catchup::None), vec![]),
        (Definition { start_ms: None, ..since(6, Catchup::All) }, vec![]),
        (Definition { catchup_max: 2, ..since(6, Catchup::All) }, vec![-2, -1, 0]),
        (Definition { catchup_window_ms: Some(3 * HOUR_MS), ..since(6, Catchup::All) }, vec![-3, -2, -1, 0]),
        (Definition { end_ms: Some(BEGIN_MS - 4 * HOUR_MS), ..since(6, Catchup::All) }, vec![-6, -5]),
        (since(-2, Catchup::All), vec![]),
    ] {
        let bench = bench();
        apply(&bench, vec![definition.clone()]);
        assert_eq!(hours(&bench), expected, "{definition:?}");
    }
    let bench = bench();
    apply(&bench, vec![Definition { catchup_max: 2, ..since(5, Catchup::All) }]);
    fire(&bench);
    let id = bench.store.schedules().list().unwrap()[0].id;
    let skipped = bench.store.schedules().occurrences(id, OccurrenceStatus::Skipped, 100).unwrap();
    assert_eq!(skipped.len(), 3, "those that are too many are recorded");
}

#[test]
fn the_past_of_a_new_schedule_is_not_late() {
    let bench = bench();
    let target = NewTarget {
        name: "ops".to_owned(),
        events: vec![NotificationEvent::ScheduleLate],
        workflows: Vec::new(),
        tags: Vec::new(),
    };
    bench.store.notifications().set_targets(bench.worker(), &[target]).unwrap();
    apply(&bench, vec![since(3, Catchup::All)]);
    assert_eq!(bench.store.for_scheduler().mark_late_schedules().unwrap(), 0);
    fire(&bench);
    bench.clock.advance_ms(2 * HOUR_MS);
    assert_eq!(bench.store.for_scheduler().mark_late_schedules().unwrap(), 1, "from now on it is");
}

#[test]
fn a_past_that_is_longer_than_one_plan_begins_with_its_first_occurrence() {
    let bench = bench();
    apply(&bench, vec![Definition { catchup_max: 100_000, ..since(12_000, Catchup::All) }]);
    let mut started = Vec::new();
    for _round in 0..4 {
        let due = bench.store.for_scheduler().schedules_to_fire(100, &[]).unwrap();
        started.extend(bench.store.for_scheduler().fire(due[0]).unwrap().started);
    }
    let hours: Vec<i64> = bench.raw().rows("SELECT scheduled_for FROM runs ORDER BY id", |row| row.get(0));
    let expected = (0..hours.len() as i64).map(|index| BEGIN_MS + (index - 12_000) * HOUR_MS);
    assert!(hours.len() >= 100 && hours.len() == started.len(), "{}", hours.len());
    assert_eq!(hours, expected.collect::<Vec<i64>>());
    bench.assert_sound();
}

#[test]
fn a_schedule_with_one_instant_has_one_run_whatever_is_registered_again() {
    let bench = bench();
    apply(&bench, vec![once(2)]);
    assert_eq!(hours(&bench), Vec::<i64>::new());
    assert_eq!(bench.store.for_scheduler().next_firing(&[]).unwrap(), Some(BEGIN_MS + 2 * HOUR_MS));
    bench.clock.advance_ms(2 * HOUR_MS);
    assert_eq!(fire(&bench), [(2, RunSource::Schedule)]);
    assert_eq!(bench.store.for_scheduler().next_firing(&[]).unwrap(), None, "it is over");
    apply(&bench, vec![once(2)]);
    apply(&bench, vec![]);
    apply(&bench, vec![once(2)]);
    bench.clock.advance_ms(HOUR_MS);
    assert_eq!(hours(&bench), [2], "it has run");
    apply(&bench, vec![once(5)]);
    bench.clock.advance_ms(9 * HOUR_MS);
    assert_eq!(
        fire(&bench),
        [(2, RunSource::Schedule), (5, RunSource::Catchup)],
        "a new instant, and no service"
    );
    apply(&bench, vec![once(11)]);
    bench.clock.advance_ms(HOUR_MS);
    assert_eq!(hours(&bench), [2, 5], "it was over when it was registered");
}
