//! Limits of queues, concurrency keys, required capabilities, and the order of claiming.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use support::{Bench, failure, graph, noop, request, success};
use windlass_engine::store::{
    AuditFilter, Change, ClaimRequest, ClaimedJob, Claims, JobFilter, NewJob, Order, QueueLimits, Rate,
    Reason, RetrySelection, Scope, Setting, Subject, WorkerCapabilities,
};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus, WaitsFor};
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
        let has_claimable = self.store.for_workers().has_claimable(&asked).unwrap();
        let Claims::Jobs(jobs) = self.store.for_workers().claim(asked).unwrap() else { panic!("fenced") };
        assert_eq!(has_claimable, !jobs.is_empty(), "has_claimable and the claim agree");
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
fn a_queue_limit_holds_across_workers() {
    let bench = Bench::new();
    let (one, two) = (bench.worker(), bench.worker());
    bench.store.queues().limit("narrow", MAX_RUNNING(3)).unwrap();
    let narrow = bench.in_queue("narrow", 5);
    let wide = bench.in_queue("wide", 5);
    let first = bench.claim(one, 2);
    assert_eq!(ids(&first), narrow[..2]);
    let second = bench.claim(two, 10);
    assert_eq!(ids(&second), [&narrow[2..3], &wide].concat(), "the other queue is not blocked");
    assert!(!bench.store.for_workers().has_claimable(&request(one, Scope::Everything, 1)).unwrap());
    assert!(bench.claim(one, 10).is_empty());
    let each = bench.store.jobs().why_each(&narrow).unwrap();
    let alone: Vec<_> = narrow.iter().map(|job_id| bench.store.jobs().why(*job_id).unwrap()).collect();
    assert_eq!(each, alone);
    let why = bench.store.jobs().why(narrow[4]).unwrap().reasons;
    assert_eq!(why, [Reason::QueueFull { queue: "narrow".to_owned(), limit: 3, running: 3 }]);
    bench.finish(one, &first[0], success());
    assert_eq!(ids(&bench.claim(two, 10)), narrow[3..4], "an end frees one place");
    // The worker dies: its jobs no longer count.
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
fn a_worker_for_one_run_keeps_to_the_limits_too() {
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
    assert_eq!(names, ["j0", "j4"], "behind the jobs of the full queue");
    let asked = request(worker, Scope::Runs(vec![run_id]), 4);
    assert!(!bench.store.for_workers().has_claimable(&asked).unwrap());
}

#[test]
fn a_queue_rate_limits_starts_within_an_interval() {
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
    assert_eq!(starts.len(), 12, "no slower than the rate by more than a step: {starts:?}");
    let next_due = bench.store.for_scheduler().next_due().unwrap().unwrap();
    assert!(
        next_due > bench.clock.now_ms() && next_due <= bench.clock.now_ms() + 61_000,
        "a waiting worker is woken"
    );
    // A clock that is set back by hours stops the queue for one interval at most.
    bench.clock.advance_ms(-7_200_000);
    assert_eq!(bench.claim(worker, 10).len(), 3);
}

/// A job that must not be interrupted is not claimed unless a thread is free. It has not started, so it does not
/// count.
#[test]
fn candidates_that_are_not_claimed_do_not_count_against_the_rate() {
    let bench = Bench::new();
    let worker = bench.worker();
    let rate = Setting::Set(Rate { jobs: 3, interval_ms: 60_000 });
    bench.store.queues().limit("default", QueueLimits { rate, ..QueueLimits::default() }).unwrap();
    let mut workflow = graph(vec![vec![]; 3]);
    workflow.jobs.iter_mut().for_each(|job| job.on_interrupt = OnInterrupt::Fail);
    bench.submit(workflow);
    for _thread in 0..3 {
        let ask = ClaimRequest { idle_threads: 1, ..request(worker, Scope::Everything, 3) };
        let Claims::Jobs(jobs) = bench.store.for_workers().claim(ask).unwrap() else { panic!("fenced") };
        assert_eq!(jobs.len(), 1, "one at a time, and all three within the minute");
    }
}

#[test]
fn by_arrival_jobs_run_one_after_another_regardless_of_priority() {
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
            assert!(bench.claim(two, 10).is_empty(), "a retried job is not overtaken");
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

/// The job's retry is due after the time of later jobs, and it is still the job's turn.
#[test]
fn by_arrival_a_worker_for_one_run_claims_the_retried_job() {
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
fn by_arrival_a_job_that_waits_for_another_job_of_its_queue_gives_up_its_turn() {
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
    // It waits for its parent, which is retried with it.
    let run_id = bench.submit(graph(vec![vec![], vec![0]]));
    let (parent, child) = (end(success()), end(failure()));
    bench.store.runs().retry(run_id, RetrySelection::From("j0".to_owned())).unwrap();
    assert_eq!([end(success()), end(success())], [parent, child]);
    // It waits for a slot of its key, which the job behind it got in the meantime.
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
fn by_arrival_cancelling_the_current_job_wakes_claimers_for_the_next() {
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
        // The wake-up of the cancellation is gone when the next transaction ends.
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
fn setting_the_order_of_arrival_again_keeps_the_turn() {
    let bench = Bench::new();
    let worker = bench.worker();
    let limits = QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() };
    bench.store.queues().limit("line", limits).unwrap();
    bench.in_queue("line", 2);
    let jobs = bench.claim(worker, 10);
    bench.finish(worker, &jobs[0], failure());
    bench.store.queues().limit("line", limits).unwrap();
    assert!(bench.claim(worker, 10).is_empty(), "the first job waits for a retry");
    let by_priority = QueueLimits { order: Setting::Clear, ..QueueLimits::default() };
    bench.store.queues().limit("line", by_priority).unwrap();
    assert_eq!(bench.claim(worker, 10).len(), 1);
}

#[test]
fn by_arrival_priorities_are_ignored_however_a_job_becomes_claimable() {
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
    bench.store.runs().retry(retried, RetrySelection::Failed).unwrap();
    for job in bench.store.jobs().list(&JobFilter::newest(100)).unwrap().rows {
        assert!(job.status == JobStatus::Cancelled || job.priority == 0, "{job:?}");
    }
}

#[test]
fn jobs_that_wait_for_a_slot_are_not_claimable() {
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
    assert_eq!(
        ids(&bench.claim(worker, 10)),
        jobs[2..3],
        "an end gives the slot to one job, in the same transaction"
    );
    bench.finish(worker, &claimed[1], failure());
    assert_eq!(ids(&bench.claim(worker, 10)), jobs[3..], "a job that waits for a retry holds no slot");
    bench.clock.advance_ms(600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.status(jobs[1]), JobStatus::Waiting, "then it waits for a slot again");
    // The worker dies: its jobs keep their slots and are claimed again.
    let next = bench.worker();
    bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!(ids(&bench.claim(next, 10)), [jobs[2], jobs[3], other]);
    bench.store.jobs().cancel(jobs[3]).unwrap();
    bench.assert_sound();
}

#[test]
fn a_slot_that_a_cancellation_frees_is_given_to_the_next_job() {
    let bench = Bench::new();
    let jobs = bench.store.jobs().enqueue(vec![keyed("k", 1, OnFull::Wait); 3]).unwrap();
    bench.store.jobs().cancel(jobs[0]).unwrap();
    bench.admit();
    assert_eq!([bench.status(jobs[1]), bench.status(jobs[2])], [JobStatus::Pending, JobStatus::Waiting]);
    bench.store.jobs().cancel(jobs[2]).unwrap();
    assert_eq!(bench.status(jobs[2]), JobStatus::Cancelled, "a waiting job can be cancelled");
}

#[test]
fn on_full_skip_skips_the_job_and_fails_nothing() {
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
    assert_eq!([skipped[0].status, skipped[1].status], [JobStatus::Skipped, JobStatus::Waiting]);
    assert_eq!(
        skipped[1].waits_for,
        Some(WaitsFor::Decision),
        "it is decided when its last parent has ended"
    );
    assert_eq!(bench.store.for_scheduler().decide_waiting().unwrap(), 1);
    let child = bench.store.jobs().get(skipped[1].id).unwrap();
    assert_eq!((child.status, child.upstream_failed), (JobStatus::Skipped, false));
    assert!(child.last_error.unwrap().contains("skipped as not needed"));
    assert!(skipped[0].last_error.as_deref().unwrap().contains("`graph` had no free slot"));
    assert_eq!(bench.store.runs().get(second).unwrap().status, RunStatus::Successful);
    bench.finish(worker, &runs[0], success());
    let child = bench.claim(worker, 10);
    bench.finish(worker, &child[0], success());
    assert_eq!(bench.store.runs().get(first).unwrap().status, RunStatus::Successful);
    bench.assert_sound();
}

#[test]
fn on_full_cancel_oldest_cancels_the_oldest_holder() {
    let bench = Bench::new();
    let worker = bench.worker();
    let old = bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest));
    let running = bench.claim(worker, 10);
    let (middle, new) = (
        bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest)),
        bench.enqueue(keyed("deploy", 1, OnFull::CancelOldest)),
    );
    bench.admit();
    assert!(
        bench.store.jobs().get(old).unwrap().cancel_requested_at.is_some(),
        "the running job is asked to stop"
    );
    assert_eq!([bench.status(middle), bench.status(new)], [JobStatus::Cancelled, JobStatus::Waiting]);
    bench.admit();
    assert_eq!(bench.status(new), JobStatus::Waiting, "until it has stopped");
    bench.finish(worker, &running[0], failure());
    assert_eq!([bench.status(old), bench.status(new)], [JobStatus::Cancelled, JobStatus::Pending]);
    bench.assert_sound();
}

#[test]
fn only_a_worker_with_the_required_capabilities_claims_a_job() {
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
fn a_job_is_not_claimed_by_a_worker_with_a_lower_version() {
    let bench = Bench::new();
    let worker = bench.worker();
    let at = |code_version| WorkerCapabilities {
        code_version,
        ..WorkerCapabilities::of_kinds(vec!["noop".to_owned()])
    };
    let new = bench.enqueue(NewJob { code_version: 7, ..noop() });
    let any = bench.enqueue(noop());
    assert_eq!(bench.claim_as(worker, at(6)), [any]);
    let too_old = Reason::WorkersTooOld { code_version: 7, newest: 0 };
    assert_eq!(bench.store.jobs().why(new).unwrap().reasons, [too_old]);
    assert_eq!(bench.claim_as(worker, at(7)), [new]);
}

#[test]
fn many_jobs_that_wait_for_one_key_do_not_delay_another_key() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.store.jobs().enqueue(vec![keyed("a", 1, OnFull::Skip), keyed("b", 1, OnFull::Skip)]).unwrap();
    bench.claim(worker, 2);
    let late = bench.enqueue(keyed("b", 1, OnFull::Skip));
    // They are BLOCKED no longer, so they wait for the slot.
    bench.raw().execute(
        "INSERT INTO jobs (kind, status, concurrency_key, concurrency_limit, on_full, attempt, waits_for)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 300)
         SELECT 'noop', 'WAITING', 'a', 1, 'skip', 1, 'slot' FROM numbers",
    );
    bench.admit();
    assert_eq!(bench.status(late), JobStatus::Skipped);
}

/// A point of priority is a head start of one minute, so that no job starves.
#[test]
fn a_job_that_has_waited_long_enough_is_not_overtaken() {
    let bench = Bench::new();
    let worker = bench.worker();
    let patient = bench.enqueue(noop());
    bench.clock.advance_ms(10 * 60_000 - 1);
    let urgent = bench.enqueue(NewJob { priority: 10, ..noop() });
    bench.clock.advance_ms(2);
    let late = bench.enqueue(NewJob { priority: 10, ..noop() });
    assert_eq!(ids(&bench.claim(worker, 10)), [urgent, patient, late]);
    // No matter how many jobs come: a job that was enqueued ten minutes before is next.
    let patient = bench.enqueue(noop());
    for minute in 0..12 {
        bench.store.jobs().enqueue(vec![NewJob { priority: 10, ..noop() }; 3]).unwrap();
        let claimed = ids(&bench.claim(worker, 3));
        assert_eq!(claimed.contains(&patient), minute == 10, "minute {minute}");
        bench.clock.advance_ms(60_000);
    }
}

/// Several connections claim and finish at the same time. The tables are checked after each claim.
#[test]
fn limits_hold_while_many_workers_claim() {
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

#[test]
fn a_recorded_change_of_limits_says_the_new_ones_and_is_one_line() {
    let bench = Bench::new();
    bench.enqueue(NewJob { queue: "line".to_owned(), priority: 5, ..noop() });
    let recorded = bench.store.recorded(Change {
        caller: "ada".to_owned(),
        address: None,
        subject: Subject::Queue("line".to_owned()),
        traceparent: None,
    });
    let limits = QueueLimits {
        max_running: Setting::Set(4),
        rate: Setting::Clear,
        order: Setting::Set(Order::Arrival),
    };
    recorded.queues().limit("line", limits).unwrap();
    let lines = bench.store.access().audit(&AuditFilter::default()).unwrap().rows;
    let results: Vec<Option<&str>> = lines.iter().map(|line| line.result.as_deref()).collect();
    assert_eq!(results, [Some("at most 4 running, no rate, in order of arrival")]);
    assert_eq!(bench.raw().value::<i64>("SELECT max(priority) FROM jobs"), 0);
}
