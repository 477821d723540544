//! The dispatcher: claims and finishes, both in one transaction. It is a role, and one thread at a time has it.
//!
//! An executor that has ended its attempt and has nothing else to do takes the role for one turn: it writes
//! its result and executes what the same transaction claimed, so a chain of jobs needs no other thread. Whatever
//! else there is to do is done by the dispatcher's own thread: it hears of new jobs, waits, and ends the worker.

mod batch_delay;
mod in_flight_check;
mod patience;
mod shortage;
mod telling;
mod writing;

use std::collections::HashSet;
use std::sync::{MutexGuard, TryLockError};
use std::time::Duration;

pub(super) use batch_delay::wakes_dispatcher;

use super::in_flight::{InFlight, Key};
use super::prefetch_buffer::{AddedBy, OwnedJob};
use super::prefetch_controller::PrefetchController;
use super::results::Done;
use super::shared::{Mode, Shared};
use super::worker::{register, worker_capabilities};
use windlass_db::error::{Error, Result};
use windlass_engine::status::WorkerStatus;
use windlass_engine::store::{ClaimRequest, ClaimedJob, Claims, Finish, Finished};
use windlass_engine::transition::{Outcome, RetryState, after_attempt};
use windlass_system::wake_ups::WakeUps;

/// The safety net under the wake_ups: how often an idle worker looks by itself.
const POLL: Duration = Duration::from_secs(5);
/// Prefetched jobs that did not start within this time go back.
const HELD_TICK: Duration = Duration::from_millis(50);

/// What the dispatcher's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) -> Result<()> {
    // Also after a panic: without a dispatcher nobody may renew the lease or execute.
    let _end = EndGuard { shared };
    let served = work(shared);
    if let Err(error) = &served {
        tracing::error!(worker_id = shared.worker_id(), %error, "the worker gives up");
    }
    served
}

fn work(shared: &Shared) -> Result<()> {
    let mut wake_ups = WakeUps::NONE;
    loop {
        // An executor that has the role ends its turn first.
        let desk = shared.desk.lock().map_err(|_poisoned| panicked())?;
        let mut dispatcher = Dispatcher { shared, desk, by: AddedBy::Dispatcher };
        if let Some(failure) = dispatcher.desk.failure.take().or_else(|| shared.failure()) {
            return Err(failure);
        }
        shortage::check_patience(shared, shared.options.patience_ms)?;
        dispatcher.heed(wake_ups)?;
        let turn = dispatcher.turn()?;
        if dispatcher.has_ended()? {
            return Ok(());
        }
        drop(dispatcher);
        wake_ups = match turn {
            Turn::Again => WakeUps::EXECUTOR,
            Turn::Rest => shared.dispatcher.wait(rest(shared)),
        };
        wake_ups = batch_delay::wait(shared, wake_ups);
    }
}

/// How long the dispatcher waits when there is nothing to do.
fn rest(shared: &Shared) -> Duration {
    let longest = if shared.prefetched.is_empty() { POLL } else { HELD_TICK };
    shortage::left(shared).map_or(longest, |pause| pause.min(longest))
}

/// Takes the role for one turn in an executor's thread, when nobody has it and nothing waits to be executed.
/// Returns whether the results that waited are written.
pub(super) fn take_turn(shared: &Shared) -> bool {
    if shared.mode() != Mode::Working || !shared.prefetched.is_empty() {
        return false;
    }
    let desk = match shared.desk.try_lock() {
        Ok(desk) if desk.failure.is_none() => desk,
        Ok(_) | Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return false,
    };
    let _end = PanicGuard { shared };
    let mut dispatcher = Dispatcher { shared, desk, by: AddedBy::Executor };
    let turned = dispatcher.turn();
    let is_left = shared.prefetched.len() > 1 || dispatcher.may_claim_more();
    let has_failed = turned.is_err();
    dispatcher.desk.failure = turned.err();
    drop(dispatcher);
    if is_left || has_failed {
        shared.dispatcher.raise(WakeUps::EXECUTOR);
    }
    true
}

fn panicked() -> Error {
    Error::internal("run a worker", "the dispatcher panicked")
}

/// Ends the worker with its dispatcher.
struct EndGuard<'a> {
    shared: &'a Shared,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.shared.advance_mode(Mode::Leaving);
        self.shared.end();
    }
}

/// Ends the worker when an executor panics that has the dispatcher's role.
struct PanicGuard<'a> {
    shared: &'a Shared,
}

impl Drop for PanicGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.advance_mode(Mode::Leaving);
        }
    }
}

/// Whether there may be something to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextClaim {
    /// A signal, the poll, or a last claim that was full.
    Now,
    /// The last claim found less than it asked for, and nothing was heard since.
    Not,
}

/// Whether jobs are claimed beyond those that start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    /// As many as the prefetch controller says.
    Prefetch,
    /// None, until a thread is free for a job that may not be prefetched: others overtook it.
    Nothing,
}

/// What the dispatcher knows. Who holds it has the role.
pub(super) struct DispatcherState {
    prefetch: PrefetchController,
    /// Attempts claimed and not finished: prefetched, running, or done and not written.
    in_flight: InFlight,
    look: NextClaim,
    holding: Holding,
    /// When to compare them with the tables.
    check_at_ms: i64,
    /// Jobs whose ends were refused since then.
    refused: HashSet<i64>,
    /// The last thing asked of the database was asked more than once: an earlier try may have been heard.
    is_repeat: bool,
    /// Why an executor had to give the role up: the worker ends with it.
    failure: Option<Error>,
}

impl DispatcherState {
    /// Nothing is claimed. `now_ms` is of the monotonic clock.
    pub(super) fn empty(now_ms: i64) -> DispatcherState {
        DispatcherState {
            prefetch: PrefetchController::default(),
            in_flight: InFlight::default(),
            look: NextClaim::Now,
            holding: Holding::Prefetch,
            check_at_ms: now_ms + in_flight_check::INTERVAL_MS,
            refused: HashSet::new(),
            is_repeat: false,
            failure: None,
        }
    }
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// Something was done, and more may be left.
    Again,
    /// There was nothing to do.
    Rest,
}

struct Dispatcher<'a> {
    shared: &'a Shared,
    desk: MutexGuard<'a, DispatcherState>,
    /// Whose thread has the role.
    by: AddedBy,
}

impl Dispatcher<'_> {
    /// Writes what is done and claims, both at once.
    fn turn(&mut self) -> Result<Turn> {
        self.check_if_due()?;
        let mode = self.shared.mode();
        let mut done = self.collect();
        if mode != Mode::Working || self.is_pausing() {
            done.extend(self.shared.prefetched.take_all().into_iter().map(unstarted));
        }
        // What is done makes room in the transaction that finishes it.
        let room = self.room(mode, self.desk.in_flight.count() - done.len() as i64);
        let can_wait = room.can_wait(self.shared.prefetched.len());
        if done.is_empty() && (can_wait || !self.may_find(room)?) {
            return Ok(Turn::Rest);
        }
        self.finish_and_claim(done, room)?;
        Ok(Turn::Again)
    }

    /// The worker was told to end, and nothing is left: says so in the tables.
    fn has_ended(&mut self) -> Result<bool> {
        if self.shared.mode() == Mode::Working || self.desk.in_flight.count() > 0 {
            return Ok(false);
        }
        self.retrying("end a worker", |shared| {
            shared.store.for_workers().set_status(shared.worker_id(), WorkerStatus::Stopped)
        })?;
        Ok(true)
    }

    /// The last claim was full, and there is room.
    fn may_claim_more(&self) -> bool {
        let room = self.room(self.shared.mode(), self.desk.in_flight.count());
        self.desk.look == NextClaim::Now && room.limit > 0
    }

    fn collect(&mut self) -> Vec<Done> {
        let batch = self.shared.results.take();
        self.desk.prefetch.observe_times(batch.executed, batch.total_us);
        self.desk.prefetch.observe_results(batch.executed, batch.total_bytes);
        batch.done
    }

    /// How many jobs may be claimed when so many are in flight.
    fn room(&self, mode: Mode, in_flight: i64) -> Room {
        let claim_max = self.shared.store.for_workers().claim_max();
        let count = |jobs: i64| usize::try_from(jobs).unwrap_or(0).min(claim_max);
        match mode {
            // What is claimed now could not be started.
            Mode::Working if self.shared.lease_is_over() || self.is_pausing() => Room { limit: 0, idle: 0 },
            Mode::Working => {
                let threads = self.shared.options.threads;
                let owned = match self.desk.holding {
                    Holding::Prefetch => self.desk.prefetch.prefetch(threads, claim_max as i64),
                    Holding::Nothing => 0,
                };
                let limit = count(threads + owned - in_flight);
                Room { limit, idle: count(threads - in_flight) }
            }
            Mode::Draining | Mode::Leaving => Room { limit: 0, idle: 0 },
        }
    }

    /// Looking costs no write lock: several idle workers wake for one job.
    fn may_find(&mut self, room: Room) -> Result<bool> {
        match self.desk.look {
            NextClaim::Now => {
                let found = self.retrying("look for jobs", |shared| {
                    shared.store.for_workers().has_claimable(&request(shared, room))
                })?;
                if !found {
                    self.desk.look = NextClaim::Not;
                }
                Ok(found)
            }
            NextClaim::Not => Ok(false),
        }
    }

    /// Takes in what was heard. Nothing heard is the poll.
    fn heed(&mut self, wake_ups: WakeUps) -> Result<()> {
        if wake_ups.intersects(WakeUps::FENCED) && self.shared.running.is_lost(self.shared.worker_id()) {
            return self.register_anew();
        }
        self.give_back_stuck();
        if wake_ups.intersects(WakeUps::PENDING) || wake_ups.is_empty() {
            self.desk.look = NextClaim::Now;
        }
        Ok(())
    }

    /// A long job must not keep others hostage in this worker's memory.
    fn give_back_stuck(&mut self) {
        let now_ms = self.shared.store.clock().monotonic_ms();
        let stuck = self.shared.prefetched.take_stuck(now_ms, HELD_TICK.as_millis() as i64);
        if !stuck.is_empty() {
            self.desk.prefetch.forget_times();
        }
        for owned in stuck {
            let now_us = self.shared.store.clock().monotonic_us();
            let _heard_here = self.shared.results.add(unstarted(owned), 0, now_us);
        }
    }

    fn finish_and_claim(&mut self, done: Vec<Done>, room: Room) -> Result<()> {
        let keys: Vec<(Key, bool)> =
            done.iter().map(|done| (done.owned.key(), done.outcome.has_begun())).collect();
        let worker_id = self.shared.worker_id();
        let owned: Vec<i64> = done
            .iter()
            .filter(|done| done.owned.worker_id == worker_id)
            .map(|done| done.owned.job.id)
            .collect();
        let finishes: Vec<Finish> = done.into_iter().map(|done| self.decide(done)).collect();
        let (finished, claims) = self.write(finishes, room)?;
        for (key, has_begun) in keys {
            if has_begun {
                self.desk.in_flight.end(key);
            } else {
                self.desk.in_flight.drop(key);
            }
        }
        self.report(&finished);
        self.expect_renumbered(&finished, &owned);
        self.take_in(claims, room)
    }

    /// Executes what was claimed for such room.
    fn take_in(&mut self, claims: Claims, room: Room) -> Result<()> {
        match claims {
            Claims::Fenced => self.register_anew(),
            Claims::Jobs(jobs) => {
                self.desk.look =
                    if room.limit > 0 && jobs.len() < room.limit { NextClaim::Not } else { NextClaim::Now };
                if jobs.iter().any(|job| job.has_overtaken) {
                    self.desk.holding = Holding::Nothing;
                } else if room.idle > 0 {
                    self.desk.holding = Holding::Prefetch;
                }
                self.take_over(jobs);
                Ok(())
            }
        }
    }

    /// An end that is refused may be that of an attempt whose number another program changed: its row would stay
    /// RUNNING.
    fn expect_renumbered(&mut self, finished: &Finished, owned: &[i64]) {
        if !self.desk.is_repeat && !finished.conflicts.is_empty() {
            // What was claimed under an identity that is gone belongs to others.
            self.desk.refused.extend(finished.conflicts.iter().filter(|job_id| owned.contains(job_id)));
            self.desk.check_at_ms = self.shared.store.clock().monotonic_ms();
        }
    }

    fn report(&self, finished: &Finished) {
        for job_id in &finished.conflicts {
            if self.desk.is_repeat {
                tracing::info!(
                    job_id,
                    "the result was recorded by an earlier try, or somebody else owns the job"
                );
            } else {
                tracing::warn!(job_id, "another worker owns the job by now: the result was discarded");
            }
        }
        finished.ended_runs.iter().for_each(telling::run_ended);
    }

    fn take_over(&mut self, jobs: Vec<ClaimedJob>) {
        let worker_id = self.shared.worker_id();
        let payload_bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
        self.desk.prefetch.observe_payloads(jobs.len() as i64, payload_bytes as i64);
        jobs.iter().for_each(telling::run_started);
        // What runs already is not started a second time: its claim was lost, and now made good.
        let news: Vec<ClaimedJob> = jobs
            .into_iter()
            .filter(|job| self.desk.in_flight.add((job.id, job.retry_state.attempt), worker_id))
            .collect();
        if !news.is_empty() {
            self.shared.hold(news, self.by);
        }
    }

    fn decide(&self, done: Done) -> Finish {
        let Done { owned, outcome, logs } = done;
        let job = (owned.job.id, owned.job.run_id);
        let has_begun = outcome.has_begun();
        let finish = self.end_of(job, owned.worker_id, &owned.job.retry_state, outcome);
        if has_begun {
            telling::attempt_ended(&owned.job, &finish);
        }
        Finish { logs, ..finish }
    }

    /// How an attempt at a job, known by its id and its run, ends.
    fn end_of(
        &self,
        (job_id, run_id): (i64, Option<i64>),
        worker_id: i64,
        retry_state: &RetryState,
        outcome: Outcome,
    ) -> Finish {
        let store = &self.shared.store;
        let transition = after_attempt(retry_state, outcome, store.random().share());
        Finish { job_id, run_id, attempt: retry_state.attempt, worker_id, transition, logs: Vec::new() }
    }

    /// This worker lost its jobs: stop what still runs, drop what did not start, begin as a new worker.
    fn register_anew(&mut self) -> Result<()> {
        let lost = self.shared.worker_id();
        self.shared.running.lose(lost);
        for owned in self.shared.prefetched.take_all() {
            self.desk.in_flight.drop(owned.key());
        }
        let registration = self.retrying("register a worker", |shared| {
            register(&shared.store, &shared.handlers, &shared.options)
        })?;
        self.shared.become_worker(registration);
        self.desk.look = NextClaim::Now;
        let worker_id = registration.worker_id;
        tracing::warn!(lost, worker_id, "the lease was lost: registered as a new worker");
        Ok(())
    }
}

fn unstarted(owned: OwnedJob) -> Done {
    Done { owned, outcome: Outcome::Unstarted, logs: Vec::new() }
}

/// Jobs that may be claimed, and how many of them start at once.
#[derive(Debug, Clone, Copy)]
struct Room {
    limit: usize,
    idle: usize,
}

impl Room {
    /// Whether claiming can wait for the next results while so many jobs wait in memory for an executor: the few more
    /// are then claimed with them. Not while a thread is idle: no result may come for long, and nobody would look.
    fn can_wait(self, owned: usize) -> bool {
        self.limit == 0 || (self.idle == 0 && owned > self.limit)
    }
}

fn request(shared: &Shared, Room { limit, idle }: Room) -> ClaimRequest {
    // It may have been waited for the database since there was room.
    let limit = if shared.lease_is_over() { 0 } else { limit };
    ClaimRequest {
        worker_id: shared.worker_id(),
        scope: shared.options.scope.clone(),
        worker_capabilities: worker_capabilities(&shared.handlers, &shared.options),
        limit,
        idle,
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    /// Somebody takes the role for one turn.
    pub(super) fn turn(sample: &Sample, by: AddedBy) {
        let shared = &sample.shared;
        let desk = shared.desk.lock().expect("nobody panicked");
        Dispatcher { shared, desk, by }.turn().expect("it is written");
    }

    #[test]
    fn of_jobs_with_large_payloads_or_results_few_are_held() {
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        for (payload, output) in [(large.as_str(), None), ("null", Some(large.clone()))] {
            let sample = Sample::new(1);
            sample.enqueue(20, payload);
            turn(&sample, AddedBy::Dispatcher);
            assert_eq!(sample.shared.prefetched.len(), 1, "nothing is known yet");
            sample.add_end(sample.take(), output);
            sample.shared.desk.lock().expect("nobody panicked").prefetch.observe_times(1, 0);
            turn(&sample, AddedBy::Dispatcher);
            assert_eq!(sample.shared.prefetched.len(), 8, "one is to run, and 7 of these make 16 MiB");
        }
    }

    #[test]
    fn few_jobs_are_not_claimed_while_many_wait_unless_a_thread_is_idle() {
        for (limit, idle, owned, expected) in [
            (0, 0, 0, true),
            (8, 0, 1_000, true),
            (8, 0, 8, false),
            (8, 0, 0, false),
            // Claimed a moment ago, they are about to start, and other threads have nothing to do.
            (2, 2, 6, false),
            (9, 1, 1_000, false),
        ] {
            assert_eq!(Room { limit, idle }.can_wait(owned), expected, "{limit} {idle} {owned}");
        }
    }
}
