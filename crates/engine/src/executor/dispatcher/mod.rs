//! The dispatcher: the one thread of a worker that claims and finishes, both in one transaction.

mod comparison;
mod patience;
mod telling;
mod writing;

use std::time::Duration;

use super::held::Held;
use super::outstanding::{Key, Outstanding};
use super::pace::Pace;
use super::results::Done;
use super::shared::{Mode, Shared};
use super::worker::{abilities, register};
use crate::error::Result;
use crate::signal::Hints;
use crate::status::WorkerStatus;
use crate::store::{CLAIM_MAX, ClaimRequest, ClaimedJob, Claims, Finish, Finished};
use crate::transition::{Facts, Outcome, after_attempt};

/// The safety net under the signals: how often an idle worker looks by itself.
const POLL: Duration = Duration::from_secs(5);
/// Jobs held in memory that did not start within this time go back.
const HELD_TICK: Duration = Duration::from_millis(50);

/// What the dispatcher's thread does until the worker ends.
pub(super) fn serve(shared: &Shared) -> Result<()> {
    // Also after a panic: without a dispatcher nobody may renew the lease or execute.
    let _end = EndGuard { shared };
    let mut dispatcher = Dispatcher {
        shared,
        pace: Pace::unknown(),
        outstanding: Outstanding::default(),
        look: Look::Now,
        compare_at_ms: shared.store.clock().monotonic_ms() + comparison::INTERVAL_MS,
        is_repeat: false,
    };
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
    /// Attempts claimed and not finished: held, running, or done and not written.
    outstanding: Outstanding,
    look: Look,
    /// When to compare them with the tables.
    compare_at_ms: i64,
    /// The last thing asked of the database was asked more than once: an earlier try may have been heard.
    is_repeat: bool,
}

impl Dispatcher<'_> {
    fn work(&mut self) -> Result<()> {
        loop {
            self.compare_if_due()?;
            let mode = self.shared.mode();
            let mut done = self.collect();
            if mode != Mode::Working {
                done.extend(self.shared.held.take_all().into_iter().map(unstarted));
            }
            // What is done makes room in the transaction that finishes it.
            let room = self.room(mode, self.outstanding.count() - done.len() as i64);
            if !done.is_empty() || (room.limit > 0 && self.may_find(room)?) {
                self.finish_and_claim(done, room)?;
                continue;
            }
            if mode != Mode::Working && self.outstanding.count() == 0 {
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
            // What is claimed now could not be started.
            Mode::Working if self.shared.lease_is_over() => Room { limit: 0, idle: 0 },
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
        let keys: Vec<(Key, bool)> =
            done.iter().map(|done| (done.held.key(), done.outcome != Outcome::Unstarted)).collect();
        let finishes: Vec<Finish> = done.into_iter().map(|done| self.decide(done)).collect();
        let (finished, claims) = self.write(finishes, room)?;
        for (key, has_begun) in keys {
            if has_begun {
                self.outstanding.end(key);
            } else {
                self.outstanding.drop(key);
            }
        }
        self.report(&finished);
        match claims {
            Claims::Fenced => self.register_anew(),
            Claims::Jobs(jobs) => {
                self.look = if room.limit > 0 && jobs.len() < room.limit { Look::Not } else { Look::Now };
                self.take_over(jobs);
                Ok(())
            }
        }
    }

    fn report(&self, finished: &Finished) {
        for job_id in &finished.conflicts {
            if self.is_repeat {
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
        jobs.iter().for_each(telling::run_started);
        // What runs already is not started a second time: its claim was lost, and now made good.
        let news: Vec<ClaimedJob> = jobs
            .into_iter()
            .filter(|job| self.outstanding.add((job.id, job.facts.attempt), worker_id))
            .collect();
        if !news.is_empty() {
            self.shared.hold(news);
        }
    }

    fn decide(&self, done: Done) -> Finish {
        let Done { held, outcome, logs } = done;
        let finish = self.end_of(held.job.id, held.worker_id, &held.job.facts, outcome);
        telling::attempt_ended(&held.job, &finish, self.shared.store.clock().now_ms());
        Finish { logs, ..finish }
    }

    fn end_of(&self, job_id: i64, worker_id: i64, facts: &Facts, outcome: Outcome) -> Finish {
        let store = &self.shared.store;
        let transition = after_attempt(facts, outcome, store.clock().now_ms(), store.random().share());
        Finish { job_id, attempt: facts.attempt, worker_id, transition, logs: Vec::new() }
    }

    /// This worker lost its jobs: stop what still runs, drop what did not start, begin as a new worker.
    fn register_anew(&mut self) -> Result<()> {
        let lost = self.shared.worker_id();
        self.shared.running.lose(lost);
        for held in self.shared.held.take_all() {
            self.outstanding.drop(held.key());
        }
        let registration = self.retrying("register a worker", |shared| {
            register(&shared.store, &shared.handlers, &shared.options)
        })?;
        self.shared.become_worker(registration);
        self.look = Look::Now;
        let worker_id = registration.worker_id;
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
    // It may have been waited for the database since there was room.
    let limit = if shared.lease_is_over() { 0 } else { limit };
    ClaimRequest {
        worker_id: shared.worker_id(),
        scope: shared.options.scope.clone(),
        abilities: abilities(&shared.handlers, &shared.options),
        limit,
        idle,
    }
}
