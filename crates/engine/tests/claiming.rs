//! Claiming, finishing, fencing and rescue: only one worker owns an attempt.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::{Bench, failure, graph, noop, request, success};
use windlass_db::{Capabilities, Connection, Database, Recovery, WriteOperation};
use windlass_engine::store::{
    ClaimRequest, ClaimedJob, Claims, NewJob, QueueLimits, Scope, Setting, Urgency,
};
use windlass_engine::transition::Outcome;
use windlass_engine::{Clock, JobStatus, Random, Result, RunStatus, Store, WorkerStatus};
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};
use windlass_test_database::DatabaseKind;
use windlass_workflow::OnInterrupt;

#[test]
fn jobs_are_claimed_by_priority_across_queues() {
    let bench = Bench::new();
    let worker = bench.worker();
    let jobs = vec![
        NewJob { priority: 0, ..noop() },
        NewJob { priority: 10, queue: "b".to_owned(), ..noop() },
        NewJob { priority: 10, queue: "a".to_owned(), ..noop() },
        NewJob { priority: -10, queue: "a".to_owned(), ..noop() },
    ];
    let ids = bench.store.jobs().enqueue(jobs).unwrap();
    let claimed: Vec<i64> = bench.claim(worker, 10).iter().map(|job| job.id).collect();
    assert_eq!(claimed, [ids[1], ids[2], ids[0], ids[3]]);
    assert!(bench.claim(worker, 10).is_empty());
}

#[test]
fn a_worker_takes_only_its_kinds_queues_and_runs() {
    let bench = Bench::new();
    let worker = bench.worker();
    let unknown = bench.enqueue(NewJob::new("unknown", "null"));
    let other = bench.enqueue(NewJob { queue: "other".to_owned(), ..noop() });
    let run_id = bench.submit(graph(vec![vec![]]));
    let take = |scope| match bench.store.for_workers().claim(request(worker, scope, 10)).unwrap() {
        Claims::Jobs(jobs) => jobs.into_iter().map(|job| job.id).collect::<Vec<_>>(),
        Claims::Fenced => panic!("fenced"),
    };
    assert!(take(Scope::Queues(vec!["absent".to_owned()])).is_empty());
    assert_eq!(take(Scope::Queues(vec!["other".to_owned()])), [other]);
    let job_of_run = bench.store.jobs().of_run(run_id).unwrap()[0].id;
    assert_eq!(take(Scope::Runs(vec![run_id, 99])), [job_of_run]);
    assert!(take(Scope::Everything).is_empty());
    assert_eq!(bench.store.jobs().get(unknown).unwrap().status, JobStatus::Pending);
}

#[test]
fn nothing_is_claimed_from_a_paused_queue() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![]]));
    bench.store.queues().pause("default").unwrap();
    assert!(bench.claim(worker, 10).is_empty());
    let of_run = bench.store.for_workers().claim(request(worker, Scope::Runs(vec![run_id]), 10)).unwrap();
    assert_eq!(of_run, Claims::Jobs(vec![]));
    bench.store.queues().resume("default").unwrap();
    assert_eq!(bench.claim(worker, 10).len(), 1);
}

/// A claim reads the jobs of a run again after those that can't start. It then finds jobs again that it has chosen
/// already.
#[test]
fn a_candidate_that_is_found_twice_is_claimed_once() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![]; 7]);
    for job in &mut workflow.jobs[2..4] {
        job.queue = "paused".to_owned();
    }
    let run_id = bench.submit(workflow);
    bench.store.queues().pause("paused").unwrap();
    let take = |run_ids: Vec<i64>| match bench
        .store
        .for_workers()
        .claim(request(worker, Scope::Runs(run_ids), 4))
        .unwrap()
    {
        Claims::Jobs(jobs) => jobs.into_iter().filter_map(|job| job.name).collect::<Vec<_>>(),
        Claims::Fenced => panic!("fenced"),
    };
    assert_eq!(take(vec![run_id]), ["j0", "j1", "j4", "j5"]);
    assert_eq!(take(vec![run_id, run_id]), ["j6"], "a run that is named twice");
    bench.assert_sound();
}

#[test]
fn the_most_urgent_job_of_several_runs_gets_the_last_free_place_of_a_queue() {
    let bench = Bench::new();
    let max_running = Setting::Set(1);
    bench.store.queues().limit("narrow", QueueLimits { max_running, ..QueueLimits::default() }).unwrap();
    let submit = |priority| {
        let mut workflow = graph(vec![vec![]]);
        (workflow.jobs[0].queue, workflow.jobs[0].priority) = ("narrow".to_owned(), priority);
        bench.submit(workflow)
    };
    let (first, urgent) = (submit(0), submit(10));
    let worker = bench.worker();
    let scope = Scope::Runs(vec![first, urgent]);
    let Claims::Jobs(jobs) = bench.store.for_workers().claim(request(worker, scope, 4)).unwrap() else {
        panic!("fenced")
    };
    assert_eq!(jobs.iter().map(|job| job.run_id).collect::<Vec<_>>(), [Some(urgent)]);
}

#[test]
fn only_the_owner_of_an_attempt_finishes_it() {
    let bench = Bench::new();
    let (owner, other) = (bench.worker(), bench.worker());
    let id = bench.enqueue(noop());
    let first = bench.claim(owner, 1).remove(0);
    assert_eq!(bench.finish(other, &first, success()).conflicts, [id], "another worker");
    assert!(bench.finish(owner, &first, failure()).conflicts.is_empty());
    assert_eq!(bench.finish(owner, &first, success()).conflicts, [id], "twice");
    bench.clock.advance_ms(60_000);
    bench.store.for_scheduler().promote_due().unwrap();
    let second = bench.claim(owner, 1).remove(0);
    assert_eq!(bench.finish(owner, &first, success()).conflicts, [id], "an earlier attempt");
    assert!(bench.finish(owner, &second, success()).conflicts.is_empty());
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Successful);
    bench.assert_sound();
}

#[test]
fn a_fenced_worker_can_change_nothing() {
    let bench = Bench::new();
    let (lost, next) = (bench.worker(), bench.worker());
    let id = bench.enqueue(noop());
    let job = bench.claim(lost, 1).remove(0);
    let rescued = bench.store.for_scheduler().rescue(vec![(lost, 0)]).unwrap();
    assert_eq!((rescued.fenced, rescued.jobs), (1, 1));
    assert!(!bench.store.for_workers().heartbeat(lost).unwrap(), "its lease is not renewed");
    let claims = bench.store.for_workers().claim(request(lost, Scope::Everything, 1)).unwrap();
    assert_eq!(claims, Claims::Fenced, "it claims nothing");
    assert_eq!(bench.finish(lost, &job, success()).conflicts, [id], "its result is discarded");
    assert!(!bench.store.for_workers().set_status(lost, WorkerStatus::Stopped).unwrap());
    let again = bench.claim(next, 1).remove(0);
    assert_eq!((again.id, again.retry_state.attempt, again.retry_state.interruptions), (id, 2, 1));
    assert_eq!(bench.finish(lost, &job, success()).conflicts, [id], "even while the next attempt runs");
    bench.finish(next, &again, success());
    bench.assert_sound();
}

#[test]
fn a_job_that_cannot_be_rescued_does_not_block_others() {
    let bench = Bench::new();
    let lost = bench.worker();
    let mut workflow = graph(vec![vec![], vec![0]]);
    workflow.jobs[0].on_interrupt = OnInterrupt::Fail;
    workflow.jobs[0].allow_failure = true;
    let run_id = bench.submit(workflow);
    bench.store.jobs().enqueue(vec![noop(); 20]).unwrap();
    let claimed = bench.claim(lost, 100);
    assert_eq!(claimed.len(), 21);
    let id = bench.store.jobs().find_by_name(run_id, "j0").unwrap().unwrap().id;
    bench.database.refuse(id, "FAILED");
    let rescued = bench.store.for_scheduler().rescue(vec![(lost, 0)]).unwrap();
    assert_eq!((rescued.fenced, rescued.jobs), (1, 20));
    let [stuck] = rescued.stuck.as_slice() else { panic!("{rescued:#?}") };
    assert_eq!(stuck.label, format!("{run_id}/j0"));
    assert!(stuck.error.to_string().contains("refused"), "{}", stuck.error);
    assert_eq!(stuck.job_id, id);
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Running);
    assert_eq!(
        [bench.store.for_scheduler().has_orphans(&[]), bench.store.for_scheduler().has_orphans(&[id])],
        [Ok(true), Ok(false)]
    );
    bench.database.allow();
    assert_eq!(bench.store.for_scheduler().rescue(Vec::new()).unwrap().jobs, 1);
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Failed);
    bench.assert_sound();
}

#[test]
fn a_worker_that_renewed_its_lease_is_not_fenced() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.enqueue(noop());
    let job = bench.claim(worker, 1).remove(0);
    assert!(bench.store.for_workers().heartbeat(worker).unwrap());
    let rescued = bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!((rescued.fenced, rescued.jobs), (0, 0));
    assert!(bench.finish(worker, &job, success()).conflicts.is_empty());
}

#[test]
fn interruptions_are_limited_and_may_be_final() {
    let bench = Bench::new();
    let mut workflow = graph(vec![vec![], vec![]]);
    workflow.jobs[0].max_interruptions = 2;
    workflow.jobs[1].on_interrupt = OnInterrupt::Fail;
    let run_id = bench.submit(workflow);
    for _ in 0..5 {
        let worker = bench.worker();
        bench.claim(worker, 10);
        bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    }
    let jobs = bench.store.jobs().of_run(run_id).unwrap();
    assert_eq!((jobs[0].status, jobs[0].attempt, jobs[0].interruptions), (JobStatus::Failed, 3, 3));
    assert_eq!((jobs[1].status, jobs[1].attempt), (JobStatus::Failed, 1));
    assert!(jobs[1].last_error.as_deref().unwrap().starts_with("interrupted, outcome unknown"));
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}

#[test]
fn a_job_that_was_asked_to_stop_is_not_retried() {
    let bench = Bench::new();
    let worker = bench.worker();
    let id = bench.enqueue(noop());
    let job = bench.claim(worker, 1).remove(0);
    bench.store.jobs().cancel(id).unwrap();
    bench.finish(worker, &job, failure());
    assert_eq!(bench.store.jobs().get(id).unwrap().status, JobStatus::Cancelled);
    let orphan = bench.enqueue(noop());
    bench.claim(worker, 1);
    bench.store.jobs().cancel(orphan).unwrap();
    bench.store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
    assert_eq!(
        bench.store.jobs().get(orphan).unwrap().status,
        JobStatus::Cancelled,
        "also when its worker died"
    );
    bench.assert_sound();
}

#[test]
fn a_job_inserted_from_outside_becomes_claimable() {
    let bench = Bench::new();
    let worker = bench.worker();
    let raw = bench.raw();
    raw.execute("INSERT INTO jobs (kind, payload, execute_after) VALUES ('noop', '{}', 1000000)");
    raw.execute("INSERT INTO jobs (kind, execute_after) VALUES ('noop', 1000001)");
    assert!(bench.claim(worker, 10).is_empty(), "only the scheduler promotes it");
    bench.store.for_scheduler().promote_due().unwrap();
    assert_eq!(bench.claim(worker, 10).len(), 1, "the other job is in the future");
    bench.clock.advance_ms(1);
    assert_eq!(bench.store.for_scheduler().promote_due().unwrap().next_at, None);
    assert_eq!(bench.claim(worker, 10).len(), 1);
}

#[test]
fn a_unique_key_allows_one_unfinished_job() {
    let bench = Bench::new();
    let worker = bench.worker();
    let keyed = || NewJob { unique_key: Some("only".to_owned()), ..noop() };
    let id = bench.enqueue(keyed());
    let is_refused_while = |status| {
        assert_eq!(bench.store.jobs().get(id).unwrap().status, status);
        let refused = bench.store.jobs().enqueue(vec![noop(), keyed()]).unwrap_err();
        assert!(refused.is_conflict(), "{status}: {refused}");
        assert_eq!(bench.store.jobs().count_active().unwrap(), 1, "{status}: all or none");
    };
    is_refused_while(JobStatus::Pending);
    let job = bench.claim(worker, 1).remove(0);
    is_refused_while(JobStatus::Running);
    bench.finish(worker, &job, failure());
    is_refused_while(JobStatus::Scheduled);
    bench.clock.advance_ms(600_000);
    bench.store.for_scheduler().promote_due().unwrap();
    let job = bench.claim(worker, 1).remove(0);
    bench.finish(worker, &job, success());
    bench.enqueue(keyed());
}

/// Other programs may write invalid rows. Such a job fails alone, and does not block others.
#[test]
fn an_invalid_job_fails_alone() {
    let bench = Bench::new();
    let worker = bench.worker();
    let raw = bench.raw();
    let insert = "INSERT INTO jobs (kind, execute_after, attempt) VALUES ('noop', 0, 9223372036854775807)";
    let invalid: i64 = raw.value(&format!("{insert} RETURNING id"));
    bench.store.for_scheduler().promote_due().unwrap();
    let sound = bench.enqueue(noop());
    let claimed: Vec<i64> = bench.claim(worker, 10).iter().map(|job| job.id).collect();
    assert_eq!(claimed, [sound]);
    let job = bench.store.jobs().get(invalid).unwrap();
    assert_eq!(job.status, JobStatus::Failed);
    assert!(job.last_error.as_deref().unwrap().contains("attempt"), "{job:?}");
}

#[test]
fn an_invalid_job_of_a_run_counts_as_failed() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![]]));
    bench.raw().execute("UPDATE jobs SET attempt = 9223372036854775807 WHERE name = 'j0'");
    let rest = bench.claim(worker, 10);
    assert_eq!(rest.len(), 1);
    bench.finish(worker, &rest[0], success());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Failed);
    bench.assert_sound();
}

#[test]
fn the_most_urgent_job_is_found_among_any_number_of_queues() {
    let bench = Bench::new();
    let worker = bench.worker();
    let queue = |number: usize| NewJob { queue: format!("q{number:03}"), ..noop() };
    let jobs = (0..300).flat_map(|number| [queue(number), queue(number)]).collect();
    bench.store.jobs().enqueue(jobs).unwrap();
    let urgent = bench.enqueue(NewJob { priority: 1_000, ..queue(299) });
    let next = bench.enqueue(NewJob { priority: 999, ..queue(299) });
    let claimed: Vec<i64> = bench.claim(worker, 3).iter().map(|job| job.id).collect();
    assert_eq!(claimed, [urgent, next, 1]);
    assert_eq!(bench.claim(worker, 1_000).len(), 599, "no job is left");
}

#[test]
fn cancelling_a_run_ends_waiting_jobs_and_stops_running_ones() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![], vec![0], vec![0]]));
    let running = bench.claim(worker, 1).remove(0);
    let cancellation = bench.store.runs().cancel(run_id).unwrap();
    assert_eq!((cancellation.cancelled, cancellation.stopping), (2, 1));
    assert_eq!(
        bench.store.for_workers().cancel_requests(worker).unwrap(),
        [(running.id, Urgency::WithGrace)]
    );
    let job = bench.store.jobs().get(running.id).unwrap();
    assert_eq!((job.status, job.last_error, job.finished_at), (JobStatus::Running, None, None));
    bench.finish(worker, &running, failure());
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Cancelled);
    bench.assert_sound();
}

#[test]
fn a_job_that_must_not_be_interrupted_is_never_prefetched() {
    let bench = Bench::new();
    let worker = bench.worker();
    let mut workflow = graph(vec![vec![], vec![], vec![]]);
    workflow.jobs[1].on_interrupt = OnInterrupt::Fail;
    workflow.jobs[2].on_interrupt = OnInterrupt::Fail;
    bench.submit(workflow);
    let take = |idle_threads| {
        let ask = ClaimRequest { idle_threads, ..request(worker, Scope::Everything, 3) };
        match bench.store.for_workers().claim(ask).unwrap() {
            Claims::Jobs(jobs) => jobs.into_iter().filter_map(|job| job.name).collect::<Vec<_>>(),
            Claims::Fenced => panic!("fenced"),
        }
    };
    assert_eq!(take(0), ["j0"], "prefetched");
    assert_eq!(take(1), ["j1"], "started at once");
    assert_eq!(take(1), ["j2"]);
}

#[test]
fn a_job_that_another_program_adds_to_a_run_does_no_harm() {
    let bench = Bench::new();
    let worker = bench.worker();
    let run_id = bench.submit(graph(vec![vec![]]));
    let columns = "run_id, name, kind, execute_after";
    bench.raw().execute(&format!("INSERT INTO jobs ({columns}) VALUES ({run_id}, 'guest', 'noop', 0)"));
    bench.store.for_scheduler().promote_due().unwrap();
    let jobs = bench.claim(worker, 10);
    assert_eq!(jobs.len(), 2);
    let ends: Vec<_> = jobs.into_iter().map(|job| (worker, job, success())).collect();
    assert!(bench.finish_all(&ends).conflicts.is_empty(), "both are finished");
    assert_eq!(bench.store.runs().get(run_id).unwrap().status, RunStatus::Successful);
}

#[test]
fn a_finish_wakes_claimers_only_if_jobs_remain_claimable() {
    let bench = Bench::new();
    let worker = bench.worker();
    bench.submit(graph(vec![vec![], vec![0], vec![1], vec![1]]));
    let first = bench.claim(worker, 1).remove(0);
    // The wake-up of the submission comes before the claim returns.
    let listener = bench.store.listen(WakeUps::PENDING);
    let next = |job: ClaimedJob| {
        let finish = support::finish(worker, &job, success());
        let ask = request(worker, Scope::Everything, 1);
        match bench.store.for_workers().finish_and_claim(vec![finish], Some(ask)).unwrap().1 {
            Claims::Jobs(mut jobs) => jobs.remove(0),
            Claims::Fenced => panic!("fenced"),
        }
    };
    let second = next(first);
    assert!(listener.wait(Duration::ZERO).is_empty(), "its only child was claimed in the same transaction");
    next(second);
    let heard = listener.wait(Duration::from_secs(60));
    assert!(heard.intersects(WakeUps::PENDING), "one of two children is left");
}

/// On PostgreSQL a claim locks the candidates of all its partitions, also those that it does not take. Other claims
/// have skipped those meanwhile.
#[test]
fn candidates_that_a_claim_locked_and_left_are_announced() {
    let bench = Bench::new();
    let worker = bench.worker();
    let other = NewJob { queue: "other".to_owned(), ..noop() };
    bench.store.jobs().enqueue(vec![noop(), other.clone(), noop(), other]).unwrap();
    // The wake-up of an earlier transaction is gone when the next transaction ends.
    bench.store.for_workers().heartbeat(worker).unwrap();
    let listener = bench.store.listen(WakeUps::PENDING);
    assert_eq!(bench.claim(worker, 3).len(), 3);
    let is_told = match bench.database.kind() {
        DatabaseKind::Sqlite => false,
        DatabaseKind::Postgres => true,
    };
    assert_eq!(listener.wait(Duration::ZERO).intersects(WakeUps::PENDING), is_told);
}

/// A database whose transactions wait before they begin, by the test's clock.
struct Busy {
    database: Arc<dyn Database>,
    clock: Clock,
}

const WAIT_MS: i64 = 500;

impl Database for Busy {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.database.read(operation)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
        self.clock.advance_ms(WAIT_MS);
        self.database.write(name, operation, recovery)
    }

    fn wake_ups(&self) -> &WakeUpChannel {
        self.database.wake_ups()
    }

    fn watch(&self) {
        self.database.watch();
    }

    fn capabilities(&self) -> Capabilities {
        self.database.capabilities()
    }
}

/// Otherwise a job that starts when another has ended could be dated before that end, and a limit would seem broken.
#[test]
fn starts_and_ends_are_dated_when_their_transaction_begins() {
    let bench = Bench::new();
    let worker = bench.worker();
    let (first, second) = (bench.enqueue(noop()), bench.enqueue(noop()));
    let database =
        Arc::new(Busy { database: support::open(&bench.database, &bench.clock), clock: bench.clock.clone() });
    let store = Store::new(database, bench.clock.clone(), Random::from_seed(1));
    let ask = || request(worker, Scope::Everything, 1);
    let Claims::Jobs(jobs) = store.for_workers().claim(ask()).unwrap() else { panic!("fenced") };
    assert_eq!(store.jobs().get(first).unwrap().started_at, Some(bench.clock.now_ms()));
    let finish = support::finish(worker, &jobs[0], success());
    store.for_workers().finish_and_claim(vec![finish], Some(ask())).unwrap();
    let now_ms = Some(bench.clock.now_ms());
    assert_eq!(store.jobs().get(first).unwrap().finished_at, now_ms);
    assert_eq!(store.jobs().get(second).unwrap().started_at, now_ms);
}

/// Rows are written in sets, and values that all of them share are passed once. Each row must still get its own
/// values.
#[test]
fn each_of_many_jobs_gets_its_own_and_the_shared_values() {
    let bench = Bench::new();
    let worker = bench.worker();
    let job = |index: i64| NewJob { payload: index.to_string(), ..noop() };
    type Shape = fn(i64, NewJob) -> NewJob;
    let shapes: [(&str, Shape); 5] = [
        ("only the payload differs", |_index, job| job),
        ("all have a timeout", |_index, job| NewJob { timeout_ms: Some(7_000), ..job }),
        ("the last one differs", |index, job| NewJob { timeout_ms: (index == 599).then_some(7_000), ..job }),
        ("the first one differs", |index, job| NewJob {
            max_attempts: if index == 0 { 1 } else { 2 },
            ..job
        }),
        ("every third is urgent", |index, job| NewJob { priority: i64::from(index % 3 == 0), ..job }),
    ];
    for (what, shape) in shapes {
        let jobs: Vec<NewJob> = (0..600).map(|index| shape(index, job(index))).collect();
        let ids = bench.store.jobs().enqueue(jobs.clone()).unwrap();
        let mut claimed = bench.claim(worker, 1_000);
        claimed.sort_unstable_by_key(|claimed| claimed.id);
        assert_eq!(claimed.iter().map(|claimed| claimed.id).collect::<Vec<_>>(), ids, "{what}");
        for (claimed, job) in claimed.iter().zip(&jobs) {
            assert_eq!(claimed.payload, job.payload, "{what}");
            assert_eq!(
                (claimed.timeout_ms, claimed.retry_state.max_attempts),
                (job.timeout_ms, job.max_attempts),
                "{what}"
            );
            assert_eq!(claimed.retry_state.attempt, 1, "{what}");
        }
        // The attempts end with different outcomes.
        let output_of = |index: usize| (!index.is_multiple_of(7)).then(|| format!("\"{index}\""));
        let end_of = |index: usize| match output_of(index) {
            Some(output) => Outcome::Successful { output: Some(output) },
            None => failure(),
        };
        let ends: Vec<_> =
            claimed.into_iter().enumerate().map(|(index, job)| (worker, job, end_of(index))).collect();
        assert!(bench.finish_all(&ends).conflicts.is_empty(), "{what}");
        for (index, (_worker, job, _outcome)) in ends.iter().enumerate() {
            assert_eq!(bench.store.jobs().get(job.id).unwrap().output, output_of(index), "{what}: {index}");
        }
        bench.raw().execute("DELETE FROM jobs");
    }
}
