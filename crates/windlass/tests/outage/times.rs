//! Leases and timeouts, exact to the millisecond, under a clock that the test controls.

use windlass::{Clock, JobStatus, NewJob, StopCause, WorkerOptions};

use crate::bench::{Bench, Executions, LEASE_MS, options, wait_for};
use crate::faulty::{How, Which};

/// The part of its lease that a worker uses. The rest is left for killing its jobs.
const USED_MS: i64 = LEASE_MS - LEASE_MS / 5;

fn clock() -> Clock {
    Clock::manual(1_000_000_000)
}

/// Gives every thread of a worker enough time for many rounds, by running jobs one after another.
fn let_threads_run(bench: &Bench) {
    for _job in 0..20 {
        let id = bench.enqueue("noop");
        bench.wait_for_job(id, JobStatus::Successful);
    }
}

/// Asserts that the running job is stopped when the clock shows `at_ms`, and not before.
fn assert_stopped_at(bench: &Bench, executions: &Executions, clock: &Clock, at_ms: i64, cause: StopCause) {
    clock.advance_ms(at_ms - 1 - clock.monotonic_ms());
    let_threads_run(bench);
    assert_eq!(executions.all()[0].ended, None, "a millisecond too early");
    clock.advance_ms(1);
    assert_eq!(executions.wait_for_end().1, Some(cause));
}

#[test]
fn a_lease_counts_from_the_start_of_a_renewal() {
    let clock = clock();
    let bench = Bench::with(&clock);
    let executions = Executions::default();
    let worker = bench.worker(executions.handlers(), options());
    bench.enqueue("waits");
    executions.wait_for_begin();
    let sent_at_ms = LEASE_MS / 6;
    bench.faulty.fail(Which::Write("renew a lease"), How::AnswerLate(clock.clone(), 1_000));
    clock.advance_ms(sent_at_ms);
    wait_for("the answer", || (clock.monotonic_ms() == sent_at_ms + 1_000).then_some(()));
    assert_stopped_at(&bench, &executions, &clock, sent_at_ms + USED_MS, StopCause::Fenced);
    bench.faulty.mend();
    drop(worker);
}

#[test]
fn a_lease_counts_from_the_start_of_a_registration() {
    let clock = clock();
    let bench = Bench::with(&clock);
    let executions = Executions::default();
    bench.faulty.fail(Which::Write("register a worker"), How::AnswerLate(clock.clone(), 1_000));
    bench.faulty.fail(
        Which::Write("renew a lease"),
        How::Refuse(windlass::Unavailable::Unreachable("the test says so".to_owned())),
    );
    let worker = bench.worker(executions.handlers(), options());
    bench.enqueue("waits");
    executions.wait_for_begin();
    assert_stopped_at(&bench, &executions, &clock, USED_MS, StopCause::Fenced);
    bench.faulty.mend();
    drop(worker);
}

#[test]
fn a_timeout_counts_from_the_start_of_its_attempt() {
    for step_ms in [0, 3_600_000, -3_600_000] {
        let clock = clock();
        let bench = Bench::with(&clock);
        let executions = Executions::default();
        let job = NewJob { timeout_ms: Some(60_000), max_attempts: 1, ..NewJob::new("waits", "null") };
        let id = bench.store.jobs().enqueue(vec![job]).unwrap()[0];
        clock.advance_ms(500_000);
        let worker = bench.worker(executions.handlers(), WorkerOptions { lease_ms: 3_600_000, ..options() });
        executions.wait_for_begin();
        clock.step_wall_ms(step_ms);
        assert_stopped_at(&bench, &executions, &clock, 560_000, StopCause::TimedOut);
        bench.wait_for_job(id, JobStatus::Failed);
        assert_eq!(bench.outcomes(id), [(1, "timed_out".to_owned())]);
        drop(worker);
        bench.assert_sound();
    }
}
