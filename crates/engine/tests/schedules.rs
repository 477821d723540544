//! Firing schedules: each occurrence has one run, in spite of clock changes, pauses and other schedulers.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use support::{Bench, graph, open, success};
use windlass_engine::store::{
    Backfill, Fired, NewRegistration, OccurrenceStatus, RunFilter, Schedule, ScheduleChange, Urgency,
};
use windlass_engine::{Error, Random, RunSource, RunStatus, Store};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};
use windlass_workflow::{Param, ParamKind, Workflow};

const HOUR_MS: i64 = 3_600_000;
const NONE: [i64; 0] = [];
/// When the tests begin: at a full hour.
const BEGIN_MS: i64 = 500_000 * HOUR_MS;

/// A schedule that occurs every hour, allows overlapping runs, and catches up everything.
fn hourly() -> Definition {
    Definition {
        name: "hourly".to_owned(),
        rule: Rule::EveryMs(HOUR_MS),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Allow,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 1_000,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

fn workflow(schedules: Vec<Definition>) -> Workflow {
    Workflow { name: "report".to_owned(), schedules, ..graph(vec![vec![]]) }
}

fn apply(bench: &Bench, schedules: Vec<Definition>) -> Vec<(String, ScheduleChange)> {
    let new = NewRegistration { workflow: workflow(schedules), file: None, dir: None };
    let applied = bench.store.registrations().apply(new).unwrap();
    applied.schedules.into_iter().map(|synced| (synced.name, synced.change)).collect()
}

/// A database with one schedule, an hour before its first occurrence. Returns the schedule's id too.
fn bench_with(definition: Definition) -> (Bench, i64) {
    let bench = Bench::new();
    bench.clock.advance_ms(BEGIN_MS - bench.clock.now_ms());
    apply(&bench, vec![definition]);
    let id = the_schedule(&bench).id;
    (bench, id)
}

fn the_schedule(bench: &Bench) -> Schedule {
    bench.store.schedules().list().unwrap().pop().unwrap()
}

/// Fires everything that is due, like a scheduler.
fn fire(store: &Store) -> Vec<Fired> {
    let mut all = Vec::new();
    for _round in 0..1_000 {
        let fired: Vec<Fired> = store
            .for_scheduler()
            .schedules_to_fire(100, &[])
            .unwrap()
            .into_iter()
            .map(|id| store.for_scheduler().fire(id).unwrap())
            .collect();
        let again = fired.iter().any(|fired| fired.again);
        all.extend(fired);
        if !again {
            return all;
        }
    }
    panic!("firing does not end");
}

/// Nominal times of the runs in hours since the beginning, and their sources, in the order of the runs.
fn runs(bench: &Bench) -> Vec<(i64, RunSource)> {
    let mut runs = bench.store.runs().list(&RunFilter::newest(10_000)).unwrap().rows;
    runs.sort_by_key(|run| run.id);
    let hour = |at_ms: i64| (at_ms - BEGIN_MS) / HOUR_MS;
    runs.iter().map(|run| (run.scheduled_for.map_or(-1, hour), run.source.unwrap())).collect()
}

fn hours(bench: &Bench) -> Vec<i64> {
    runs(bench).into_iter().map(|(hour, _source)| hour).collect()
}

/// Nominal hours of the waiting or skipped occurrences.
fn occurrences(bench: &Bench, status: OccurrenceStatus) -> Vec<i64> {
    let found = bench.store.schedules().occurrences(the_schedule(bench).id, status, 1_000).unwrap();
    found.iter().map(|occurrence| (occurrence.scheduled_for - BEGIN_MS) / HOUR_MS).collect()
}

/// Finishes the jobs of all unfinished runs.
fn end_all(bench: &Bench) {
    let worker = bench.worker();
    loop {
        let jobs = bench.claim(worker, 100);
        if jobs.is_empty() {
            return;
        }
        for job in jobs {
            bench.finish(worker, &job, success());
        }
    }
}

#[test]
fn an_occurrence_has_one_run_and_names_it() {
    let (bench, id) = bench_with(hourly());
    assert_eq!(fire(&bench.store), [], "nothing is due");
    assert_eq!(bench.store.for_scheduler().next_firing(&[]).unwrap(), Some(BEGIN_MS + HOUR_MS));
    bench.clock.advance_ms(HOUR_MS);
    let fired = fire(&bench.store);
    assert_eq!(fired[0].started.len(), 1);
    assert_eq!(fire(&bench.store), []);
    let run = bench.store.runs().get(fired[0].started[0].0).unwrap();
    assert_eq!(
        (run.workflow.as_str(), run.schedule_id, run.scheduled_for, run.source),
        ("report", Some(id), Some(BEGIN_MS + HOUR_MS), Some(RunSource::Schedule))
    );
    assert_eq!(bench.store.for_scheduler().next_firing(&[]).unwrap(), Some(BEGIN_MS + 2 * HOUR_MS));
    bench.assert_sound();
}

#[test]
fn missed_occurrences_are_caught_up_as_the_schedule_says() {
    let cases = [
        (Catchup::None, None, 1_000, vec![5]),
        (Catchup::Last, None, 1_000, vec![4, 5]),
        (Catchup::All, None, 1_000, vec![1, 2, 3, 4, 5]),
        (Catchup::All, None, 2, vec![3, 4, 5]),
        (Catchup::All, Some(2 * HOUR_MS), 1_000, vec![3, 4, 5]),
        (Catchup::Last, Some(HOUR_MS / 2), 1_000, vec![5]),
    ];
    for (catchup, catchup_window_ms, catchup_max, expected) in cases {
        let (bench, _id) = bench_with(Definition { catchup, catchup_window_ms, catchup_max, ..hourly() });
        bench.clock.advance_ms(5 * HOUR_MS);
        let fired = fire(&bench.store);
        let name = format!("{catchup:?} {catchup_window_ms:?} {catchup_max}");
        assert_eq!(hours(&bench), expected, "{name}");
        let missed = 5 - expected.len();
        assert_eq!(fired.iter().map(|fired| fired.missed).sum::<usize>(), missed, "{name}");
        let noted: Vec<i64> = (1..5).rev().filter(|hour| !expected.contains(hour)).collect();
        assert_eq!(occurrences(&bench, OccurrenceStatus::Skipped), noted, "{name}");
        let sources: Vec<RunSource> = runs(&bench).into_iter().map(|(_hour, source)| source).collect();
        let (last, earlier) = sources.split_last().unwrap();
        assert_eq!(*last, RunSource::Schedule, "{name}");
        assert!(earlier.iter().all(|source| *source == RunSource::Catchup), "{name}");
        bench.assert_sound();
    }
}

#[test]
fn clock_steps_neither_repeat_nor_lose_occurrences() {
    let (bench, _id) = bench_with(hourly());
    for by_ms in [HOUR_MS, 5 * HOUR_MS, -3 * HOUR_MS, 2 * HOUR_MS, -20 * HOUR_MS, 22 * HOUR_MS, HOUR_MS] {
        bench.clock.advance_ms(by_ms);
        fire(&bench.store);
        let next_at = bench.store.for_scheduler().next_firing(&[]).unwrap().unwrap();
        assert!(next_at > bench.clock.now_ms(), "a clock that was set back makes nothing due");
    }
    assert_eq!(hours(&bench), [1, 2, 3, 4, 5, 6, 7, 8]);
    bench.assert_sound();
}

#[test]
fn many_schedulers_on_one_database_fire_each_occurrence_once() {
    let (bench, _id) = bench_with(Definition { rule: Rule::EveryMs(1_000), ..hourly() });
    let (schedulers, rounds) = (6, 40);
    let barrier = Arc::new(Barrier::new(schedulers + 1));
    let threads: Vec<_> = (0..schedulers)
        .map(|seed| {
            let database = open(&bench.database, &bench.clock);
            let store = Store::new(database, bench.clock.clone(), Random::from_seed(seed as u64));
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let mut started = 0;
                for _round in 0..rounds {
                    barrier.wait();
                    while store
                        .for_scheduler()
                        .next_firing(&[])
                        .unwrap()
                        .is_some_and(|at| at <= store.clock().now_ms())
                    {
                        started += fire(&store).iter().map(|fired| fired.started.len()).sum::<usize>();
                    }
                    barrier.wait();
                }
                started
            })
        })
        .collect();
    for round in 0..rounds {
        bench.clock.advance_ms(if round % 5 == 4 { 30_000 } else { 1_000 });
        barrier.wait();
        barrier.wait();
    }
    let started: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let seconds = usize::try_from((bench.clock.now_ms() - BEGIN_MS) / 1_000).unwrap();
    let mut times: Vec<i64> = bench
        .store
        .runs()
        .list(&RunFilter::newest(10_000))
        .unwrap()
        .rows
        .iter()
        .map(|run| (run.scheduled_for.unwrap() - BEGIN_MS) / 1_000)
        .collect();
    times.sort_unstable();
    assert_eq!(
        times,
        (1..=seconds as i64).collect::<Vec<i64>>(),
        "each occurrence once, and none is missing"
    );
    assert_eq!(started, seconds);
    bench.assert_sound();
}

#[test]
fn occurrences_in_a_pause_are_not_caught_up() {
    let (bench, id) = bench_with(hourly());
    assert!(bench.store.schedules().pause(id).unwrap());
    assert!(!bench.store.schedules().pause(id).unwrap(), "it is paused already");
    bench.clock.advance_ms(3 * HOUR_MS);
    assert_eq!((fire(&bench.store), bench.store.for_scheduler().next_firing(&[]).unwrap()), (vec![], None));
    assert!(bench.store.schedules().resume(id).unwrap());
    assert!(!bench.store.schedules().resume(id).unwrap());
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench.store);
    assert_eq!(hours(&bench), [4]);

    bench.store.registrations().pause("report").unwrap();
    bench.clock.advance_ms(3 * HOUR_MS);
    assert_eq!((fire(&bench.store), bench.store.for_scheduler().next_firing(&[]).unwrap()), (vec![], None));
    bench.store.registrations().resume("report").unwrap();
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench.store);
    assert_eq!(hours(&bench), [4, 8]);

    bench.store.registrations().remove("report").unwrap();
    bench.clock.advance_ms(3 * HOUR_MS);
    assert_eq!((fire(&bench.store), bench.store.for_scheduler().next_firing(&[]).unwrap()), (vec![], None));
    assert_eq!(apply(&bench, vec![hourly()]), [("hourly".to_owned(), ScheduleChange::Added)]);
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench.store);
    assert_eq!(hours(&bench), [4, 8, 12], "it was added again under its name");
    bench.assert_sound();
}

#[test]
fn a_schedule_added_again_after_the_clock_was_set_back_repeats_nothing() {
    let (bench, id) = bench_with(hourly());
    bench.clock.advance_ms(3 * HOUR_MS);
    fire(&bench.store);
    bench.store.schedules().remove(id).unwrap();
    bench.clock.advance_ms(-2 * HOUR_MS);
    apply(&bench, vec![hourly()]);
    bench.store.schedules().pause(id).unwrap();
    bench.store.schedules().resume(id).unwrap();
    bench.clock.advance_ms(2 * HOUR_MS);
    assert_eq!(fire(&bench.store), []);
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench.store);
    assert_eq!(hours(&bench), [1, 2, 3, 4]);
}

#[test]
fn a_new_rule_applies_from_now_and_loses_no_old_occurrence() {
    let (bench, _id) = bench_with(hourly());
    bench.clock.advance_ms(2 * HOUR_MS + HOUR_MS / 2);
    let changed = Definition { rule: Rule::EveryMs(HOUR_MS / 4), ..hourly() };
    assert_eq!(apply(&bench, vec![changed.clone()]), [("hourly".to_owned(), ScheduleChange::Changed)]);
    assert_eq!(apply(&bench, vec![changed.clone()]), []);
    fire(&bench.store);
    assert_eq!(hours(&bench), [1, 2], "due by the old rule");
    bench.clock.advance_ms(HOUR_MS / 4);
    fire(&bench.store);
    assert_eq!(bench.store.for_scheduler().next_firing(&[]).unwrap(), Some(BEGIN_MS + 3 * HOUR_MS));
    assert_eq!(runs(&bench).len(), 3);
    // Changes that do not concern the times do not move the cursor.
    bench.clock.advance_ms(HOUR_MS / 2);
    apply(&bench, vec![Definition { overlap: Overlap::QueueAll, ..changed }]);
    fire(&bench.store);
    assert_eq!(runs(&bench).len() + occurrences(&bench, OccurrenceStatus::Waiting).len(), 5);
    assert_eq!(apply(&bench, vec![]), [("hourly".to_owned(), ScheduleChange::Removed)]);
    bench.clock.advance_ms(HOUR_MS);
    assert_eq!((fire(&bench.store), bench.store.for_scheduler().next_firing(&[]).unwrap()), (vec![], None));
    bench.assert_sound();
}

/// Three occurrences during one run. (overlap, runs started, occurrences waiting, occurrences skipped, runs in the
/// end)
#[test]
fn each_overlap_rule_with_real_runs() {
    let cases = [
        (Overlap::Skip, vec![1], vec![], vec![3, 2], vec![1]),
        (Overlap::QueueOne, vec![1], vec![3], vec![2], vec![1, 3]),
        (Overlap::QueueAll, vec![1], vec![2, 3], vec![], vec![1, 2, 3]),
        (Overlap::Allow, vec![1, 2, 3], vec![], vec![], vec![1, 2, 3]),
        (Overlap::CancelRunning, vec![1], vec![3], vec![2], vec![1, 3]),
        (Overlap::TerminateRunning, vec![1], vec![3], vec![2], vec![1, 3]),
    ];
    for (overlap, began, waiting, skipped, in_the_end) in cases {
        let (bench, _id) = bench_with(Definition { overlap, ..hourly() });
        let worker = bench.worker();
        let mut running = Vec::new();
        for _occurrence in 0..3 {
            bench.clock.advance_ms(HOUR_MS);
            fire(&bench.store);
            running.extend(bench.claim(worker, 10));
        }
        assert_eq!(hours(&bench), began, "{overlap:?}");
        assert_eq!(occurrences(&bench, OccurrenceStatus::Waiting), waiting, "{overlap:?}");
        assert_eq!(occurrences(&bench, OccurrenceStatus::Skipped), skipped, "{overlap:?}");
        let asked = bench.store.for_workers().cancel_requests(worker).unwrap();
        let urgencies: Vec<Urgency> = asked.into_iter().map(|(_job_id, urgency)| urgency).collect();
        let expected = match overlap {
            Overlap::CancelRunning => vec![Urgency::WithGrace],
            Overlap::TerminateRunning => vec![Urgency::AtOnce],
            Overlap::Skip | Overlap::QueueOne | Overlap::QueueAll | Overlap::Allow => vec![],
        };
        assert_eq!(urgencies, expected, "{overlap:?}");
        let listener = bench.store.listen(WakeUps::DUE);
        for job in running {
            bench.finish(worker, &job, success());
        }
        let heard = listener.wait(Duration::from_secs(10));
        assert!(heard.intersects(WakeUps::DUE), "{overlap:?}: the end of a run wakes the scheduler");
        for _run in 0..3 {
            fire(&bench.store);
            end_all(&bench);
        }
        assert_eq!(hours(&bench), in_the_end, "{overlap:?}");
        assert_eq!(occurrences(&bench, OccurrenceStatus::Waiting), NONE, "{overlap:?}");
        bench.assert_sound();
    }
}

#[test]
fn a_pending_run_is_cancelled_at_once_for_the_next() {
    let (bench, _id) = bench_with(Definition { overlap: Overlap::CancelRunning, ..hourly() });
    for _occurrence in 0..3 {
        bench.clock.advance_ms(HOUR_MS);
        fire(&bench.store);
    }
    assert_eq!(hours(&bench), [1, 2, 3]);
    let states: Vec<RunStatus> =
        (1..=3).map(|run_id| bench.store.runs().get(run_id).unwrap().status).collect();
    assert_eq!(states, [RunStatus::Cancelled, RunStatus::Cancelled, RunStatus::Pending]);
}

#[test]
fn many_missed_occurrences_are_started_in_batches() {
    let every_second = Definition { rule: Rule::EveryMs(1_000), catchup_max: 20_000, ..hourly() };
    let (bench, id) = bench_with(Definition { overlap: Overlap::QueueAll, ..every_second.clone() });
    bench.clock.advance_ms(25_000 * 1_000);
    let fired = fire(&bench.store);
    // Occurrences that are on time do not count against catchup_max.
    assert_eq!(bench.store.schedules().waiting_occurrences(id).unwrap(), 20_000 + 11 - 1);
    assert_eq!(fired.iter().map(|fired| fired.missed).sum::<usize>(), 5_000 - 11);
    assert_eq!(occurrences(&bench, OccurrenceStatus::Skipped).len(), 100, "the newest ones are recorded");
    let (bench, _id) = bench_with(every_second);
    bench.clock.advance_ms(350 * 1_000);
    let portions: Vec<usize> = fire(&bench.store).iter().map(|fired| fired.started.len()).collect();
    assert_eq!(portions, [100, 100, 100, 50]);
}

#[test]
fn the_number_of_waiting_occurrences_is_limited() {
    let every_second = Definition { rule: Rule::EveryMs(1_000), overlap: Overlap::QueueAll, ..hourly() };
    let (bench, schedule_id) = bench_with(every_second);
    bench.clock.advance_ms(1_000);
    fire(&bench.store);
    let range = |seconds: i64| Backfill {
        schedule_id,
        from_ms: BEGIN_MS - seconds * 1_000,
        to_ms: BEGIN_MS,
        at_once: 1,
    };
    let refused = bench.store.schedules().backfill(range(100_000)).unwrap_err();
    assert!(matches!(&refused, Error::Invalid { reason, .. } if reason.contains("100000")), "{refused}");
    assert_eq!(bench.store.schedules().backfill(range(99_999)).unwrap().added, 100_000);
    let earlier =
        Backfill { from_ms: BEGIN_MS - 2 * HOUR_MS * 24, to_ms: BEGIN_MS - HOUR_MS * 47, ..range(1) };
    let refused = bench.store.schedules().backfill(earlier).unwrap_err();
    assert!(matches!(&refused, Error::Conflict { reason, .. } if reason.contains("100000")), "{refused}");
    bench.clock.advance_ms(1_000);
    let skipped: Vec<(i64, String)> =
        fire(&bench.store).into_iter().flat_map(|fired| fired.skipped).collect();
    assert_eq!(skipped[0].0, BEGIN_MS + 2_000);
    assert!(skipped[0].1.contains("100000 occurrences of the schedule wait already"), "{skipped:?}");
}

#[test]
fn jitter_delays_the_start() {
    let (bench, _id) = bench_with(Definition { jitter_ms: HOUR_MS / 2, ..hourly() });
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench.store);
    assert_eq!((hours(&bench), occurrences(&bench, OccurrenceStatus::Waiting)), (vec![], vec![1]));
    let start_after = bench.store.for_scheduler().next_firing(&[]).unwrap().unwrap();
    assert!((1..=HOUR_MS / 2).contains(&(start_after - bench.clock.now_ms())), "{start_after}");
    bench.clock.advance_ms(start_after - bench.clock.now_ms() - 1);
    fire(&bench.store);
    assert_eq!(hours(&bench), NONE);
    bench.clock.advance_ms(1);
    fire(&bench.store);
    assert_eq!(runs(&bench), [(1, RunSource::Schedule)]);
    assert_eq!(occurrences(&bench, OccurrenceStatus::Waiting), NONE);
}

#[test]
fn invalid_parameters_skip_only_their_occurrence() {
    let (bench, id) = bench_with(hourly());
    let params = [("day".to_owned(), "{{ scheduled_for }}".into())].into_iter().collect();
    let definition = Definition { name: "unfit".to_owned(), params, ..hourly() };
    let refused = bench.store.schedules().add("report", definition.clone()).unwrap_err();
    assert!(matches!(&refused, Error::Invalid { reason, .. } if reason.contains("`day`")), "{refused}");
    // The parameters were valid when the schedule was added, but the workflow has lost its parameter since.
    let day = Param {
        name: "day".to_owned(),
        kind: ParamKind::String,
        description: None,
        default: None,
        required: false,
        choices: Vec::new(),
    };
    let with_day = Workflow { params: vec![day], ..workflow(vec![hourly()]) };
    bench.store.registrations().apply(NewRegistration { workflow: with_day, file: None, dir: None }).unwrap();
    bench.store.schedules().add("report", definition).unwrap();
    apply(&bench, vec![hourly()]);
    bench.clock.advance_ms(HOUR_MS);
    let fired = fire(&bench.store);
    assert_eq!(hours(&bench), [1], "of the other schedule");
    let skipped: Vec<&(i64, String)> = fired.iter().flat_map(|fired| &fired.skipped).collect();
    assert!(skipped[0].1.contains("parameters are invalid"), "{skipped:?}");
    let unfit =
        bench.store.schedules().list().unwrap().into_iter().find(|schedule| schedule.id != id).unwrap();
    let noted = bench.store.schedules().occurrences(unfit.id, OccurrenceStatus::Skipped, 10).unwrap();
    assert_eq!(noted[0].reason.as_ref(), Some(&skipped[0].1));
    assert_eq!(fire(&bench.store), []);
    bench.assert_sound();
}

#[test]
fn a_trigger_ignores_the_rule_and_other_runs() {
    let (bench, id) = bench_with(Definition { overlap: Overlap::Skip, ..hourly() });
    bench.store.schedules().pause(id).unwrap();
    let first = bench.store.schedules().fire(id).unwrap();
    let second = bench.store.schedules().fire(id).unwrap();
    assert!(first.created && second.created && first.run_id != second.run_id);
    let run = bench.store.runs().get(first.run_id).unwrap();
    assert_eq!((run.schedule_id, run.scheduled_for), (Some(id), None));
    assert_eq!(run.source, Some(RunSource::Manual));
    bench.store.schedules().resume(id).unwrap();
    bench.clock.advance_ms(HOUR_MS);
    let fired = fire(&bench.store);
    assert!(fired[0].skipped[0].1.contains("run 1 was not finished"), "{fired:?}");
}

#[test]
fn schedules_are_added_and_removed_on_the_command_line() {
    let (bench, _id) = bench_with(hourly());
    let daily = Definition { name: "daily".to_owned(), rule: Rule::EveryMs(24 * HOUR_MS), ..hourly() };
    let nowhere = bench.store.schedules().add("nowhere", daily.clone()).unwrap_err();
    assert!(matches!(nowhere, Error::NotFound { .. }), "{nowhere}");
    let added = bench.store.schedules().add("report", daily.clone()).unwrap();
    assert_eq!(added.key(), "report/daily");
    for taken in [daily.clone(), hourly()] {
        let refused = bench.store.schedules().add("report", taken).unwrap_err();
        assert!(matches!(refused, Error::Conflict { .. }), "{refused}");
    }
    assert_eq!(apply(&bench, vec![hourly()]), [], "it is not in the file");
    assert_eq!(bench.store.schedules().list().unwrap().len(), 2);
    bench.store.schedules().remove(added.id).unwrap();
    let gone = bench.store.schedules().remove(added.id).unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    assert_eq!(bench.store.schedules().add("report", daily).unwrap().id, added.id, "the same row");
}

#[test]
fn occurrences_missed_while_a_workflow_was_removed_are_not_caught_up() {
    let (bench, _id) = bench_with(Definition { name: "other".to_owned(), ..hourly() });
    bench.store.schedules().add("report", hourly()).unwrap();
    bench.store.registrations().remove("report").unwrap();
    bench.clock.advance_ms(5 * HOUR_MS);
    let rule = Rule::EveryMs(2 * HOUR_MS);
    let expected = [("hourly".to_owned(), ScheduleChange::Changed)];
    assert_eq!(apply(&bench, vec![Definition { rule, ..hourly() }]), expected);
    fire(&bench.store);
    assert_eq!(hours(&bench), NONE);
    bench.assert_sound();
}

#[test]
fn a_schedule_of_a_removed_workflow_is_not_late() {
    let (bench, _id) = bench_with(hourly());
    bench.store.schedules().add("report", Definition { name: "more".to_owned(), ..hourly() }).unwrap();
    let health = |bench: &Bench| {
        let health = bench.store.upkeep().health().unwrap();
        (health.schedules, health.late_schedules.len())
    };
    assert_eq!(health(&bench), (2, 0));
    bench.clock.advance_ms(2 * HOUR_MS);
    assert_eq!(health(&bench), (2, 2));
    bench.store.registrations().pause("report").unwrap();
    assert_eq!(health(&bench), (0, 0), "it fires nothing");
    bench.store.registrations().remove("report").unwrap();
    assert_eq!(health(&bench), (0, 0), "a schedule of a removed workflow fires nothing");
}
