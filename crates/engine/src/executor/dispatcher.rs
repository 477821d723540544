//! The dispatcher: the one thread of a worker that claims and finishes, both in one transaction.

use std::time::Duration;

use super::held::Held;
use super::pace::Pace;
use super::results::Done;
use super::shared::{Mode, Shared};
use super::worker::register;
use crate::error::{Error, Result};
use crate::signal::Hints;
use crate::status::{JobStatus, WorkerStatus};
use crate::store::{CLAIM_MAX, ClaimRequest, ClaimedJob, Claims, Finish, Finished};
use crate::transition::{AttemptOutcome, Outcome, after_attempt};

/// The safety net under the signals: how often an idle worker looks by itself.
const POLL: Duration = Duration::from_secs(5);
/// Jobs held in memory that did not start within this time go back.
const HELD_TICK: Duration = Duration::from_millis(50);
/// Waits between tries while the database can't be used.
const RETRY_MIN_MS: u64 = 20;
const RETRY_MAX_MS: u64 = 1_000;

/// What the dispatcher's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) -> Result<()> {
    // Also after a panic: without a dispatcher nobody may renew the lease or execute.
    let _end = EndGuard { shared };
    let mut dispatcher = Dispatcher { shared, pace: Pace::unknown(), outstanding: 0, look: Look::Now };
    let served = dispatcher.work();
    if let Err(error) = &served {
        tracing::error!(worker_id = shared.worker_id(), %error, "the worker gives up");
    }
    served
}

struct EndGuard<'a> {
    shared: &'a Shared,
}

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.shared.advance_mode(Mode::Leaving);
        self.shared.end();
    }
}

/// Whether there may be something to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A signal, the poll, or a last claim that was full.
    Now,
    /// The last claim found less than it asked for, and nothing was heard since.
    Not,
}

struct Dispatcher<'a> {
    shared: &'a Shared,
    pace: Pace,
    /// Jobs claimed and not finished: held, running, or done and not written.
    outstanding: i64,
    look: Look,
}

impl Dispatcher<'_> {
    fn work(&mut self) -> Result<()> {
        loop {
            let mode = self.shared.mode();
            let mut done = self.collect();
            if mode != Mode::Working {
                done.extend(self.shared.held.take_all().into_iter().map(unstarted));
            }
            // What is done makes room in the transaction that finishes it.
            let room = self.room(mode, self.outstanding - done.len() as i64);
            if !done.is_empty() || (room.limit > 0 && self.may_find(room)?) {
                self.finish_and_claim(done, room)?;
                continue;
            }
            if mode != Mode::Working && self.outstanding == 0 {
                return self.retrying("end a worker", |shared| {
                    shared
                        .store
                        .set_worker_status(shared.worker_id(), WorkerStatus::Stopped)
                        .map(|_marked| ())
                });
            }
            self.wait()?;
        }
    }

    fn collect(&mut self) -> Vec<Done> {
        let batch = self.shared.results.take();
        self.pace.observe(batch.executed, batch.total_us);
        batch.done
    }

    /// How many jobs may be claimed when so many are outstanding.
    fn room(&self, mode: Mode, outstanding: i64) -> Room {
        let count = |jobs: i64| usize::try_from(jobs).unwrap_or(0).min(CLAIM_MAX);
        match mode {
            Mode::Working => {
                let threads = self.shared.options.threads;
                let limit = count(threads + self.pace.held(threads) - outstanding);
                Room { limit, idle: count(threads - outstanding) }
            }
            Mode::Draining | Mode::Leaving => Room { limit: 0, idle: 0 },
        }
    }

    /// Looking costs no write lock: several idle workers wake for one job.
    fn may_find(&mut self, room: Room) -> Result<bool> {
        match self.look {
            Look::Now => {
                let found = self
                    .retrying("look for jobs", |shared| shared.store.has_claimable(&request(shared, room)))?;
                if !found {
                    self.look = Look::Not;
                }
                Ok(found)
            }
            Look::Not => Ok(false),
        }
    }

    fn wait(&mut self) -> Result<()> {
        let longest = if self.shared.held.is_empty() { POLL } else { HELD_TICK };
        let hints = self.shared.dispatcher.wait(longest);
        if hints.intersects(Hints::FENCED) && self.shared.running.is_lost(self.shared.worker_id()) {
            return self.register_anew();
        }
        self.give_back_stuck();
        if hints.intersects(Hints::PENDING) || hints.is_empty() {
            self.look = Look::Now;
        }
        Ok(())
    }

    /// A long job must not keep others hostage in this worker's memory.
    fn give_back_stuck(&mut self) {
        let now_ms = self.shared.store.clock().monotonic_ms();
        let stuck = self.shared.held.take_stuck(now_ms, HELD_TICK.as_millis() as i64);
        if !stuck.is_empty() {
            self.pace.slow_down();
        }
        for held in stuck {
            self.shared.hand_back(unstarted(held), 0);
        }
    }

    fn finish_and_claim(&mut self, done: Vec<Done>, room: Room) -> Result<()> {
        let count = done.len() as i64;
        let finishes: Vec<Finish> = done.into_iter().map(|done| self.decide(done)).collect();
        let (finished, claims) = self.write(finishes, room)?;
        self.outstanding -= count;
        for job_id in &finished.conflicts {
            tracing::warn!(job_id, "another worker owns the job by now: the result was discarded");
        }
        for (run_id, status) in &finished.ended_runs {
            tracing::info!(run_id, %status, "run ended");
        }
        match claims {
            Claims::Fenced => self.register_anew(),
            Claims::Jobs(jobs) => {
                self.look = if room.limit > 0 && jobs.len() < room.limit { Look::Not } else { Look::Now };
                self.take_over(jobs);
                Ok(())
            }
        }
    }

    fn take_over(&mut self, jobs: Vec<ClaimedJob>) {
        self.outstanding += jobs.len() as i64;
        if !jobs.is_empty() {
            self.shared.hold(jobs);
        }
    }

    fn decide(&self, done: Done) -> Finish {
        let store = &self.shared.store;
        let job = &done.held.job;
        let transition =
            after_attempt(&job.facts, done.outcome, store.clock().now_ms(), store.random().share());
        if let Some(error) = &transition.last_error {
            tracing::info!(
                job = job.label(),
                attempt = job.facts.attempt,
                status = %transition.status,
                "{error}"
            );
        }
        Finish {
            job_id: job.id,
            attempt: job.facts.attempt,
            worker_id: done.held.worker_id,
            transition,
            logs: done.logs,
        }
    }

    /// Writes results. When the database refuses them together, each is written alone, so that one
    /// that can't be stored fails by itself.
    fn write(&self, finishes: Vec<Finish>, room: Room) -> Result<(Finished, Claims)> {
        let together = self.retrying("finish and claim jobs", |shared| {
            shared.store.finish_and_claim(finishes.clone(), Some(request(shared, room)))
        });
        match together {
            Ok(written) => Ok(written),
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) if finishes.is_empty() => Err(error),
            Err(_refused) => {
                let finished = self.write_each(finishes)?;
                // The claim was refused together with the results.
                let claims =
                    self.retrying("claim jobs", |shared| shared.store.claim(request(shared, room)))?;
                Ok((finished, claims))
            }
        }
    }

    fn write_each(&self, finishes: Vec<Finish>) -> Result<Finished> {
        let mut all = Finished::default();
        for finish in finishes {
            let alone = self
                .retrying("finish a job", |shared| shared.store.finish_and_claim(vec![finish.clone()], None));
            let (finished, _claims) = match alone {
                Ok(written) => written,
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => match self.write_refused(&finish, &error) {
                    Ok(written) => written,
                    Err(error @ Error::Unavailable { .. }) => return Err(error),
                    Err(error) => {
                        // One row that can't be written must not end the worker. It stays RUNNING, and
                        // is taken back when this worker is gone.
                        tracing::error!(job_id = finish.job_id, %error, "the job could not be finished");
                        continue;
                    }
                },
            };
            all.conflicts.extend(finished.conflicts);
            all.ended_runs.extend(finished.ended_runs);
        }
        Ok(all)
    }

    fn write_refused(&self, finish: &Finish, error: &Error) -> Result<(Finished, Claims)> {
        let refused = self.refuse(finish, error);
        self.retrying("finish a job", |shared| shared.store.finish_and_claim(vec![refused.clone()], None))
    }

    /// A result that can't be stored is a failure of its attempt.
    fn refuse(&self, finish: &Finish, error: &Error) -> Finish {
        tracing::error!(job_id = finish.job_id, %error, "the result could not be stored");
        let mut refused = finish.clone();
        refused.logs.clear();
        refused.transition.status = JobStatus::Failed;
        refused.transition.output = None;
        refused.transition.record = Some(AttemptOutcome::Failed);
        refused.transition.last_error = Some(format!("the result could not be stored: {error}"));
        refused
    }

    /// Repeats what failed because the database can't be used for now: says so once, goes on by
    /// itself, and gives up after the worker's patience.
    fn retrying<T>(&self, what: &str, mut operation: impl FnMut(&Shared) -> Result<T>) -> Result<T> {
        let clock = self.shared.store.clock();
        let began_ms = clock.monotonic_ms();
        let mut pause_ms = RETRY_MIN_MS;
        let mut said = false;
        loop {
            let error = match operation(self.shared) {
                Ok(value) => {
                    if said {
                        tracing::warn!("the database can be used again");
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            let waited_ms = clock.monotonic_ms() - began_ms;
            let patience_over = self.shared.options.patience_ms.is_some_and(|most_ms| waited_ms >= most_ms);
            if !error.is_passing() || patience_over || self.shared.mode() == Mode::Leaving {
                return Err(error);
            }
            if !std::mem::replace(&mut said, true) {
                tracing::warn!(%error, "{what}: waiting for the database; results are kept");
            }
            std::thread::sleep(Duration::from_millis(pause_ms));
            pause_ms = (pause_ms * 2).min(RETRY_MAX_MS);
        }
    }

    /// This worker lost its jobs: stop what still runs, drop what did not start, begin as a new worker.
    fn register_anew(&mut self) -> Result<()> {
        let lost = self.shared.worker_id();
        self.shared.running.lose(lost);
        self.outstanding -= self.shared.held.take_all().len() as i64;
        let worker_id = self.retrying("register a worker", |shared| {
            register(&shared.store, &shared.handlers, &shared.options)
        })?;
        self.shared.become_worker(worker_id);
        self.look = Look::Now;
        tracing::warn!(lost, worker_id, "the lease was lost: registered as a new worker");
        Ok(())
    }
}

fn unstarted(held: Held) -> Done {
    Done { held, outcome: Outcome::Unstarted, logs: Vec::new() }
}

/// Jobs that may be claimed, and how many of them start at once.
#[derive(Debug, Clone, Copy)]
struct Room {
    limit: usize,
    idle: usize,
}

fn request(shared: &Shared, Room { limit, idle }: Room) -> ClaimRequest {
    ClaimRequest {
        worker_id: shared.worker_id(),
        scope: shared.options.scope.clone(),
        kinds: shared.handlers.kinds(),
        limit,
        idle,
    }
}
