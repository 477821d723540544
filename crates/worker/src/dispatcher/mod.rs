//! The dispatcher: writes the results of ended attempts and claims jobs, both in one transaction.
//!
//! It is a role, and one thread at a time has it. An executor that has ended its attempt and finds no other job takes
//! the role for one turn: it writes its result and executes what the same transaction claimed. So a chain of jobs
//! needs no other thread. The dispatcher's own thread does everything else: it is woken for new jobs, waits, retries when
//! the database can't be used, and ends the worker.
//!
//! The way of a job: `claim` claims it and puts it into the prefetch buffer; an executor takes it from there, executes
//! it and adds its end to the results; `turn` collects the results, and `finish` writes them.

mod ask;
mod batch_delay;
mod claim;
mod decided_end;
mod finish;
mod finish_and_claim;
mod in_flight;
mod in_flight_check;
mod operator_log;
mod outage;
mod prefetch_controller;
mod shortage_pause;
mod state;
mod turn;

use std::sync::{Arc, Mutex, TryLockError};
use std::time::Duration;

use crate::shared::{AddedBy, Mode, Shared};
use state::{DispatcherState, POLL_MS};
use turn::{Turn, TurnEnd};
use windlass_db::error::{Error, Result};
use windlass_system::steps::{NextStep, run_steps};
use windlass_system::wake_ups::WakeUps;

/// Prefetched jobs that no executor takes within this time are given back.
const STUCK_MS: i64 = 50;

/// The dispatcher of one worker.
pub(crate) struct Dispatcher {
    shared: Arc<Shared>,
    /// The thread that holds it has the role.
    state: Mutex<DispatcherState>,
}

impl Dispatcher {
    pub(crate) fn new(shared: Arc<Shared>) -> Dispatcher {
        let state = Mutex::new(DispatcherState::new(shared.clock().monotonic_ms()));
        Dispatcher { shared, state }
    }

    /// What the dispatcher's thread does until the worker ends.
    ///
    /// # Errors
    /// Why the worker gave up.
    pub(crate) fn run(&self) -> Result<()> {
        let shared = &*self.shared;
        // The guard works after a panic too. Without a dispatcher the worker must not execute jobs or renew its lease.
        let _end = EndWorker { shared };
        let mut result = Ok(());
        run_steps(shared.clock(), &shared.dispatcher, |wake_ups| {
            self.step(wake_ups).unwrap_or_else(|error| {
                tracing::error!(worker_id = shared.worker_id(), %error, "the worker gives up");
                result = Err(error);
                NextStep::Never
            })
        });
        result
    }

    /// One step of the dispatcher's thread.
    ///
    /// # Errors
    /// Why the worker has to end.
    pub(crate) fn step(&self, wake_ups: WakeUps) -> Result<NextStep> {
        let shared = &*self.shared;
        if let Some(delay) = batch_delay::delay_left(shared, wake_ups) {
            return Ok(NextStep::After(delay));
        }
        // If an executor has the role, its turn ends first.
        let state = self.state.lock().map_err(|_poisoned| panicked())?;
        let mut turn = Turn { shared, state, by: AddedBy::Dispatcher };
        if let Some(failure) = turn.state.failure.take().or_else(|| shared.failure()) {
            return Err(failure);
        }
        shortage_pause::check_patience(shared)?;
        turn.hear(wake_ups);
        if let Some(pause) = turn.outage_pause() {
            return Ok(NextStep::After(pause));
        }
        match turn.make_and_end_worker_if_done() {
            Ok(TurnEnd::MoreToDo) => Ok(NextStep::Now),
            Ok(TurnEnd::NothingToDo) => Ok(NextStep::After(idle_wait(shared))),
            Ok(TurnEnd::WorkerHasEnded) => Ok(NextStep::Never),
            Err(error) => turn.wait_or_give_up(error).map(NextStep::After),
        }
    }

    /// Takes the role for one turn in the thread of an executor, if nobody has it and no prefetched job waits.
    /// Returns whether it did.
    pub(crate) fn take_turn_of_executor(&self) -> bool {
        let shared = &*self.shared;
        if shared.mode() != Mode::Working || !shared.prefetched.is_empty() {
            return false;
        }
        let state = match self.state.try_lock() {
            // While the database can't be used, the dispatcher's thread alone tries.
            Ok(state) if state.failure.is_none() && state.outage.is_none() => state,
            Ok(_) | Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
        };
        let _end = LeaveOnPanic { shared };
        let mut turn = Turn { shared, state, by: AddedBy::Executor };
        let made = turn.make();
        let needs_dispatcher = made.is_err() || shared.prefetched.len() > 1 || turn.may_claim_more();
        if let Err(error) = made
            && let Err(lasting) = turn.wait_or_give_up(error)
        {
            turn.state.failure = Some(lasting);
        }
        drop(turn);
        if needs_dispatcher {
            shared.dispatcher.raise(WakeUps::EXECUTOR);
        }
        true
    }
}

/// Wakes the dispatcher after a result was added, if it has to be woken. `waiting` is the number of results.
pub(crate) fn wake_for_results(shared: &Shared, waiting: usize) {
    if batch_delay::wakes_dispatcher(waiting) {
        shared.dispatcher.raise(WakeUps::EXECUTOR);
    }
}

/// How long the dispatcher waits when there is nothing to do.
fn idle_wait(shared: &Shared) -> Duration {
    let longest_ms = if shared.prefetched.is_empty() { POLL_MS } else { STUCK_MS };
    let wait_ms = shortage_pause::left_ms(shared).map_or(longest_ms, |pause_ms| pause_ms.min(longest_ms));
    Duration::from_millis(wait_ms.unsigned_abs())
}

fn panicked() -> Error {
    Error::internal("run a worker", "the dispatcher panicked")
}

/// Ends the worker with its dispatcher.
struct EndWorker<'a> {
    shared: &'a Shared,
}

impl Drop for EndWorker<'_> {
    fn drop(&mut self) {
        self.shared.advance_mode(Mode::Leaving);
        self.shared.end();
    }
}

/// Ends the worker if an executor panics while it has the dispatcher's role.
struct LeaveOnPanic<'a> {
    shared: &'a Shared,
}

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.advance_mode(Mode::Leaving);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::MutexGuard;

    use super::*;
    use crate::test_worker::TestWorker;
    use windlass_engine::status::JobStatus;

    impl TestWorker {
        pub(super) fn state(&self) -> MutexGuard<'_, DispatcherState> {
            self.dispatcher.state.lock().unwrap()
        }

        /// A thread takes the dispatcher's role and does something with it.
        pub(super) fn with_turn<T>(&self, by: AddedBy, action: impl FnOnce(&mut Turn<'_>) -> T) -> T {
            action(&mut Turn { shared: &self.shared, state: self.state(), by })
        }

        /// A thread takes the dispatcher's role for one turn.
        pub(crate) fn turn(&self, by: AddedBy) {
            self.with_turn(by, |turn| turn.make()).unwrap();
        }

        fn step(&self, wake_ups: WakeUps) -> NextStep {
            self.dispatcher.step(wake_ups).unwrap()
        }
    }

    const IDLE: NextStep = NextStep::After(Duration::from_millis(POLL_MS.unsigned_abs()));

    #[test]
    fn a_job_is_claimed_executed_and_finished_step_by_step_and_the_worker_ends() {
        let worker = TestWorker::new(1);
        assert_eq!(worker.step(WakeUps::NONE), IDLE);
        worker.enqueue(2, "null");
        assert_eq!(worker.step(WakeUps::NONE), IDLE, "nobody woke it, and it is not time for the poll");
        assert_eq!(worker.step(WakeUps::PENDING), NextStep::Now);
        assert_eq!((worker.count(JobStatus::Running), worker.count(JobStatus::Pending)), (1, 1));
        assert!(worker.executor.step() && worker.executor.step(), "its turn claims the next job");
        assert!(!worker.executor.step());
        assert_eq!(worker.successful(), 2);
        assert_eq!(worker.step(WakeUps::NONE), IDLE);
        worker.shared.advance_mode(Mode::Draining);
        assert_eq!(worker.step(WakeUps::STOP), NextStep::Never);
    }

    #[test]
    fn a_worker_that_hears_of_nothing_finds_jobs_by_the_poll() {
        let worker = TestWorker::new(1);
        assert_eq!(worker.step(WakeUps::NONE), IDLE);
        worker.enqueue(1, "null");
        worker.shared.clock().advance_ms(POLL_MS - 1);
        assert_eq!(worker.step(WakeUps::NONE), IDLE);
        worker.shared.clock().advance_ms(1);
        assert_eq!(worker.step(WakeUps::NONE), NextStep::Now);
        assert_eq!(worker.count(JobStatus::Running), 1);
    }

    #[test]
    fn a_prefetched_job_that_no_executor_takes_in_time_is_given_back() {
        let worker = TestWorker::new(1);
        worker.enqueue(2, "null");
        worker.state().prefetch.observe_times(1, 0);
        assert_eq!(worker.step(WakeUps::PENDING), NextStep::Now);
        let _runs_for_long = worker.take();
        let stuck = Duration::from_millis(STUCK_MS.unsigned_abs());
        assert_eq!(worker.step(WakeUps::NONE), NextStep::After(stuck));
        worker.shared.clock().advance_ms(STUCK_MS);
        assert_eq!(worker.step(WakeUps::NONE), NextStep::Now);
        let job = worker.shared.store.jobs().get(2).unwrap();
        assert_eq!((job.status, job.attempt), (JobStatus::Pending, 0));
        assert_eq!(worker.step(WakeUps::NONE), IDLE, "it is not claimed again while the long job runs");
    }

    #[test]
    fn a_fenced_worker_goes_on_under_a_new_id() {
        let worker = TestWorker::new(1);
        worker.enqueue(1, "null");
        worker.step(WakeUps::PENDING);
        let fenced = worker.shared.worker_id();
        worker.execute_sql("UPDATE workers SET status = 'DEAD'");
        worker.shared.fence(fenced);
        worker.step(WakeUps::FENCED);
        assert!(worker.shared.worker_id() > fenced);
        assert!(worker.shared.prefetched.is_empty(), "its job belongs to others now");
        assert_eq!(worker.state().in_flight.count(), 0);
    }
}
