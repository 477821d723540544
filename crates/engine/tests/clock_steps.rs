//! Setting the wall clock while jobs and runs wait for durations.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, failure, graph, noop, request, success};
use windlass_engine::store::{
    ClockReading, ClockStep, NewJob, QueueLimits, Rate, RetrySelection, Scope, Setting, Urgency,
};
use windlass_engine::{Clock, JobStatus, Random, RunStatus, Store};
use windlass_workflow::{Source, Workflow};

const HOUR_MS: i64 = 3_600_000;
const STEPS_MS: [i64; 4] = [HOUR_MS, -HOUR_MS, 700, -700];

impl Bench {
    fn reading(&self) -> ClockReading {
        self.store.for_scheduler().upcoming(0).unwrap().clock.expect("a manual clock answers immediately")
    }

    /// Sets the clock and moves the tables with it, like a scheduler that had read the clock just before.
    fn set_clock(&self, by_ms: i64) {
        let number = self.reading().steps + 1;
        self.clock.step_wall_ms(by_ms);
        let step = ClockStep { number, by_ms, now_ms: self.clock.now_ms(), unseen_ms: 0 };
        assert!(self.store.for_scheduler().move_with_clock(step).unwrap().is_some());
    }

    fn status(&self, job_id: i64) -> JobStatus {
        self.store.jobs().get(job_id).unwrap().status
    }

    /// Asserts that the job becomes claimable after exactly this time.
    fn assert_due_in(&self, job_id: i64, left_ms: i64) {
        self.clock.advance_ms(left_ms - 1);
        self.store.for_scheduler().promote_due().unwrap();
        assert_eq!(self.status(job_id), JobStatus::Scheduled, "a millisecond too early");
        self.clock.advance_ms(1);
        self.store.for_scheduler().promote_due().unwrap();
        assert_eq!(self.status(job_id), JobStatus::Pending, "at its time");
    }

    /// Asserts that the run reaches its timeout after exactly this time.
    fn assert_times_out_in(&self, run_id: i64, left_ms: i64) {
        self.clock.advance_ms(left_ms - 1);
        assert_eq!(self.store.for_scheduler().promote_due().unwrap().expired, 0, "a millisecond too early");
        self.clock.advance_ms(1);
        assert_eq!(self.store.for_scheduler().promote_due().unwrap().expired, 1, "at its time");
        assert!(self.store.runs().get(run_id).unwrap().stop_reason.is_some());
    }
}

fn parse(text: &str) -> Workflow {
    windlass_workflow::parse(&Source::new("test.toml", text.into()).unwrap()).unwrap()
}

#[test]
fn a_delay_keeps_its_length_when_the_clock_is_set() {
    for by_ms in STEPS_MS {
        let bench = Bench::new();
        let job_id = bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
        let row = bench.raw().value::<i64>("SELECT execute_after - delay_ms FROM jobs");
        assert_eq!(row, bench.clock.now_ms());
        bench.clock.advance_ms(4_000);
        bench.set_clock(by_ms);
        bench.assert_due_in(job_id, 6_000);
    }
}

#[test]
fn a_backoff_keeps_its_length_when_the_clock_is_set() {
    for by_ms in [STEPS_MS.as_slice(), &[0]].concat() {
        let bench = Bench::new();
        let worker = bench.worker();
        bench.submit(parse(
            "name = 'w'\n[jobs.a]\nrun = 'false'\n\
             retry = { max_attempts = 4, delay = '2s', factor = 3, max_delay = '5s', jitter = 0 }",
        ));
        for wait_ms in [2_000, 5_000, 5_000] {
            let job = bench.claim(worker, 1).remove(0);
            assert_eq!(job.retry_state.max_attempts, 4);
            bench.finish(worker, &job, failure());
            bench.clock.advance_ms(1_000);
            bench.set_clock(by_ms);
            bench.assert_due_in(job.id, wait_ms - 1_000);
        }
        let job = bench.claim(worker, 1).remove(0);
        bench.finish(worker, &job, failure());
        assert_eq!(bench.status(job.id), JobStatus::Failed, "the fourth attempt is the last");
    }
}

#[test]
fn a_run_timeout_keeps_its_length_when_the_clock_is_set() {
    for by_ms in [STEPS_MS.as_slice(), &[0]].concat() {
        let bench = Bench::new();
        let worker = bench.worker();
        let run_id = bench.submit(Workflow { timeout_ms: Some(120_000), ..graph(vec![vec![]]) });
        bench.clock.advance_ms(500_000);
        assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0, "it has not started");
        bench.claim(worker, 1);
        bench.clock.advance_ms(3_000);
        bench.set_clock(by_ms);
        bench.assert_times_out_in(run_id, 117_000);
    }
}

#[test]
fn an_instant_that_a_person_named_is_not_moved() {
    let bench = Bench::new();
    let at_ms = bench.clock.now_ms() + 2 * HOUR_MS;
    let named = bench.enqueue(NewJob { execute_after: Some(at_ms), ..noop() });
    bench.set_clock(HOUR_MS);
    bench.assert_due_in(named, HOUR_MS);
    let both = NewJob { execute_after: Some(at_ms), delay_ms: Some(1), ..noop() };
    assert!(bench.store.jobs().enqueue(vec![both]).is_err());
    assert!(bench.store.jobs().enqueue(vec![NewJob { delay_ms: Some(-1), ..noop() }]).is_err());
}

/// Other programs may write any number.
#[test]
fn rows_with_invalid_numbers_do_not_keep_others_from_being_moved() {
    for by_ms in [HOUR_MS, -HOUR_MS] {
        let bench = Bench::new();
        for (at, delay) in [(i64::MAX, 1), (i64::MAX, 0), (i64::MIN, i64::MAX), (7, i64::MIN), (7, -1)] {
            let columns = "(kind, execute_after, delay_ms)";
            bench.raw().execute(&format!("INSERT INTO jobs {columns} VALUES ('noop', {at}, {delay})"));
        }
        let job_id = bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
        bench.set_clock(by_ms);
        bench.assert_due_in(job_id, 10_000);
        bench.clock.advance_ms(-HOUR_MS);
        bench.store.for_scheduler().begin_future_waits(bench.clock.now_ms()).unwrap();
    }
}

#[test]
fn one_of_several_schedulers_moves_the_tables() {
    let bench = Bench::new();
    let job_id = bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
    bench.clock.step_wall_ms(HOUR_MS);
    let step = ClockStep { number: 1, by_ms: HOUR_MS, now_ms: bench.clock.now_ms(), unseen_ms: 400 };
    let moved = bench.store.for_scheduler().move_with_clock(step).unwrap().unwrap();
    assert_eq!((moved.jobs, moved.runs), (1, 0));
    assert_eq!(bench.store.for_scheduler().move_with_clock(step).unwrap(), None, "done");
    assert_eq!(bench.reading().steps, 1);
    bench.assert_due_in(job_id, 10_000);
}

#[test]
fn durations_that_began_after_the_step_are_not_moved() {
    for by_ms in [HOUR_MS, -HOUR_MS] {
        let bench = Bench::new();
        let before = bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
        bench.clock.advance_ms(1_000);
        bench.clock.step_wall_ms(by_ms);
        let after = bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
        bench.clock.advance_ms(300);
        let step = ClockStep { number: 1, by_ms, now_ms: bench.clock.now_ms(), unseen_ms: 400 };
        bench.store.for_scheduler().move_with_clock(step).unwrap();
        bench.assert_due_in(before, 8_700);
        bench.assert_due_in(after, 1_000);
    }
}

#[test]
fn a_scheduler_with_an_outdated_reading_promotes_nothing() {
    let bench = Bench::new();
    bench.enqueue(NewJob { delay_ms: Some(10_000), ..noop() });
    let seen = bench.reading();
    bench.set_clock(-HOUR_MS);
    let stale_ms = seen.now_ms();
    assert_eq!(bench.store.for_scheduler().promote_due_at(stale_ms, Some(seen.steps)).unwrap().promoted, 0);
    assert_eq!(
        bench.store.for_scheduler().promote_due_at(stale_ms, None).unwrap().promoted,
        1,
        "it would be due for it"
    );
}

#[test]
fn a_clock_set_back_without_a_scheduler_makes_no_wait_longer() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(Workflow { timeout_ms: Some(60_000), ..graph(vec![vec![]]) });
    bench.claim(worker, 1);
    let delayed = bench.enqueue(NewJob { delay_ms: Some(2_000), ..noop() });
    let at_ms = bench.clock.now_ms() + 5_000;
    let named = bench.enqueue(NewJob { execute_after: Some(at_ms), ..noop() });
    let nothing = bench.store.for_scheduler().begin_future_waits(bench.clock.now_ms()).unwrap();
    assert_eq!((nothing.jobs, nothing.runs), (0, 0), "the tables are not later than the clock");
    bench.clock.advance_ms(-HOUR_MS);
    let moved = bench.store.for_scheduler().begin_future_waits(bench.clock.now_ms()).unwrap();
    assert_eq!((moved.jobs, moved.runs), (1, 1));
    bench.assert_due_in(delayed, 2_000);
    bench.assert_times_out_in(run_id, 58_000);
    assert_eq!(bench.store.jobs().get(named).unwrap().execute_after, at_ms);
}

#[test]
fn a_rate_holds_and_recovers_when_the_clock_is_set() {
    for by_ms in STEPS_MS {
        let bench = Bench::new();
        let worker = bench.worker();
        let rate = Rate { jobs: 2, interval_ms: 64_000 };
        let limits = QueueLimits { rate: Setting::Set(rate), ..QueueLimits::default() };
        bench.store.queues().limit("slow", limits).unwrap();
        bench.store.jobs().enqueue(vec![NewJob { queue: "slow".to_owned(), ..noop() }; 3]).unwrap();
        assert_eq!(bench.claim(worker, 3).len(), 2);
        bench.clock.advance_ms(10_000);
        bench.set_clock(by_ms);
        bench.clock.advance_ms(53_999);
        assert_eq!(bench.claim(worker, 3).len(), 0, "a millisecond too early");
        bench.clock.advance_ms(1_001);
        assert_eq!(bench.claim(worker, 3).len(), 1, "a step of the interval later");
    }
}

/// One process's clock is ahead of the other's, as can happen if a server answers slowly.
#[test]
fn by_the_times_in_the_tables_no_interval_has_too_many_starts() {
    let bench = Bench::new();
    let ahead = Clock::manual(bench.clock.now_ms() + 200);
    let other = Store::new(support::open(&bench.database, &ahead), ahead.clone(), Random::from_seed(2));
    let (one, two) = (bench.worker(), bench.worker());
    let limits =
        QueueLimits { rate: Setting::Set(Rate { jobs: 2, interval_ms: 3_000 }), ..QueueLimits::default() };
    bench.store.queues().limit("slow", limits).unwrap();
    bench.store.jobs().enqueue(vec![NewJob { queue: "slow".to_owned(), ..noop() }; 60]).unwrap();
    let (mut chance, mut started) = (fastrand::Rng::with_seed(7), Vec::new());
    for _step in 0..6_000 {
        bench.clock.advance_ms(10);
        ahead.advance_ms(10);
        let (store, worker) = if chance.bool() { (&bench.store, one) } else { (&other, two) };
        store.for_scheduler().promote_due().unwrap();
        if let windlass_engine::store::Claims::Jobs(jobs) =
            store.for_workers().claim(request(worker, Scope::Everything, chance.usize(1..4))).unwrap()
        {
            started.extend(jobs.iter().map(|job| store.jobs().get(job.id).unwrap().started_at.unwrap()));
        }
    }
    assert!(started.len() >= 34, "{} starts in a minute", started.len());
    started.sort_unstable();
    for starts in started.windows(3) {
        assert!(starts[2] - starts[0] >= 3_000, "three starts in {} ms", starts[2] - starts[0]);
    }
}

/// Otherwise a start would be counted long before it happens, and two jobs could start close together.
#[test]
fn a_job_of_a_queue_with_a_rate_is_claimed_only_when_it_can_start() {
    let bench = Bench::new();
    let worker = bench.worker();
    let rate = Rate { jobs: 10, interval_ms: 60_000 };
    let limits = QueueLimits { rate: Setting::Set(rate), ..QueueLimits::default() };
    bench.store.queues().limit("slow", limits).unwrap();
    bench.store.jobs().enqueue(vec![NewJob { queue: "slow".to_owned(), ..noop() }; 5]).unwrap();
    bench.store.jobs().enqueue(vec![noop(); 5]).unwrap();
    let ask =
        windlass_engine::store::ClaimRequest { idle_threads: 2, ..request(worker, Scope::Everything, 8) };
    let windlass_engine::store::Claims::Jobs(jobs) = bench.store.for_workers().claim(ask).unwrap() else {
        panic!("fenced")
    };
    let rated = jobs.iter().filter(|job| bench.store.jobs().get(job.id).unwrap().queue == "slow").count();
    assert_eq!((rated, jobs.len()), (2, 5), "only jobs of other queues are prefetched");
}

fn assert_stopped_runs_can_be_retried(stop: impl Fn(&Bench, i64)) {
    for selection in [RetrySelection::Failed, RetrySelection::From("j0".to_owned())] {
        let bench = Bench::new();
        let worker = bench.worker();
        let run_id = bench.submit(Workflow { timeout_ms: Some(60_000), ..graph(vec![vec![], vec![0]]) });
        let job = bench.claim(worker, 1).remove(0);
        bench.clock.advance_ms(10_000);
        stop(&bench, run_id);
        assert_eq!(
            bench.store.for_workers().cancel_requests(worker).unwrap(),
            [(job.id, Urgency::WithGrace)]
        );
        // As for a job that gets no grace time.
        bench.raw().execute(&format!("UPDATE jobs SET cancel_at_once = 1 WHERE id = {}", job.id));
        let cancelled = windlass_engine::transition::Outcome::Cancelled { error: "stopped".to_owned() };
        bench.finish(worker, &job, cancelled);
        assert!(bench.store.runs().get(run_id).unwrap().finished_at.is_some());
        bench.clock.advance_ms(500_000);
        bench.store.runs().retry(run_id, selection).unwrap();
        let run = bench.store.runs().get(run_id).unwrap();
        assert_eq!((run.status, run.stop_reason, run.deadline_at), (RunStatus::Pending, None, None));
        bench.clock.advance_ms(500_000);
        assert_eq!(
            bench.store.for_scheduler().promote_due().unwrap().expired,
            0,
            "its time begins with its first job"
        );
        let again = bench.claim(worker, 5);
        assert_eq!(again.iter().map(|job| job.id).collect::<Vec<_>>(), [job.id]);
        assert!(
            bench.store.for_workers().cancel_requests(worker).unwrap().is_empty(),
            "it was not asked to stop since the retry"
        );
        let deadline_at = bench.clock.now_ms() + 60_000;
        assert_eq!(bench.store.runs().get(run_id).unwrap().deadline_at, Some(deadline_at));
        bench.clock.advance_ms(59_999);
        assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0);
        bench.store.jobs().cancel(job.id).unwrap();
        assert_eq!(
            bench.store.for_workers().cancel_requests(worker).unwrap(),
            [(job.id, Urgency::WithGrace)]
        );
        bench.raw().execute(&format!("UPDATE jobs SET cancel_requested_at = NULL WHERE id = {}", job.id));
        bench.finish(worker, &again[0], success());
        let child = bench.claim(worker, 1).remove(0);
        bench.clock.advance_ms(1);
        assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 1, "it ends exactly then");
        assert_eq!(
            bench.store.for_workers().cancel_requests(worker).unwrap(),
            [(child.id, Urgency::WithGrace)]
        );
        bench.assert_sound();
    }
}

#[test]
fn a_retry_after_a_cancellation_is_not_stopped() {
    assert_stopped_runs_can_be_retried(|bench, run_id| {
        bench.store.runs().cancel(run_id).unwrap();
    });
}

#[test]
fn a_retry_after_a_timeout_has_its_whole_timeout_again() {
    assert_stopped_runs_can_be_retried(|bench, _run_id| {
        bench.clock.advance_ms(50_000);
        assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 1);
    });
}
