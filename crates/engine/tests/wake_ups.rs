//! Every transaction wakes the threads for which it makes work, so that none of them depends on polling.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::time::Duration;

use support::{Bench, failure, graph, noop, success};
use windlass_engine::store::{
    Backfill, NewJob, NewRegistration, Order, QueueLimits, Rate, RetrySelection, Setting,
};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Concurrency, OnFull, Overlap, Rule, Schedule};

/// A preparation, and an action that must wake somebody. There is a worker with id 1.
struct Case {
    what: &'static str,
    before: fn(&Bench),
    act: fn(&Bench),
    /// Listeners for any of these must wake.
    wakes: &'static [(&'static str, WakeUps)],
}

const CLAIMS: (&str, WakeUps) = ("a claiming worker", WakeUps::PENDING);
const TIME: (&str, WakeUps) = ("the scheduler", WakeUps::DUE);
const STOPS: (&str, WakeUps) = ("the cancellation poller", WakeUps::CANCEL);
const SHOWS: (&str, WakeUps) = ("the progress display", WakeUps::PROGRESS);

fn claim_one(bench: &Bench) {
    assert_eq!(bench.claim(1, 1).len(), 1);
}

/// Finishes the job that the worker is executing.
fn end(bench: &Bench, is_success: bool) {
    let running = bench.store.for_workers().claimed_by(1).unwrap();
    let finishes = running.into_iter().map(|(job_id, run_id, retry_state)| {
        let outcome = if is_success { success() } else { failure() };
        let transition = windlass_engine::transition::after_attempt(&retry_state, outcome, 0.5);
        let (attempt, worker_id, logs) = (retry_state.attempt, 1, Vec::new());
        windlass_engine::store::Finish {
            job_id,
            run_id,
            attempt,
            worker_id,
            transition,
            exit_code: None,
            logs,
            artifacts: Vec::new(),
            variables: Vec::new(),
        }
    });
    let finished = bench.store.for_workers().finish_and_claim(finishes.collect(), None).unwrap().0;
    assert!(finished.conflicts.is_empty());
}

fn limit(bench: &Bench, limits: QueueLimits) {
    bench.store.queues().limit("default", limits).unwrap();
}

fn by_arrival() -> QueueLimits {
    QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() }
}

fn keyed() -> NewJob {
    NewJob {
        concurrency: Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait }),
        ..noop()
    }
}

fn two_that_share_a_key(bench: &Bench) {
    bench.store.jobs().enqueue(vec![keyed(), keyed()]).unwrap();
    claim_one(bench);
}

/// Two jobs of a queue that runs one at a time.
fn two_in_a_line(bench: &Bench, limits: QueueLimits) {
    limit(bench, limits);
    bench.store.jobs().enqueue(vec![noop(), noop()]).unwrap();
    claim_one(bench);
}

fn later(bench: &Bench) -> NewJob {
    NewJob { execute_after: Some(bench.clock.now_ms() + 1_000), ..noop() }
}

fn one_start_a_minute(bench: &Bench) {
    let rate = Setting::Set(Rate { jobs: 1, interval_ms: 60_000 });
    limit(bench, QueueLimits { rate, ..QueueLimits::default() });
    bench.store.jobs().enqueue(vec![noop(), noop()]).unwrap();
}

fn register(bench: &Bench) {
    let schedule = Schedule {
        name: "hourly".to_owned(),
        rule: Rule::EveryMs(3_600_000),
        timezone: "UTC".to_owned(),
        overlap: Overlap::Skip,
        catchup: Catchup::Last,
        catchup_window_ms: None,
        catchup_max: 1,
        start_ms: None,
        end_ms: None,
        jitter_ms: 0,
        params: Default::default(),
    };
    let workflow = Workflow { schedules: vec![schedule], ..graph(vec![vec![]]) };
    bench.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
}

fn a_run_that_failed(bench: &Bench) {
    let mut workflow = graph(vec![vec![]]);
    workflow.jobs[0].retry.max_attempts = 1;
    bench.submit(workflow);
    claim_one(bench);
    end(bench, false);
}

const CASES: &[Case] = &[
    Case {
        what: "a job is enqueued",
        before: |_bench| (),
        act: |bench| drop(bench.enqueue(noop()).to_string()),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a job is enqueued for later",
        before: |_bench| (),
        act: |bench| drop(bench.enqueue(later(bench)).to_string()),
        wakes: &[TIME],
    },
    Case {
        what: "a run is submitted",
        before: |_bench| (),
        act: |bench| drop(bench.submit(graph(vec![vec![]])).to_string()),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a run with a timeout starts",
        before: |bench| {
            bench.submit(Workflow { timeout_ms: Some(1_000), ..graph(vec![vec![]]) });
        },
        act: claim_one,
        wakes: &[TIME, SHOWS],
    },
    Case {
        what: "a job ends, and its child is left pending",
        before: |bench| {
            bench.submit(graph(vec![vec![], vec![0]]));
            claim_one(bench);
        },
        act: |bench| end(bench, true),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a job that held the only slot of a key ends",
        before: two_that_share_a_key,
        act: |bench| end(bench, true),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a job that held the only slot of a key will be retried",
        before: two_that_share_a_key,
        act: |bench| end(bench, false),
        wakes: &[CLAIMS, TIME],
    },
    Case {
        what: "a worker whose job held the only slot of a key is dead",
        before: two_that_share_a_key,
        act: |bench| assert_eq!(bench.store.for_scheduler().rescue(vec![(1, 1)]).unwrap().jobs, 1),
        wakes: &[CLAIMS],
    },
    Case {
        what: "a job that held the only slot of a key is cancelled",
        before: |bench| drop(bench.store.jobs().enqueue(vec![keyed(), keyed()])),
        act: |bench| assert_eq!(bench.store.jobs().cancel(1).unwrap().cancelled, 1),
        wakes: &[TIME, SHOWS],
    },
    Case {
        what: "the slot of a cancelled job is given to the next job",
        before: |bench| {
            bench.store.jobs().enqueue(vec![keyed(), keyed()]).unwrap();
            bench.store.jobs().cancel(1).unwrap();
        },
        act: |bench| drop(bench.store.for_scheduler().admit_waiting("").unwrap()),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a job ends in a queue that keeps the order of arrival",
        before: |bench| two_in_a_line(bench, by_arrival()),
        act: |bench| end(bench, true),
        wakes: &[CLAIMS],
    },
    Case {
        what: "the current job of a queue that keeps the order of arrival is cancelled",
        before: |bench| {
            two_in_a_line(bench, by_arrival());
            end(bench, false);
        },
        act: |bench| assert_eq!(bench.store.jobs().cancel(1).unwrap().cancelled, 1),
        wakes: &[CLAIMS],
    },
    Case {
        what: "a job ends in a queue with a limit",
        before: |bench| {
            two_in_a_line(bench, QueueLimits { max_running: Setting::Set(1), ..QueueLimits::default() });
        },
        act: |bench| end(bench, true),
        wakes: &[CLAIMS],
    },
    Case {
        what: "a worker with a job of a queue with a limit is dead",
        before: |bench| {
            two_in_a_line(bench, QueueLimits { max_running: Setting::Set(1), ..QueueLimits::default() });
            bench.raw().execute("UPDATE jobs SET max_interruptions = 0");
        },
        act: |bench| assert_eq!(bench.store.for_scheduler().rescue(vec![(1, 1)]).unwrap().jobs, 1),
        wakes: &[CLAIMS],
    },
    Case {
        what: "a job starts in a queue with a rate",
        before: one_start_a_minute,
        act: claim_one,
        wakes: &[TIME],
    },
    // When a start expires, nothing is written. Each scheduler then wakes its own workers, which another test covers.
    Case {
        what: "a job becomes due",
        before: |bench| {
            bench.enqueue(later(bench));
            bench.clock.advance_ms(1_000);
        },
        act: |bench| assert_eq!(bench.store.for_scheduler().promote_due().unwrap().promoted, 1),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a run reaches its timeout",
        before: |bench| {
            bench.submit(Workflow { timeout_ms: Some(1_000), ..graph(vec![vec![]]) });
            claim_one(bench);
            bench.clock.advance_ms(1_000);
        },
        act: |bench| assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 1),
        wakes: &[STOPS],
    },
    Case {
        what: "a running job is cancelled",
        before: |bench| {
            bench.enqueue(noop());
            claim_one(bench);
        },
        act: |bench| assert_eq!(bench.store.jobs().cancel(1).unwrap().stopping, 1),
        wakes: &[STOPS],
    },
    Case {
        what: "a run with a running job is cancelled",
        before: |bench| {
            bench.submit(graph(vec![vec![]]));
            claim_one(bench);
        },
        act: |bench| assert_eq!(bench.store.runs().cancel(1).unwrap().stopping, 1),
        wakes: &[STOPS],
    },
    Case {
        what: "a run is retried",
        before: a_run_that_failed,
        act: |bench| assert_eq!(bench.store.runs().retry(1, RetrySelection::Failed).unwrap(), 1),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "an end is reported, and its child is left pending",
        before: |bench| {
            bench.submit(graph(vec![vec![], vec![0]]));
            claim_one(bench);
            bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL' WHERE status = 'RUNNING'");
        },
        act: |bench| assert_eq!(bench.store.for_scheduler().apply_reports().unwrap(), 1),
        wakes: &[CLAIMS],
    },
    Case {
        what: "a stuck run is repaired",
        before: |bench| {
            bench.submit(graph(vec![vec![], vec![0]]));
            bench.raw().execute("UPDATE jobs SET status = 'SUCCESSFUL', finished_at = 1 WHERE name = 'j0'");
            bench.clock.advance_ms(20_000);
        },
        act: |bench| assert_eq!(bench.store.for_scheduler().reconcile_step(0).unwrap().repaired, 1),
        wakes: &[CLAIMS, SHOWS],
    },
    Case {
        what: "a queue is resumed",
        before: |bench| bench.store.queues().pause("default").unwrap(),
        act: |bench| assert!(bench.store.queues().resume("default").unwrap()),
        wakes: &[CLAIMS],
    },
    Case {
        what: "the limits of a queue are changed",
        before: |bench| limit(bench, by_arrival()),
        act: |bench| limit(bench, QueueLimits { order: Setting::Clear, ..QueueLimits::default() }),
        wakes: &[CLAIMS],
    },
    Case { what: "a schedule is registered", before: |_bench| (), act: register, wakes: &[TIME] },
    Case {
        what: "a schedule is backfilled",
        before: register,
        act: |bench| {
            let (schedule_id, from_ms) = (bench.store.schedules().list().unwrap()[0].id, -4 * 3_600_000);
            bench
                .store
                .schedules()
                .backfill(Backfill { schedule_id, from_ms, to_ms: 0, at_once: 1 })
                .unwrap();
        },
        wakes: &[TIME],
    },
    Case {
        what: "a schedule is resumed",
        before: |bench| {
            register(bench);
            bench.store.schedules().pause(1).unwrap();
        },
        act: |bench| assert!(bench.store.schedules().resume(1).unwrap()),
        wakes: &[TIME],
    },
    Case {
        what: "a workflow is resumed",
        before: |bench| {
            register(bench);
            bench.store.registrations().pause("graph").unwrap();
        },
        act: |bench| assert!(bench.store.registrations().resume("graph").unwrap()),
        wakes: &[TIME],
    },
    Case {
        what: "a schedule is fired",
        before: |bench| {
            register(bench);
            bench.clock.advance_ms(2 * 3_600_000);
        },
        act: |bench| assert!(!bench.store.for_scheduler().fire(1).unwrap().started.is_empty()),
        wakes: &[CLAIMS],
    },
];

#[test]
fn everybody_who_waits_is_woken() {
    for Case { what, before, act, wakes } in CASES {
        let bench = Bench::new();
        let worker = bench.worker();
        before(&bench);
        // The heartbeat is a transaction of its own, so that wake-ups of earlier transactions have been published
        // before the action.
        assert!(bench.store.for_workers().heartbeat(worker).unwrap());
        let listeners: Vec<_> =
            wakes.iter().map(|(who, wake_ups)| (who, bench.store.listen(*wake_ups))).collect();
        act(&bench);
        for (who, listener) in listeners {
            assert!(!listener.wait(Duration::from_secs(30)).is_empty(), "{what}: {who} is not woken");
        }
    }
}
