//! Limits of queues, concurrency keys, requirements of jobs, and the order of claiming.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use support::{Bench, failure, graph, noop, request, success};
use windlass_engine::store::{
    ClaimRequest, ClaimedJob, Claims, JobFilter, NewJob, Order, QueueLimits, Rate, Reason, Scope, Selection,
    Setting, WorkerCapabilities,
};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::OnInterrupt;
use windlass_workflow::model::{Concurrency, OnFull};

const MAX_RUNNING: fn(i64) -> QueueLimits =
    |jobs| QueueLimits { max_running: Setting::Set(jobs), ..QueueLimits::default() };

fn keyed(key: &str, limit: i64, on_full: OnFull) -> NewJob {
    NewJob { concurrency: Some(Concurrency { key: key.to_owned(), limit, on_full }), ..noop() }
}

fn ids(jobs: &[ClaimedJob]) -> Vec<i64> {
    jobs.iter().map(|job| job.id).collect()
}

impl Bench {
    fn in_queue(&self, queue: &str, jobs: usize) -> Vec<i64> {
        self.store.jobs().enqueue(vec![NewJob { queue: queue.to_owned(), ..noop() }; jobs]).unwrap()
    }

    fn claim_as(&self, worker: i64, worker_capabilities: WorkerCapabilities) -> Vec<i64> {
        let asked = ClaimRequest { worker_capabilities, ..request(worker, Scope::Everything, 10) };
        let looked = self.store.for_workers().has_claimable(&asked).unwrap();
        let Claims::Jobs(jobs) = self.store.for_workers().claim(asked).unwrap() else { panic!("fenced") };
        assert_eq!(looked, !jobs.is_empty(), "looking and claiming agree");
        ids(&jobs)
    }

    fn status(&self, id: i64) -> JobStatus {
        self.store.jobs().get(id).unwrap().status
    }

    fn admit(&self) {
        self.store.for_scheduler().admit_waiting("").unwrap();
    }
}

#[test]
fn so_many_jobs_of_a_queue_run_at_a_time_over_all_workers() {
    let bench = Bench::new();
    let (one, two) = (bench.worker(), bench.worker());
    bench.store.queues().limit("narrow", MAX_RUNNING(3)).unwrap();
    let narrow = bench.in_queue("narrow", 5);
    let wide = bench.in_queue("wide", 5);
    let first = bench.claim(one, 2);
    assert_eq!(ids(&first), narrow[..2]);
    let second = bench.claim(two, 10);
    assert_eq!(ids(&second), [&narrow[2..3], &wide].concat(), "the other queue is not held up");
    assert!(!bench.store.for_workers().has_claimable(&request(one, Scope::Everything, 1)).unwrap());
    assert!(bench.claim(one, 10).is_empty());
    let why = bench.store.jobs().why(narrow[4]).unwrap().reasons;
    assert_eq!(why, [Reason::QueueFull { queue: "narrow".to_owned(), limit: 3, running: 3 }]);
    bench.finish(one, &first[0], success());
    assert_eq!(ids(&bench.claim(two, 10)), narrow[3..4], "an end makes room for one");
    // The worker dies: what it held is counted no more.
    bench.store.for_scheduler().rescue(vec![(two, 0)]).unwrap();
    assert_eq!(bench.claim(one, 10).iter().filter(|job| narrow.contains(&job.id)).count(), 2);
    bench
        .store
        .queues()
        .limit("narrow", QueueLimits { max_running: Setting::Clear, ..Default::default() })
        .unwrap();
    assert_eq!(bench.claim(one, 10).iter().filter(|job| narrow.contains(&job.id)).count(), 1);
    bench.assert_sound();
}

#[test]
fn a_run_of_its_own_keeps_to_the_limits_too() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.store.queues().limit("default", MAX_RUNNING(1)).unwrap();
    let mut workflow = graph(vec![vec![]; 5]);
    workflow.jobs[4].queue = "other".to_owned();
    let run_id = bench.submit(workflow);
    let Claims::Jobs(jobs) =
        bench.store.for_workers().claim(request(worker, Scope::Runs(vec![run_id]), 4)).unwrap()
    else {
        panic!("fenced")
    };
    let mut names: Vec<_> = jobs.iter().map(|job| job.name.clone().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["j0", "j4"], "past those of the full queue");
    let asked = request(worker, Scope::Runs(vec![run_id]), 4);
    assert!(!bench.store.for_workers().has_claimable(&asked).unwrap());
}

#[test]
fn so_many_jobs_of_a_queue_start_within_an_interval() {
    let bench = Bench::new();
    let worker = bench.worker();
    let rate = Rate { jobs: 3, interval_ms: 60_000 };
    let limits = QueueLimits { rate: Setting::Set(rate), ..QueueLimits::default() };
    bench.store.queues().limit("slow", limits).unwrap();
    bench.in_queue("slow", 20);
    let mut starts = Vec::new();
    for _second in 0..240 {
        for job in bench.claim(worker, 2) {
            starts.push(bench.clock.now_ms());
            bench.finish(worker, &job, success());
        }
        let why = bench.store.jobs().list(&Default::default());
        assert!(why.is_ok());
        bench.clock.advance_ms(1_000);
        bench.store.for_scheduler().promote_due().unwrap();
    }
    for window in starts.windows(4) {
        assert!(window[3] - window[0] >= 60_000, "never four within a minute: {starts:?}");
    }
    assert_eq!(starts.len(), 12, "and no slower than that by more than a step: {starts:?}");
    let next_due = bench.store.for_scheduler().next_due().unwrap().unwrap();
    assert!(
        next_due > bench.clock.now_ms() && next_due <= bench.clock.now_ms() + 61_000,
        "who waits is woken"
    );
    // A clock that is set back by hours stops the queue for no longer than an interval.
    bench.clock.advance_ms(-7_200_000);
    assert_eq!(bench.claim(worker, 10).len(), 3);
}

/// A job that must not be interrupted is not taken while no thread is free for it: it has not started.
#[test]
fn what_was_looked_at_and_not_taken_does_not_count_against_the_rate() {
    let bench = Bench::new();
    let worker = bench.worker();
    let rate = Setting::Set(Rate { jobs: 3, interval_ms: 60_000 });
    bench.store.queues().limit("default", QueueLimits { rate, ..QueueLimits::default() }).unwrap();
    let mut workflow = graph(vec![vec![]; 3]);
    workflow.jobs.iter_mut().for_each(|job| job.on_interrupt = OnInterrupt::Fail);
    bench.submit(workflow);
    for _thread in 0..3 {
        let ask = ClaimRequest { idle: 1, ..request(worker, Scope::Everything, 3) };
        let Claims::Jobs(jobs) = bench.store.for_workers().claim(ask).unwrap() else { panic!("fenced") };
        assert_eq!(jobs.len(), 1, "one at a time, and all three within the minute");
    }
}

#[test]
fn by_arrival_one_job_goes_after_the_other_whatever_its_priority() {
    let bench = Bench::new();
    let (one, two) = (bench.worker(), bench.worker());
    let before = bench.enqueue(NewJob { queue: "line".to_owned(), priority: 5, ..noop() });
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    let mut line = vec![before];
    for priority in [0, 500, -3] {
        bench.clock.advance_ms(1);
        line.push(bench.enqueue(NewJob { queue: "line".to_owned(), priority, ..noop() }));
    }
    let mut done = Vec::new();
    let mut has_failed = false;
    while done.len() < line.len() {
        let jobs = bench.claim(one, 10);
        assert_eq!(jobs.len(), 1, "one at a time");
        assert!(bench.claim(two, 10).is_empty() && bench.claim(one, 10).is_empty());
        if done.len() == 1 && !std::mem::replace(&mut has_failed, true) {
            bench.finish(one, &jobs[0], failure());
            assert!(bench.claim(two, 10).is_empty(), "a job that is tried again is not overtaken");
            let waits = bench.store.jobs().why(line[3]).unwrap().reasons;
            assert_eq!(waits, [Reason::NotItsTurn { queue: "line".to_owned(), turn_job_id: line[1] }]);
            bench.clock.advance_ms(600_000);
            bench.store.for_scheduler().promote_due().unwrap();
            continue;
        }
        bench.finish(one, &jobs[0], success());
        done.push(jobs[0].id);
    }
    assert_eq!(done, line);
    bench.assert_sound();
}

#[test]
fn by_arrival_a_job_that_this_worker_can_not_execute_is_not_overtaken() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    let foreign = bench.enqueue(NewJob { queue: "line".to_owned(), ..NewJob::new("foreign", "null") });
    bench.clock.advance_ms(1);
    bench.in_queue("line", 1);
    assert!(bench.claim(worker, 10).is_empty());
    assert_eq!(bench.claim_as(worker, WorkerCapabilities::of_kinds(vec!["foreign".to_owned()])), [foreign]);
}

/// Its next attempt is due after those that came later, and it is still its turn.
#[test]
fn by_arrival_a_run_of_its_own_finds_the_job_that_is_tried_again() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("default", limits).unwrap();
    let mut workflow = graph(vec![vec![]; 5]);
    workflow.jobs[0].retry.max_attempts = 2;
    let run_id = bench.submit(workflow);
    let ask = || request(worker, Scope::Runs(vec![run_id]), 2);
    let claim = || {
        let Claims::Jobs(jobs) = bench.store.for_workers().claim(ask()).unwrap() else { panic!("fenced") };
        assert_eq!(jobs.len(), 1, "one at a time");
        jobs.into_iter().next().unwrap()
    };
    let first = claim();
    bench.finish(worker, &first, failure());
    assert!(!bench.store.for_workers().has_claimable(&ask()).unwrap());
    bench.clock.advance_ms(600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    assert!(bench.store.for_workers().has_claimable(&ask()).unwrap());
    assert_eq!(claim().id, first.id);
}

#[test]
fn by_arrival_a_job_that_waits_for_another_of_its_queue_gives_its_turn_up() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("default", limits).unwrap();
    let next = || ids(&bench.claim(worker, 10));
    let end = |outcome: Outcome| {
        let jobs = bench.claim(worker, 10);
        bench.finish(worker, &jobs[0], outcome);
        jobs[0].id
    };
    // For its parent, which gets another life with it.
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let (parent, child) = (end(success()), end(failure()));
    bench.store.runs().retry(run_id, Selection::From("j0".to_owned())).unwrap();
    assert_eq!([end(success()), end(success())], [parent, child]);
    // For a slot of its key, which the one behind it got while it could not go on.
    let keyed = bench.store.jobs().enqueue(vec![keyed("k", 1, OnFull::Wait); 2]).unwrap();
    assert_eq!(end(failure()), keyed[0]);
    assert_eq!(bench.status(keyed[1]), JobStatus::Pending);
    bench.clock.advance_ms(600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.status(keyed[0]), JobStatus::Waiting);
    let why = bench.store.jobs().why(keyed[1]).unwrap().reasons;
    assert!(!why.iter().any(|reason| matches!(reason, Reason::NotItsTurn { .. })), "{why:?}");
    assert_eq!([end(success()), end(success())], [keyed[1], keyed[0]]);
    assert!(next().is_empty());
    bench.assert_sound();
}

#[test]
fn by_arrival_the_next_is_called_when_the_job_whose_turn_it_is_is_cancelled() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    let mut workflow = graph(vec![vec![]]);
    (workflow.jobs[0].queue, workflow.jobs[0].retry.max_attempts) = ("line".to_owned(), 9);
    let run_id = bench.submit(workflow);
    let jobs = [bench.in_queue("line", 1), bench.in_queue("line", 1)].concat();
    let is_called_by = |cancel: &dyn Fn()| {
        let first = bench.claim(worker, 10);
        bench.finish(worker, &first[0], failure());
        // The announcement of that is over with the next transaction.
        bench.store.for_workers().heartbeat(worker).unwrap();
        let listener = bench.store.listen(WakeUps::PENDING);
        cancel();
        assert!(listener.wait(Duration::from_secs(30)).intersects(WakeUps::PENDING));
    };
    is_called_by(&|| assert_eq!(bench.store.runs().cancel(run_id).unwrap().cancelled, 1));
    is_called_by(&|| assert_eq!(bench.store.jobs().cancel(jobs[0]).unwrap().cancelled, 1));
    assert_eq!(ids(&bench.claim(worker, 10)), jobs[1..]);
}

#[test]
fn who_asks_again_for_the_order_of_arrival_takes_nobodys_turn() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    bench.in_queue("line", 2);
    let jobs = bench.claim(worker, 10);
    bench.finish(worker, &jobs[0], failure());
    bench.store.queues().limit("line", limits).unwrap();
    assert!(bench.claim(worker, 10).is_empty(), "the first is to be tried again");
    let by_priority = QueueLimits { order: Setting::Clear, ..QueueLimits::default() };
    bench.store.queues().limit("line", by_priority).unwrap();
    assert_eq!(bench.claim(worker, 10).len(), 1);
}

#[test]
fn by_arrival_priorities_count_for_nothing_however_a_job_becomes_claimable() {
    let bench = Bench::new();
    let urgent = |needs: Vec<Vec<usize>>| {
        let mut workflow = graph(needs);
        for job in &mut workflow.jobs {
            (job.queue, job.priority) = ("line".to_owned(), 20);
        }
        workflow
    };
    let waiting = bench
        .store
        .jobs()
        .enqueue(vec![NewJob { queue: "line".to_owned(), priority: 20, ..keyed("k", 1, OnFull::Wait) }; 2])
        .unwrap();
    let retried = bench.submit(urgent(vec![vec![]]));
    bench.store.runs().cancel(retried).unwrap();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    bench.store.jobs().cancel(waiting[0]).unwrap();
    bench.admit();
    bench.store.runs().retry(retried, Selection::Failed).unwrap();
    for job in bench.store.jobs().list(&JobFilter::newest(100)).unwrap().rows {
        assert!(job.status == JobStatus::Cancelled || job.priority == 0, "{job:?}");
    }
}

#[test]
fn jobs_that_share_a_key_wait_for_a_slot_out_of_the_claims_sight() {
    let bench = Bench::new();
    let worker = bench.worker();
    let jobs = bench.store.jobs().enqueue(vec![keyed("tenant-1", 2, OnFull::Wait); 4]).unwrap();
    let other = bench.enqueue(keyed("tenant-2", 1, OnFull::Wait));
    assert_eq!(bench.status(jobs[2]), JobStatus::Waiting);
    let claimed = bench.claim(worker, 10);
    assert_eq!(ids(&claimed), [jobs[0], jobs[1], other]);
    let holders = vec![format!("j{}", jobs[0]), format!("j{}", jobs[1])];
    let key = "tenant-1".to_owned();
    assert_eq!(
        bench.store.jobs().why(jobs[2]).unwrap().reasons,
        [Reason::KeyTaken { key, limit: 2, holders }]
    );
    bench.finish(worker, &claimed[0], success());
    assert_eq!(ids(&bench.claim(worker, 10)), jobs[2..3], "an end lets one go, in the same transaction");
    bench.finish(worker, &claimed[1], failure());
    assert_eq!(ids(&bench.claim(worker, 10)), jobs[3..], "who is to be tried again holds no slot meanwhile");
    bench.clock.advance_ms(600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.status(jobs[1]), JobStatus::Waiting, "and waits for one again");
    // The worker dies: its jobs keep their slots and are claimed anew.
    let next = bench.worker();
    bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!(ids(&bench.claim(next, 10)), [jobs[2], jobs[3], other]);
    bench.store.jobs().cancel(jobs[3]).unwrap();
    bench.assert_sound();
}

#[test]
fn a_slot_that_a_cancellation_frees_is_given_on() {
    let bench = Bench::new();
    let jobs = bench.store.jobs().enqueue(vec![keyed("k", 1, OnFull::Wait); 3]).unwrap();
    bench.store.jobs().cancel(jobs[0]).unwrap();
    bench.admit();
    assert_eq!([bench.status(jobs[1]), bench.status(jobs[2])], [JobStatus::Pending, JobStatus::Waiting]);
    bench.store.jobs().cancel(jobs[2]).unwrap();
    assert_eq!(bench.status(jobs[2]), JobStatus::Cancelled, "who waits can be cancelled");
}

#[test]
fn who_does_not_want_to_wait_is_skipped_and_fails_nothing() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![0]]);
    let key = "{{ run.workflow }}".to_owned();
    workflow.jobs[0].concurrency = Some(Concurrency { key, limit: 1, on_full: OnFull::Skip });
    let (first, second) = (bench.submit(workflow.clone()), bench.submit(workflow));
    let runs = bench.claim(worker, 10);
    assert_eq!(runs.len(), 1);
    bench.admit();
    let skipped = bench.store.jobs().of_run(second).unwrap();
    assert_eq!([skipped[0].status, skipped[1].status], [JobStatus::Skipped; 2]);
    assert!(skipped[0].last_error.as_deref().unwrap().contains("`graph` had no room"));
    assert_eq!(bench.store.runs().get(second).unwrap().status, RunStatus::Successful);
    bench.finish(worker, &runs[0], success());
    let child = bench.claim(worker, 10);
    bench.finish(worker, &child[0], success());
    assert_eq!(bench.store.runs().get(first).unwrap().status, RunStatus::Successful);
    bench.assert_sound();
}

#[test]
fn the_oldest_makes_room_for_the_newest_where_that_is_asked_for() {
    let bench = Bench::new();
    let worker = bench.worker();
    let old = bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest));
    let running = bench.claim(worker, 10);
    let (middle, new) = (
        bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest)),
        bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest)),
    );
    bench.admit();
    assert!(bench.store.jobs().get(old).unwrap().cancel_requested_at.is_some(), "who runs is asked to stop");
    assert_eq!([bench.status(middle), bench.status(new)], [JobStatus::Cancelled, JobStatus::Waiting]);
    bench.admit();
    assert_eq!(bench.status(new), JobStatus::Waiting, "until it has");
    bench.finish(worker, &running[0], failure());
    assert_eq!([bench.status(old), bench.status(new)], [JobStatus::Cancelled, JobStatus::Pending]);
    bench.assert_sound();
}

#[test]
fn only_a_worker_that_has_what_a_job_requires_sees_it() {
    let bench = Bench::new();
    let worker = bench.worker();
    let requires = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let with = |names: &[&str]| WorkerCapabilities {
        capabilities: requires(names),
        ..WorkerCapabilities::of_kinds(vec!["noop".to_owned()])
    };
    let both = bench.enqueue(NewJob { requires: requires(&["ssd", "gpu", "gpu"]), ..noop() });
    let gpu = bench.enqueue(NewJob { requires: requires(&["gpu"]), ..noop() });
    assert!(bench.claim_as(worker, with(&[])).is_empty());
    let lacks = Reason::NoCapability { requires: requires(&["gpu", "ssd"]) };
    assert_eq!(bench.store.jobs().why(both).unwrap().reasons, [lacks]);
    assert_eq!(bench.claim_as(worker, with(&["gpu"])), [gpu]);
    assert_eq!(bench.claim_as(worker, with(&["gpu", "ssd", "more"])), [both]);
}

#[test]
fn a_job_is_kept_away_from_code_that_is_too_old_for_it() {
    let bench = Bench::new();
    let worker = bench.worker();
    let at =
        |version| WorkerCapabilities { version, ..WorkerCapabilities::of_kinds(vec!["noop".to_owned()]) };
    let new = bench.enqueue(NewJob { version: 7, ..noop() });
    let any = bench.enqueue(noop());
    assert_eq!(bench.claim_as(worker, at(6)), [any]);
    let too_old = Reason::WorkersTooOld { version: 7, newest: 0 };
    assert_eq!(bench.store.jobs().why(new).unwrap().reasons, [too_old]);
    assert_eq!(bench.claim_as(worker, at(7)), [new]);
}

#[test]
fn no_key_is_kept_from_its_turn_by_the_many_that_wait_for_another() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.store.jobs().enqueue(vec![keyed("a", 1, OnFull::Skip), keyed("b", 1, OnFull::Skip)]).unwrap();
    bench.claim(worker, 2);
    let late = bench.enqueue(keyed("b", 1, OnFull::Skip));
    // They have begun, so they wait.
    bench.raw().execute(
        "INSERT INTO jobs (kind, status, concurrency_key, concurrency_limit, on_full, attempt)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300)
         SELECT 'noop', 'WAITING', 'a', 1, 'skip', 1 FROM numbers",
    );
    bench.admit();
    assert_eq!(bench.status(late), JobStatus::Skipped);
}

/// A point of priority is a head start of a minute: so nothing starves.
#[test]
fn a_job_that_has_waited_long_enough_is_overtaken_by_nobody() {
    let bench = Bench::new();
    let worker = bench.worker();
    let patient = bench.enqueue(noop());
    bench.clock.advance_ms(10 * 60_000 - 1);
    let urgent = bench.enqueue(NewJob { priority: 10, ..noop() });
    bench.clock.advance_ms(2);
    let late = bench.enqueue(NewJob { priority: 10, ..noop() });
    assert_eq!(ids(&bench.claim(worker, 10)), [urgent, patient, late]);
    // However many come: whoever was there ten minutes before is next.
    let patient = bench.enqueue(noop());
    for minute in 0..12 {
        bench.store.jobs().enqueue(vec![NewJob { priority: 10, ..noop() }; 3]).unwrap();
        let claimed = ids(&bench.claim(worker, 3));
        assert_eq!(claimed.contains(&patient), minute == 10, "minute {minute}");
        bench.clock.advance_ms(60_000);
    }
}

/// Several connections claim and finish at the same time; the tables are asked after each claim.
#[test]
fn limits_hold_at_every_instant_while_many_claim() {
    const LIMIT: i64 = 3;
    let bench = Bench::new();
    bench.store.queues().limit("narrow", MAX_RUNNING(LIMIT)).unwrap();
    let mut jobs = vec![NewJob { queue: "narrow".to_owned(), ..noop() }; 120];
    jobs.extend(vec![keyed("key", 2, OnFull::Wait); 120]);
    bench.store.jobs().enqueue(jobs).unwrap();
    let (running, keyed_running, done) = (AtomicI64::new(0), AtomicI64::new(0), AtomicI64::new(0));
    std::thread::scope(|scope| {
        for _thread in 0..6 {
            scope.spawn(|| {
                let worker = bench.worker();
                while done.load(Ordering::SeqCst) < 240 {
                    bench.store.for_scheduler().admit_waiting("").unwrap();
                    let claimed = bench.claim(worker, 2);
                    for job in &claimed {
                        let is_narrow = bench.store.jobs().get(job.id).unwrap().queue == "narrow";
                        let (count, limit) = if is_narrow { (&running, LIMIT) } else { (&keyed_running, 2) };
                        let now = count.fetch_add(1, Ordering::SeqCst) + 1;
                        assert!(now <= limit, "{now} of {limit} run");
                        std::thread::sleep(Duration::from_millis(1));
                        count.fetch_sub(1, Ordering::SeqCst);
                        bench.finish(worker, job, success());
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    bench.assert_sound();
}
