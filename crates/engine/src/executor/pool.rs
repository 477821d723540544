//! Executor threads: take a claimed job, run its handler, hand the result back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempt;
use super::dispatcher;
use super::handler::{failed, failed_for_good};
use super::held::{Held, Left, Next, Round};
use super::output_log::OutputLog;
use super::results::Done;
use super::running::Running;
use super::shared::Shared;
use super::stop::{Bell, Stop, StopCause};
use crate::signal::Hints;
use crate::store::LogLine;
use crate::transition::Outcome;

/// What each executor thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let clock = shared.store.clock();
    let bell = Arc::new(Bell::default());
    let mut linger = None;
    loop {
        match shared.held.next(clock, linger.take()) {
            Next::Job(held, round) => {
                let started_us = clock.monotonic_us();
                let (outcome, logs) = execute(shared, &held, &bell);
                let ended_us = clock.monotonic_us();
                let waiting =
                    shared.results.add(Done { held, outcome, logs }, ended_us - started_us, ended_us);
                linger = hand_back(shared, round, waiting);
            }
            Next::Late => {
                if shared.results.waiting().0 > 0 && !dispatcher::take_turn(shared) {
                    shared.dispatcher.raise(Hints::EXECUTOR);
                }
            }
            Next::End => return,
        }
    }
}

/// Sees to it that an end is written, one of so many that wait. Who takes the turn writes all of them, so the last of
/// several short jobs does. Returns for how long it is waited for that one.
fn hand_back(shared: &Shared, round: Round, waiting: usize) -> Option<Duration> {
    let Left { held, awaited } = shared.held.end(round);
    let linger = if held == 0 && awaited > 0 { shared.linger() } else { None };
    // Who can't take the turn, or leaves it to others, wakes somebody who knows how long that may go on.
    if (linger.is_some() || !dispatcher::take_turn(shared))
        && dispatcher::is_to_be_told(waiting, shared.store.claim_max())
    {
        shared.dispatcher.raise(Hints::EXECUTOR);
    }
    linger
}

fn execute(shared: &Shared, held: &Held, bell: &Arc<Bell>) -> (Outcome, Vec<LogLine>) {
    let clock = shared.store.clock();
    let log = Arc::new(OutputLog::new(held.job.id, held.job.facts.attempt));
    let stop = Stop::with_bell(bell);
    let deadline_ms = held.job.timeout_ms.map(|timeout_ms| clock.monotonic_ms().saturating_add(timeout_ms));
    let worker_id = held.worker_id;
    let running = Running { stop: stop.clone(), log: Arc::clone(&log), deadline_ms, worker_id };
    shared.running.begin(held, running, || clock.monotonic_ms());
    if deadline_ms.is_some() {
        shared.warden.raise(Hints::EXECUTOR);
    }
    let outcome = match stop.cause() {
        Some(_stopped_before) => Outcome::Unstarted,
        None => run_handler(shared, &attempt(shared, held, &stop, &log)),
    };
    let asked = stop.cause();
    let cause = shared.running.end(held, || clock.monotonic_ms());
    let outcome = match (asked, cause) {
        (None, Some(StopCause::Fenced)) => judge(unasked(outcome), cause),
        (_, _) => judge(outcome, cause),
    };
    (outcome, log.take_rest(clock.now_ms()))
}

fn attempt(shared: &Shared, held: &Held, stop: &Stop, log: &Arc<OutputLog>) -> Attempt {
    Attempt {
        job: held.job.clone(),
        store: shared.store.clone(),
        contexts: Arc::clone(&shared.contexts),
        instance: Arc::clone(&shared.instance),
        stop: stop.clone(),
        log: Arc::clone(log),
        log_writer: shared.log_writer.clone(),
        keeper: Arc::clone(&shared.keeper),
        grace_ms: shared.options.grace_ms,
    }
}

fn run_handler(shared: &Shared, attempt: &Attempt) -> Outcome {
    let Some(handler) = shared.handlers.get(&attempt.job.kind) else {
        return failed_for_good(format!("this worker has no handler for kind `{}`", attempt.job.kind));
    };
    match catch_unwind(AssertUnwindSafe(|| handler.execute(attempt))) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let message = panic
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no message".to_owned());
            failed(format!("the handler panicked: {message}"))
        }
    }
}

/// The keeper has ended the processes of an attempt that nobody could ask to stop.
fn unasked(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { error, repeat } => {
            Outcome::Failed { error: format!("its worker's lease was over: {error}"), repeat }
        }
        Outcome::Successful { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted => outcome,
    }
}

/// What a handler's outcome means when it was asked to stop. Work that was done stays done. Only who was
/// asked to stop may say that it did not start: anybody else could say so for ever.
fn judge(outcome: Outcome, cause: Option<StopCause>) -> Outcome {
    let error = match (&outcome, cause) {
        (Outcome::Successful { .. }, _) => return outcome,
        (Outcome::Unstarted, Some(StopCause::Leaving | StopCause::Fenced)) => return outcome,
        (Outcome::Unstarted, Some(_)) => "it was asked to stop before it started".to_owned(),
        (Outcome::Unstarted, None) => "its handler says that it did not start".to_owned(),
        (
            Outcome::Failed { error, .. }
            | Outcome::TimedOut { error }
            | Outcome::Cancelled { error }
            | Outcome::Interrupted { error },
            _,
        ) => error.clone(),
    };
    match cause {
        None if outcome == Outcome::Unstarted => failed(error),
        None => outcome,
        Some(StopCause::Cancelled | StopCause::Killed) => Outcome::Cancelled { error },
        Some(StopCause::TimedOut) => Outcome::TimedOut { error },
        Some(StopCause::Leaving | StopCause::Fenced) => Outcome::Interrupted { error },
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    const LINGER: Duration = Duration::from_millis(1);

    /// Three jobs that run at the same time, taken by who has the dispatcher's role.
    fn three_that_run(sample: &Sample) -> [(Held, Round); 3] {
        sample.enqueue(3, "null");
        assert!(dispatcher::take_turn(&sample.shared));
        let running = [sample.take(), sample.take(), sample.take()];
        let _of_the_beginning = sample.heard();
        running
    }

    /// Ends a job; returns for how long its executor waits for others then, and what the dispatcher heard.
    fn end(sample: &Sample, (held, round): (Held, Round)) -> (Option<Duration>, Hints) {
        let waiting = sample.add_end(held, None);
        (hand_back(&sample.shared, round, waiting), sample.heard())
    }

    #[test]
    fn the_last_of_several_short_jobs_has_the_ends_of_all_written() {
        let sample = Sample::new(3);
        let [first, second, third] = three_that_run(&sample);
        sample.shared.set_linger(Some(1_000));
        assert_eq!(end(&sample, first), (Some(LINGER), Hints::EXECUTOR), "somebody knows of it");
        assert_eq!(end(&sample, second), (Some(LINGER), Hints::NONE));
        assert_eq!((sample.waiting(), sample.written()), (2, 0));
        assert_eq!(end(&sample, third).0, None);
        assert_eq!((sample.waiting(), sample.written()), (0, 3));
    }

    #[test]
    fn who_was_waited_for_in_vain_is_not_waited_for_again() {
        let sample = Sample::new(3);
        let [first, second, _long] = three_that_run(&sample);
        sample.shared.set_linger(Some(1_000));
        assert_eq!(end(&sample, first).0, Some(LINGER));
        let clock = sample.shared.store.clock();
        assert!(matches!(sample.shared.held.next(clock, Some(Duration::ZERO)), Next::Late));
        assert_eq!(end(&sample, second).0, None);
        assert_eq!((sample.waiting(), sample.written()), (0, 2));
    }

    #[test]
    fn an_end_beside_long_jobs_is_written_at_once() {
        let sample = Sample::new(3);
        let [first, second, _long] = three_that_run(&sample);
        sample.shared.set_linger(None);
        for (written, running) in [(1, first), (2, second)] {
            assert_eq!(end(&sample, running).0, None);
            assert_eq!((sample.waiting(), sample.written()), (0, written));
        }
    }

    #[test]
    fn while_jobs_are_held_ends_are_left_to_the_dispatcher_who_hears_of_the_first() {
        let sample = Sample::new(3);
        sample.enqueue(3, "null");
        assert!(dispatcher::take_turn(&sample.shared));
        let (first, second) = (sample.take(), sample.take());
        let _of_the_beginning = sample.heard();
        sample.shared.set_linger(Some(1_000));
        assert_eq!(end(&sample, first), (None, Hints::EXECUTOR), "there is a job to take");
        assert_eq!(end(&sample, second), (None, Hints::NONE));
        assert_eq!((sample.waiting(), sample.written()), (2, 0));
    }

    #[test]
    fn a_stop_decides_what_a_failure_was_but_never_takes_back_a_success() {
        let success = Outcome::Successful { output: None };
        assert_eq!(judge(success.clone(), Some(StopCause::Cancelled)), success);
        assert_eq!(judge(failed("x"), None), failed("x"));
        let as_what = |cause| judge(failed("x"), Some(cause));
        assert_eq!(as_what(StopCause::Cancelled), Outcome::Cancelled { error: "x".to_owned() });
        assert_eq!(as_what(StopCause::TimedOut), Outcome::TimedOut { error: "x".to_owned() });
        assert_eq!(as_what(StopCause::Leaving), Outcome::Interrupted { error: "x".to_owned() });
    }

    #[test]
    fn only_who_was_asked_to_stop_may_say_that_it_did_not_start() {
        assert!(matches!(judge(Outcome::Unstarted, None), Outcome::Failed { .. }));
        assert_eq!(judge(Outcome::Unstarted, Some(StopCause::Leaving)), Outcome::Unstarted);
        assert!(matches!(judge(Outcome::Unstarted, Some(StopCause::Cancelled)), Outcome::Cancelled { .. }));
    }
}
