//! Due jobs and deadlines, exact to the millisecond, and how a stopped run ends.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use support::{Bench, graph, noop};
use windlass_engine::store::{Cancellation, NewJob, QueueLimits, Rate, Setting, Urgency};
use windlass_engine::transition::Outcome;
use windlass_engine::{JobStatus, RunStatus};
use windlass_workflow::Workflow;

fn with_timeout(needs: Vec<Vec<usize>>) -> Workflow {
    Workflow { timeout_ms: Some(5_000), ..graph(needs) }
}

#[test]
fn a_job_becomes_claimable_exactly_at_its_instant() {
    let bench = Bench::new();
    let at_ms = bench.clock.now_ms() + 1_000;
    let id = bench.enqueue(NewJob { execute_after: Some(at_ms), ..noop() });
    let now = bench.enqueue(NewJob { execute_after: Some(bench.clock.now_ms()), ..noop() });
    assert_eq!(bench.store.jobs().get(now).unwrap().status, JobStatus::Pending, "it is due now");
    assert_eq!(bench.store.for_scheduler().next_due().unwrap(), Some(at_ms));
    bench.clock.advance_ms(999);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().promoted, 0);
    bench.clock.advance_ms(1);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().promoted, 1);
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Pending);
}

#[test]
fn a_run_timeout_is_counted_from_the_first_claim() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(with_timeout(vec![vec![], vec![], vec![0]]));
    bench.clock.advance_ms(60_000);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0, "it has not started");
    let first = bench.claim(worker, 1).remove(0);
    let deadline_at = bench.clock.now_ms() + 5_000;
    bench.clock.advance_ms(1_000);
    let second = bench.claim(worker, 1).remove(0);
    assert_eq!(bench.store.runs().get(run_id).unwrap().deadline_at, Some(deadline_at), "once");
    assert_eq!(bench.store.for_scheduler().next_due().unwrap(), Some(deadline_at));
    bench.clock.advance_ms(3_999);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0);
    bench.clock.advance_ms(1);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 1);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0, "once");
    let asked = bench.store.for_workers().cancel_requests(worker).unwrap();
    assert_eq!(asked, [(first.id, Urgency::WithGrace), (second.id, Urgency::WithGrace)]);
    for job in [first, second] {
        bench.finish(worker, &job, Outcome::Cancelled { error: "stopped".to_owned() });
    }
    let run = bench.store.runs().get(run_id).unwrap();
    assert_eq!(
        (run.status, run.unfinished_jobs),
        (RunStatus::Failed, 0),
        "it reached its timeout, and nobody cancelled it"
    );
    bench.assert_sound();
}

/// Even if its remaining jobs succeed after they were asked to stop, or if a job had failed before.
#[test]
fn a_stopped_run_ends_with_its_stop_reason() {
    for fails_first in [false, true] {
        for (by_time, expected) in [(true, RunStatus::Failed), (false, RunStatus::Cancelled)] {
            let bench = Bench::new();
            let worker = bench.worker();
            let run_id = bench.submit(with_timeout(vec![vec![]; 2]));
            let jobs = bench.claim(worker, 2);
            if fails_first {
                let error = "no luck".to_owned();
                let repeat = windlass_engine::transition::Repeat::Pointless;
                bench.finish(worker, &jobs[0], Outcome::Failed { error, repeat });
            }
            if by_time {
                bench.clock.advance_ms(5_000);
                assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 1);
            } else {
                bench.store.runs().cancel(run_id).unwrap();
            }
            for job in &jobs[usize::from(fails_first)..] {
                bench.finish(worker, job, Outcome::Successful { output: None });
            }
            assert_eq!(bench.store.runs().get(run_id).unwrap().status, expected, "{fails_first} {by_time}");
            bench.assert_sound();
        }
    }
}

#[test]
fn a_run_and_its_jobs_are_stopped_once() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(with_timeout(vec![vec![], vec![]]));
    let jobs = bench.claim(worker, 2);
    assert_eq!(bench.store.jobs().cancel(jobs[0].id).unwrap().stopping, 1);
    let asked_at = |id| {
        let sql = format!("SELECT cancel_requested_at FROM jobs WHERE id = {id}");
        bench.raw().value::<i64>(&sql)
    };
    let first_at = asked_at(jobs[0].id);
    bench.clock.advance_ms(1_000);
    let cancelled = bench.store.runs().cancel(run_id).unwrap();
    assert_eq!(cancelled, Cancellation { cancelled: 0, stopping: 1 }, "the other job was asked before");
    assert_eq!(asked_at(jobs[0].id), first_at, "its grace time continues");
    assert!(bench.store.runs().cancel(run_id).unwrap_err().is_conflict());
    assert!(bench.store.jobs().cancel(jobs[0].id).unwrap_err().is_conflict());
    bench.clock.advance_ms(60_000);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().expired, 0, "it is being stopped already");
}

/// Jobs that wait for a slot or for their time end with their run.
#[test]
fn jobs_that_have_not_started_end_when_their_run_is_cancelled() {
    use windlass_workflow::model::{Concurrency, OnFull};
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![], vec![], vec![0]]);
    for job in &mut workflow.jobs[..2] {
        job.concurrency = Some(Concurrency { key: "k".to_owned(), limit: 1, on_full: OnFull::Wait });
    }
    (workflow.jobs[2].priority, workflow.jobs[2].retry.max_attempts) = (1, 2);
    let run_id = bench.submit(workflow);
    let third = bench.claim(worker, 1).remove(0);
    bench.finish(worker, &third, support::failure());
    let states = || -> Vec<JobStatus> {
        bench.store.jobs().of_run(run_id).unwrap().into_iter().map(|job| job.status).collect()
    };
    use JobStatus::{Blocked, Pending, Scheduled, Waiting};
    assert_eq!(states(), [Pending, Waiting, Scheduled, Blocked]);
    assert_eq!(bench.store.runs().cancel(run_id).unwrap().cancelled, 4);
    assert_eq!(states(), [JobStatus::Cancelled; 4]);
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Cancelled);
    bench.clock.advance_ms(3_600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    bench.store.for_scheduler().admit_waiting("").unwrap();
    assert_eq!(bench.claim(worker, 10), []);
    bench.assert_sound();
}

/// A start counts for the interval, rounded up to a step. At exactly that instant another job may start.
#[test]
fn a_start_counts_until_it_expires() {
    let bench = Bench::new();
    let worker = bench.worker();
    let rate = Setting::Set(Rate { jobs: 2, interval_ms: 6_400 });
    bench.store.queues().limit("default", QueueLimits { rate, ..QueueLimits::default() }).unwrap();
    bench.store.jobs().enqueue(vec![noop(); 4]).unwrap();
    // Two starts at the same instant are counted together.
    assert_eq!([bench.claim(worker, 1).len(), bench.claim(worker, 1).len()], [1, 1]);
    assert_eq!(bench.claim(worker, 1), []);
    let expires_at = bench.store.for_scheduler().next_due().unwrap().unwrap();
    bench.clock.advance_ms(expires_at - 1 - bench.clock.now_ms());
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.claim(worker, 1), []);
    bench.clock.advance_ms(1);
    assert_eq!(bench.claim(worker, 10).len(), 2, "even before the scheduler has run");
    bench.store.for_scheduler().promote_due().unwrap();
    let next = bench.store.for_scheduler().next_due().unwrap().unwrap();
    assert!(next > expires_at, "expired starts are deleted");
}
