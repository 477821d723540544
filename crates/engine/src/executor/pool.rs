//! Executor threads: take a claimed job, run its handler, hand the result back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::attempt::Attempt;
use super::handler::{failed, failed_for_good};
use super::output_log::OutputLog;
use super::shared::{Done, Held, Running, Shared};
use super::stop::{Stop, StopCause};
use crate::transition::Outcome;

/// What each executor thread does until the worker ends.
pub(super) fn serve(shared: &Shared) {
    while let Some(held) = shared.next_held() {
        let started_us = shared.store.clock().monotonic_us();
        let (outcome, logs) = if shared.lease_is_over() {
            // Somebody may own it by now. If nobody does, it is claimed again right away.
            (Outcome::Unstarted, Vec::new())
        } else {
            execute(shared, &held)
        };
        let elapsed_us = shared.store.clock().monotonic_us() - started_us;
        shared.hand_back(Done { held, outcome, logs }, elapsed_us);
    }
}

fn execute(shared: &Shared, held: &Held) -> (Outcome, Vec<crate::store::LogLine>) {
    let clock = shared.store.clock();
    let log = Arc::new(OutputLog::new(held.job.id, held.job.facts.attempt));
    let stop = Stop::default();
    let deadline_ms = held.job.timeout_ms.map(|timeout_ms| clock.monotonic_ms().saturating_add(timeout_ms));
    shared.begin(held, Running { stop: stop.clone(), log: Arc::clone(&log), deadline_ms });
    let attempt = Attempt {
        job: held.job.clone(),
        store: shared.store.clone(),
        instance: Arc::clone(&shared.instance),
        stop: stop.clone(),
        log: Arc::clone(&log),
        warden: shared.warden.clone(),
        grace_ms: shared.options.grace_ms,
        scratch: Arc::clone(&shared.scratch),
        keeper: Arc::clone(&shared.keeper),
    };
    let outcome = run_handler(shared, &attempt);
    shared.end_attempt(held);
    (judge(outcome, stop.cause()), log.take_rest(clock.now_ms()))
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

/// What a handler's outcome means when it was asked to stop. Work that was done stays done.
fn judge(outcome: Outcome, cause: Option<StopCause>) -> Outcome {
    let error = match &outcome {
        Outcome::Successful { .. } | Outcome::Unstarted => return outcome,
        Outcome::Failed { error, .. }
        | Outcome::TimedOut { error }
        | Outcome::Cancelled { error }
        | Outcome::Interrupted { error } => error.clone(),
    };
    match cause {
        None => outcome,
        Some(StopCause::Cancelled) => Outcome::Cancelled { error },
        Some(StopCause::TimedOut) => Outcome::TimedOut { error },
        Some(StopCause::Leaving | StopCause::Fenced) => Outcome::Interrupted { error },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
