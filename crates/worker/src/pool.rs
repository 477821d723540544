//! Executor threads: take a claimed job, run its handler, hand the result back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::attempt::Attempt;
use super::dispatcher;
use super::handler::{failed, failed_for_good};
use super::output_log::OutputLog;
use super::prefetch_buffer::{Next, OwnedJob};
use super::results::Done;
use super::running::Running;
use super::shared::Shared;
use super::stop::{Bell, Stop, StopCause};
use windlass_engine::store::LogLine;
use windlass_engine::transition::Outcome;
use windlass_system::wake_ups::WakeUps;

/// What each executor thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    let clock = shared.store.clock();
    let bell = Arc::new(Bell::default());
    loop {
        match shared.prefetched.next(clock) {
            Next::Job(owned) => {
                let started_us = clock.monotonic_us();
                let (outcome, logs) = execute(shared, &owned, &bell);
                note_shortage(shared, &outcome, started_us / 1_000);
                let ended_us = clock.monotonic_us();
                let waiting =
                    shared.results.add(Done { owned, outcome, logs }, ended_us - started_us, ended_us);
                hand_back(shared, waiting);
            }
            Next::End => return,
        }
    }
}

/// What was lacking for one attempt is lacking for the next as well.
fn note_shortage(shared: &Shared, outcome: &Outcome, started_ms: i64) {
    if let Outcome::OutOfResources { reason } = outcome {
        shared.refused(reason);
    } else if outcome.has_begun() {
        shared.shortage.served(started_ms);
    }
}

/// Has a result written, of which so many wait now. An executor that finds no claimed job left writes all of them, unless
/// another thread has the dispatcher's role.
fn hand_back(shared: &Shared, waiting: usize) {
    if !dispatcher::take_turn(shared) && dispatcher::wakes_dispatcher(waiting) {
        shared.dispatcher.raise(WakeUps::EXECUTOR);
    }
}

fn execute(shared: &Shared, owned: &OwnedJob, bell: &Arc<Bell>) -> (Outcome, Vec<LogLine>) {
    let clock = shared.store.clock();
    let log = Arc::new(OutputLog::new(owned.job.id, owned.job.retry_state.attempt));
    let stop = Stop::with_bell(bell);
    let deadline_ms = owned.job.timeout_ms.map(|timeout_ms| clock.monotonic_ms().saturating_add(timeout_ms));
    let worker_id = owned.worker_id;
    let running = Running { stop: stop.clone(), log: Arc::clone(&log), deadline_ms, worker_id };
    shared.running.begin(owned, running, || clock.monotonic_ms());
    if deadline_ms.is_some() {
        shared.deadline_monitor.raise(WakeUps::EXECUTOR);
    }
    let outcome = match stop.cause() {
        Some(_stopped_before) => Outcome::Unstarted,
        None => run_handler(shared, &attempt(shared, owned, &stop, &log)),
    };
    let asked = stop.cause();
    let cause = shared.running.end(owned, || clock.monotonic_ms());
    let outcome = match (asked, cause) {
        (None, Some(StopCause::Fenced)) => judge(unasked(outcome), cause),
        (_, _) => judge(outcome, cause),
    };
    (outcome, log.take_rest(clock.now_ms()))
}

fn attempt(shared: &Shared, owned: &OwnedJob, stop: &Stop, log: &Arc<OutputLog>) -> Attempt {
    Attempt {
        job: owned.job.clone(),
        store: shared.store.clone(),
        contexts: Arc::clone(&shared.contexts),
        instance: Arc::clone(&shared.instance),
        stop: stop.clone(),
        log: Arc::clone(log),
        log_writer: shared.log_writer.clone(),
        reaper: Arc::clone(&shared.reaper),
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

/// The reaper has ended the processes of an attempt that nobody could ask to stop.
fn unasked(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Failed { error, repeat } => {
            Outcome::Failed { error: format!("its worker's lease was over: {error}"), repeat }
        }
        Outcome::Successful { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted
        | Outcome::OutOfResources { .. } => outcome,
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
        (Outcome::OutOfResources { .. }, None | Some(StopCause::TimedOut)) => return outcome,
        (Outcome::OutOfResources { .. }, Some(StopCause::Leaving | StopCause::Fenced)) => {
            return Outcome::Unstarted;
        }
        (Outcome::OutOfResources { reason }, Some(StopCause::Cancelled | StopCause::Killed)) => {
            reason.clone()
        }
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

    /// Jobs that run, claimed by whoever has the dispatcher's role.
    fn running(sample: &Sample, count: usize) -> Vec<OwnedJob> {
        sample.enqueue(count, "null");
        assert!(dispatcher::take_turn(&sample.shared));
        let running = (0..count).map(|_job| sample.take()).collect();
        let _of_the_beginning = sample.heard();
        running
    }

    /// Ends a job; returns what the dispatcher heard.
    fn end(sample: &Sample, owned: OwnedJob) -> WakeUps {
        let waiting = sample.add_end(owned, None);
        hand_back(&sample.shared, waiting);
        sample.heard()
    }

    #[test]
    fn an_executor_that_finds_no_job_left_writes_the_result_at_once() {
        let sample = Sample::new(3);
        for (place, owned) in running(&sample, 3).into_iter().enumerate() {
            end(&sample, owned);
            assert_eq!((sample.waiting(), sample.written()), (0, place as i64 + 1));
        }
    }

    #[test]
    fn while_claimed_jobs_wait_results_are_left_to_the_dispatcher_which_hears_of_the_first() {
        let sample = Sample::new(3);
        sample.enqueue(3, "null");
        assert!(dispatcher::take_turn(&sample.shared));
        let (first, second) = (sample.take(), sample.take());
        let _of_the_beginning = sample.heard();
        assert_eq!(end(&sample, first), WakeUps::EXECUTOR);
        assert_eq!(end(&sample, second), WakeUps::NONE);
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

    #[test]
    fn what_the_worker_lacked_is_no_failure_whatever_it_was_asked() {
        let lacking = || Outcome::OutOfResources { reason: "no more files".to_owned() };
        for (cause, expected) in [
            (None, lacking()),
            (Some(StopCause::TimedOut), lacking()),
            (Some(StopCause::Leaving), Outcome::Unstarted),
            (Some(StopCause::Fenced), Outcome::Unstarted),
            (Some(StopCause::Cancelled), Outcome::Cancelled { error: "no more files".to_owned() }),
        ] {
            assert_eq!(judge(lacking(), cause), expected, "{cause:?}");
        }
    }
}
