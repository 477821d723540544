//! Backfills next to a schedule's own runs: each has its own limit, and no occurrence gets two runs.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, success};
use windlass_engine::store::{Backfill, NewRegistration, OccurrenceStatus, RunFilter};
use windlass_engine::{RunSource, WorkerStatus};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule as Definition};

const HOUR_MS: i64 = 3_600_000;

/// An hourly schedule without a start, an end or jitter.
fn hourly(overlap: Overlap) -> Definition {
    Definition {
        name: "hourly".to_owned(),
        rule: Rule::EveryMs(HOUR_MS),
        timezone: "UTC".to_owned(),
        overlap,
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 100,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: serde_json::Map::new(),
    }
}

fn apply(bench: &Bench, schedules: Vec<Definition>) {
    let workflow = Workflow { schedules, ..graph(vec![vec![]]) };
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

fn bench_with(overlap: Overlap) -> (Bench, i64) {
    let bench = Bench::new();
    bench.clock.advance_ms(10 * HOUR_MS - bench.clock.now_ms());
    apply(&bench, vec![hourly(overlap)]);
    let id = bench.store.schedules().list().unwrap()[0].id;
    (bench, id)
}

fn fire(bench: &Bench) {
    for _round in 0..100 {
        let due = bench.store.for_scheduler().schedules_to_fire(100, &[]).unwrap();
        if !due.into_iter().any(|id| bench.store.for_scheduler().fire(id).unwrap().again) {
            return;
        }
    }
    panic!("firing does not end");
}

/// Nominal hours and sources of the runs, in the order of the runs.
fn runs(bench: &Bench) -> Vec<(i64, RunSource)> {
    let mut runs = bench.store.runs().list(&RunFilter { limit: 1_000, ..RunFilter::default() }).unwrap();
    runs.sort_by_key(|run| run.id);
    runs.iter().map(|run| (run.scheduled_for.unwrap() / HOUR_MS, run.source.unwrap())).collect()
}

fn waiting(bench: &Bench, id: i64) -> Vec<i64> {
    let waiting = bench.store.schedules().occurrences(id, OccurrenceStatus::Waiting, 100).unwrap();
    waiting.iter().map(|occurrence| occurrence.scheduled_for / HOUR_MS).collect()
}

/// Returns how many occurrences were added, had a run, and were waiting already.
fn backfill(bench: &Bench, schedule_id: i64, from: i64, to: i64, at_once: i64) -> (i64, i64, i64) {
    if from > to {
        return (0, 0, 0);
    }
    let backfill = Backfill { schedule_id, from_ms: from * HOUR_MS, to_ms: to * HOUR_MS, at_once };
    let preview = bench.store.schedules().preview_backfill(backfill).unwrap();
    let done = bench.store.schedules().backfill(backfill).unwrap();
    assert_eq!(preview, done);
    (done.added, done.with_run, done.waiting)
}

#[test]
fn a_backfill_includes_both_ends_of_its_range() {
    let (bench, id) = bench_with(Overlap::Skip);
    assert_eq!(backfill(&bench, id, 8, 10, 5), (3, 0, 0), "the last occurrence is now");
    fire(&bench);
    assert_eq!(runs(&bench), [8, 9, 10].map(|hour| (hour, RunSource::Backfill)));
    assert_eq!(backfill(&bench, id, 7, 10, 5), (1, 3, 0), "an occurrence with a run gets no other run");
    assert_eq!(waiting(&bench, id), [7]);
    assert_eq!(backfill(&bench, id, 7, 10, 5), (0, 3, 1), "a waiting occurrence is not added again");
    bench.assert_sound();
}

/// Neither the runs nor the waiting occurrences of a backfill keep the schedule from starting runs, or the other way
/// round.
#[test]
fn a_backfill_and_the_schedule_do_not_wait_for_each_other() {
    let (bench, id) = bench_with(Overlap::Skip);
    assert_eq!(backfill(&bench, id, 6, 9, 2), (4, 0, 0));
    fire(&bench);
    assert_eq!(runs(&bench), [6, 7].map(|hour| (hour, RunSource::Backfill)), "two runs at once");
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench);
    assert_eq!(runs(&bench)[2..], [(11, RunSource::Schedule)]);
    assert_eq!(waiting(&bench, id), [8, 9], "pending runs count too");
    let worker = bench.worker();
    let first = bench.claim(worker, 1).remove(0);
    bench.finish(worker, &first, success());
    fire(&bench);
    assert_eq!(runs(&bench)[3..], [(8, RunSource::Backfill)]);
    bench.store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap();
    bench.assert_sound();
}

/// The schedule would skip this occurrence, but a backfill has asked for it.
#[test]
fn an_occurrence_of_a_backfill_is_not_skipped() {
    for others in [0, 1] {
        let (bench, id) = bench_with(Overlap::QueueOne);
        bench.clock.advance_ms(HOUR_MS);
        // As many runs as may be unfinished, or none.
        assert_eq!(backfill(&bench, id, 10 - others, 9, 1).0, others);
        fire(&bench);
        assert_eq!(runs(&bench).len() as i64, 1 + others);
        bench.clock.advance_ms(HOUR_MS);
        assert_eq!(backfill(&bench, id, 12, 12, 1), (1, 0, 0));
        bench.clock.advance_ms(HOUR_MS);
        fire(&bench);
        let expected = if others == 0 { vec![13] } else { vec![12, 13] };
        assert_eq!(waiting(&bench, id), expected, "13 waits in the place of 12");
        bench.assert_sound();
        let worker = bench.worker();
        for _run in 0..3 {
            for job in bench.claim(worker, 10) {
                bench.finish(worker, &job, success());
            }
            fire(&bench);
        }
        let of_12: Vec<_> = runs(&bench).into_iter().filter(|(hour, _source)| *hour == 12).collect();
        assert_eq!(of_12, [(12, RunSource::Backfill)]);
        bench.assert_sound();
    }
}

#[test]
fn removing_a_schedule_deletes_its_waiting_occurrences_and_its_pause() {
    let (bench, id) = bench_with(Overlap::Skip);
    assert_eq!(backfill(&bench, id, 1, 5, 1), (5, 0, 0));
    bench.store.schedules().pause(id).unwrap();
    apply(&bench, vec![]);
    assert_eq!(waiting(&bench, id), [0_i64; 0]);
    apply(&bench, vec![hourly(Overlap::Skip)]);
    let schedule = bench.store.schedules().list().unwrap().remove(0);
    assert_eq!((schedule.id, schedule.is_active()), (id, true), "it is like a new schedule");
    bench.clock.advance_ms(HOUR_MS);
    fire(&bench);
    assert_eq!(runs(&bench), [(11, RunSource::Schedule)]);
}
