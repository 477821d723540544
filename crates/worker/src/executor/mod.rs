//! Executors: each takes a prefetched job, calls the handler of its kind, and adds the end to the results.

mod artifacts;
mod conditions;
mod outcome;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::dispatcher::{Dispatcher, wake_for_results};
use crate::handler::{Attempt, NewAttempt, OutputLog, Stop, StopCause, WakeFile, failed, failed_for_good};
use crate::shared::{EndedAttempt, NextJob, OwnedJob, RunningAttempt, Shared};
use windlass_engine::set_variables::SetVariable;
use windlass_engine::store::{Artifact, LogLine};
use windlass_engine::transition::Outcome;
use windlass_system::wake_ups::WakeUps;

/// One executor of a worker.
pub(crate) struct Executor {
    shared: Arc<Shared>,
    dispatcher: Arc<Dispatcher>,
    /// The attempts of this executor use it one after the other.
    wake_file: Arc<WakeFile>,
}

/// An attempt that has begun and has not ended.
pub struct BegunAttempt {
    owned: OwnedJob,
    attempt: Attempt,
    log: Arc<OutputLog>,
    /// Why it is not to start. A stop that is requested later is the handler's.
    stopped_before: Option<StopCause>,
    /// How long it may take by the rules of its kind, in milliseconds. The timeout of its job is apart from this.
    longest_ms: Option<i64>,
    started_us: i64,
}

impl BegunAttempt {
    /// The attempt.
    #[must_use]
    pub fn attempt(&self) -> &Attempt {
        &self.attempt
    }

    /// How long it may take by the rules of its kind, in milliseconds, as a request has its own timeout.
    #[must_use]
    pub fn longest_ms(&self) -> Option<i64> {
        self.longest_ms
    }
}

/// What an executed attempt came to.
struct ExecutedAttempt {
    outcome: Outcome,
    /// The exit code of its process, if it had one and no signal ended it.
    exit_code: Option<i64>,
    /// Lines that are not known to be in the database.
    logs: Vec<LogLine>,
    artifacts: Vec<Artifact>,
    variables: Vec<SetVariable>,
}

impl Executor {
    pub(crate) fn new(shared: Arc<Shared>, dispatcher: Arc<Dispatcher>) -> Executor {
        Executor { shared, dispatcher, wake_file: Arc::default() }
    }

    /// What an executor's thread does until the worker ends.
    pub(crate) fn run(&self) {
        loop {
            match self.shared.prefetched.wait_for_next(self.shared.clock()) {
                NextJob::Job(owned) => self.end(self.begin(owned)),
                NextJob::Nothing => {}
                NextJob::End => return,
            }
        }
    }

    /// One step of an executor: executes the next prefetched job. Returns whether there was one.
    pub(crate) fn step(&self) -> bool {
        let begun = self.begin_next();
        let has_begun = begun.is_some();
        if let Some(begun) = begun {
            self.end(begun);
        }
        has_begun
    }

    /// Begins the attempt of the next prefetched job, if there is one.
    pub(crate) fn begin_next(&self) -> Option<BegunAttempt> {
        match self.shared.prefetched.take_next(self.shared.clock()) {
            NextJob::Job(owned) => Some(self.begin(owned)),
            NextJob::Nothing | NextJob::End => None,
        }
    }

    /// Calls the handler of an attempt, and hands its end back.
    pub(crate) fn end(&self, begun: BegunAttempt) {
        let clock = self.shared.clock();
        let ExecutedAttempt { outcome, exit_code, logs, artifacts, variables } = self.execute(&begun);
        let BegunAttempt { owned, started_us, .. } = begun;
        self.note_resources(&outcome, started_us / 1_000);
        let ended_us = clock.monotonic_us();
        if outcome.has_begun() {
            self.shared.store.measurements().job_runs_of(&owned.job.queue).observe_us(ended_us - started_us);
        }
        let ended = EndedAttempt { owned, outcome, exit_code, logs, artifacts, variables };
        let waiting = self.shared.results.add(ended, ended_us - started_us, ended_us);
        self.write_results(waiting);
    }

    /// What the system refused to one attempt it will refuse to the next as well.
    fn note_resources(&self, outcome: &Outcome, started_ms: i64) {
        if let Outcome::OutOfResources { reason } = outcome {
            self.shared.note_refusal(reason);
        } else if outcome.has_begun() {
            self.shared.shortage.started(started_ms);
        }
    }

    /// Has the results written; `waiting` is their number. An executor that finds no prefetched job writes all of them
    /// itself, unless another thread has the dispatcher's role.
    fn write_results(&self, waiting: usize) {
        if !self.dispatcher.take_turn_of_executor() {
            wake_for_results(&self.shared, waiting);
        }
    }

    fn begin(&self, owned: OwnedJob) -> BegunAttempt {
        let shared = &*self.shared;
        let clock = shared.clock();
        let started_us = clock.monotonic_us();
        let log = Arc::new(OutputLog::new(owned.job.id, owned.job.retry_state.attempt));
        let stop = Stop::with_wake_file(&self.wake_file);
        let timeout_ms = owned.job.timeout_ms;
        let deadline_ms = timeout_ms.map(|timeout_ms| clock.monotonic_ms().saturating_add(timeout_ms));
        let (running_stop, running_log) = (stop.clone(), Arc::clone(&log));
        let worker_id = owned.worker_id;
        let running = RunningAttempt { stop: running_stop, log: running_log, deadline_ms, worker_id };
        shared.running.begin(&owned, running, || clock.monotonic_ms());
        if deadline_ms.is_some() {
            shared.deadline_monitor.raise(WakeUps::EXECUTOR);
        }
        let attempt = self.attempt(&owned, &stop, &log);
        let handler = shared.handlers.get(&owned.job.kind);
        let longest_ms = handler.and_then(|handler| handler.longest_ms(&attempt));
        BegunAttempt { owned, attempt, log, stopped_before: stop.cause(), longest_ms, started_us }
    }

    fn execute(&self, begun: &BegunAttempt) -> ExecutedAttempt {
        let shared = &*self.shared;
        let clock = shared.clock();
        let BegunAttempt { owned, attempt, log, stopped_before, .. } = begun;
        let stop = attempt.stop();
        let outcome = match stopped_before {
            Some(_requested_before) => Outcome::Unstarted,
            None => self.call_handler(attempt),
        };
        let cause_seen = stop.cause();
        // Its conditions are asked about an attempt that runs, so that the end of the worker stops this too.
        let (outcome, variables) =
            conditions::judge(attempt, outcome::decide(outcome, cause_seen, cause_seen));
        let (outcome, artifacts) = artifacts::keep(attempt, outcome);
        let cause = shared.running.end(owned, || clock.monotonic_ms());
        let outcome = outcome::mask(outcome::decide(outcome, cause_seen, cause), attempt.masker());
        ExecutedAttempt {
            variables: outcome::variables_of(&outcome, variables, attempt.masker()),
            outcome,
            exit_code: attempt.exit_code(),
            logs: log.take_rest(clock.now_ms()),
            artifacts,
        }
    }

    fn attempt(&self, owned: &OwnedJob, stop: &Stop, log: &Arc<OutputLog>) -> Attempt {
        let shared = &*self.shared;
        Attempt::new(NewAttempt {
            job: owned.job.clone(),
            store: shared.store.clone(),
            run_contexts: Arc::clone(&shared.run_contexts),
            instance: Arc::clone(&shared.instance),
            stop: stop.clone(),
            log: Arc::clone(log),
            log_writer: shared.log_writer.clone(),
            grace_ms: shared.options.grace_ms,
        })
    }

    fn call_handler(&self, attempt: &Attempt) -> Outcome {
        let kind = &attempt.job().kind;
        let Some(handler) = self.shared.handlers.get(kind) else {
            return failed_for_good(format!("this worker has no handler for kind `{kind}`"));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_worker::TestWorker;

    /// Jobs that run, claimed by a turn of an executor.
    fn running(worker: &TestWorker, count: usize) -> Vec<OwnedJob> {
        worker.enqueue(count, "null");
        assert!(worker.dispatcher.take_turn_of_executor());
        let running = (0..count).map(|_job| worker.take()).collect();
        let _before = worker.wake_ups_of_dispatcher();
        running
    }

    /// Ends a job and returns the wake-ups of the dispatcher.
    fn end(worker: &TestWorker, owned: OwnedJob) -> WakeUps {
        let waiting = worker.end(owned, None);
        worker.executor.write_results(waiting);
        worker.wake_ups_of_dispatcher()
    }

    #[test]
    fn an_executor_that_finds_no_prefetched_job_writes_the_result_at_once() {
        let worker = TestWorker::new(3);
        for (index, owned) in running(&worker, 3).into_iter().enumerate() {
            end(&worker, owned);
            assert_eq!((worker.results_waiting(), worker.successful()), (0, index as i64 + 1));
        }
    }

    #[test]
    fn while_prefetched_jobs_wait_the_dispatcher_is_woken_by_the_first_result_and_writes_all() {
        let worker = TestWorker::new(3);
        worker.enqueue(3, "null");
        assert!(worker.dispatcher.take_turn_of_executor());
        let (first, second) = (worker.take(), worker.take());
        let _before = worker.wake_ups_of_dispatcher();
        assert_eq!(end(&worker, first), WakeUps::EXECUTOR);
        assert_eq!(end(&worker, second), WakeUps::NONE);
        assert_eq!((worker.results_waiting(), worker.successful()), (2, 0));
    }
}
