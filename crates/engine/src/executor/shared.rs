//! What the threads of one worker share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::handler::Handlers;
use super::output_log::OutputLog;
use super::scratch::Scratch;
use super::shell::Keeper;
use super::stop::{Stop, StopCause};
use super::worker::WorkerOptions;
use crate::signal::{Hints, Listener};
use crate::store::{ClaimedJob, LogLine, Store};
use crate::transition::Outcome;

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// It claims and executes.
    Working,
    /// It finishes what runs and claims nothing.
    Draining,
    /// It stops what runs and leaves.
    Leaving,
}

/// A claimed job in memory, with the identity under which it was claimed.
pub(super) struct Held {
    pub(super) job: ClaimedJob,
    pub(super) worker_id: i64,
}

/// What an executor hands back.
pub(super) struct Done {
    pub(super) held: Held,
    pub(super) outcome: Outcome,
    pub(super) logs: Vec<LogLine>,
}

/// An attempt that runs now.
pub(super) struct Running {
    pub(super) stop: Stop,
    pub(super) log: Arc<OutputLog>,
    /// By the monotonic clock.
    pub(super) deadline_ms: Option<i64>,
}

#[derive(Default)]
struct Ready {
    jobs: VecDeque<Held>,
    closed: bool,
}

#[derive(Default)]
struct Results {
    done: Vec<Done>,
    jobs: i64,
    total_us: i64,
}

pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) handlers: Handlers,
    pub(super) options: WorkerOptions,
    pub(super) instance: Arc<str>,
    pub(super) scratch: Arc<Scratch>,
    pub(super) keeper: Arc<Keeper>,
    pub(super) dispatcher: Listener,
    pub(super) warden: Listener,
    ready: Mutex<Ready>,
    ready_changed: Condvar,
    results: Mutex<Results>,
    running: Mutex<HashMap<(i64, i64), Running>>,
    mode: AtomicU8,
    worker_id: AtomicI64,
    /// When the lease was last known to be ours, by the monotonic clock.
    renewed_at_ms: AtomicI64,
    ended: AtomicBool,
}

impl Shared {
    pub(super) fn new(
        store: Store,
        handlers: Handlers,
        options: WorkerOptions,
        instance: Arc<str>,
        worker_id: i64,
    ) -> Shared {
        let dispatcher = store.listen(Hints::PENDING | Hints::EXECUTOR | Hints::FENCED | Hints::STOP);
        let warden = store.listen(Hints::CANCEL | Hints::EXECUTOR | Hints::STOP);
        let renewed_at_ms = AtomicI64::new(store.clock().monotonic_ms());
        Shared {
            store,
            handlers,
            options,
            instance,
            scratch: Arc::new(Scratch::default()),
            keeper: Arc::new(Keeper::default()),
            dispatcher,
            warden,
            ready: Mutex::default(),
            ready_changed: Condvar::new(),
            results: Mutex::default(),
            running: Mutex::default(),
            mode: AtomicU8::new(0),
            worker_id: AtomicI64::new(worker_id),
            renewed_at_ms,
            ended: AtomicBool::new(false),
        }
    }

    pub(super) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Acquire) {
            0 => Mode::Working,
            1 => Mode::Draining,
            _ => Mode::Leaving,
        }
    }

    /// Goes on towards the end; never back.
    pub(super) fn advance_mode(&self, mode: Mode) {
        let code = match mode {
            Mode::Working => 0,
            Mode::Draining => 1,
            Mode::Leaving => 2,
        };
        self.mode.fetch_max(code, Ordering::AcqRel);
        if mode == Mode::Leaving {
            self.stop_running(StopCause::Leaving);
        }
        self.dispatcher.raise(Hints::STOP);
    }

    pub(super) fn worker_id(&self) -> i64 {
        self.worker_id.load(Ordering::Acquire)
    }

    pub(super) fn become_worker(&self, worker_id: i64) {
        self.worker_id.store(worker_id, Ordering::Release);
        self.lease_renewed(self.store.clock().monotonic_ms());
    }

    /// `at_ms` is taken before the renewal was sent: the lease can only be longer than we think.
    pub(super) fn lease_renewed(&self, at_ms: i64) {
        self.renewed_at_ms.store(at_ms, Ordering::Release);
    }

    /// Nothing may be started: others may have taken the jobs back by now.
    pub(super) fn lease_is_over(&self) -> bool {
        let age_ms = self.store.clock().monotonic_ms() - self.renewed_at_ms.load(Ordering::Acquire);
        age_ms >= self.options.lease_ms
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.warden.raise(Hints::STOP);
        lock(&self.ready).closed = true;
        self.ready_changed.notify_all();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    // The jobs in memory.

    pub(super) fn hold(&self, jobs: Vec<ClaimedJob>) {
        let worker_id = self.worker_id();
        let count = jobs.len();
        lock(&self.ready).jobs.extend(jobs.into_iter().map(|job| Held { job, worker_id }));
        if count == 1 {
            self.ready_changed.notify_one();
        } else {
            self.ready_changed.notify_all();
        }
    }

    /// The next job to execute; `None` when the worker ends.
    pub(super) fn next_held(&self) -> Option<Held> {
        let mut ready = lock(&self.ready);
        loop {
            if let Some(held) = ready.jobs.pop_front() {
                return Some(held);
            }
            if ready.closed {
                return None;
            }
            ready = self.ready_changed.wait(ready).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn take_held(&self) -> Vec<Held> {
        lock(&self.ready).jobs.drain(..).collect()
    }

    pub(super) fn held_count(&self) -> usize {
        lock(&self.ready).jobs.len()
    }

    // The results of executors.

    pub(super) fn hand_back(&self, done: Done, elapsed_us: i64) {
        let mut results = lock(&self.results);
        results.done.push(done);
        results.jobs += 1;
        results.total_us += elapsed_us;
        let first = results.done.len() == 1;
        drop(results);
        if first {
            self.dispatcher.raise(Hints::EXECUTOR);
        }
    }

    /// The results so far, how many jobs they are, and how long these took in all.
    pub(super) fn take_results(&self) -> (Vec<Done>, i64, i64) {
        let mut results = lock(&self.results);
        let Results { done, jobs, total_us } = std::mem::take(&mut *results);
        (done, jobs, total_us)
    }

    // The attempts that run.

    pub(super) fn begin(&self, held: &Held, running: Running) {
        let watched = running.deadline_ms.is_some();
        let stop = running.stop.clone();
        lock(&self.running).insert((held.job.id, held.job.facts.attempt), running);
        if self.mode() == Mode::Leaving {
            stop.request(StopCause::Leaving);
        }
        if watched {
            self.warden.raise(Hints::EXECUTOR);
        }
    }

    pub(super) fn end_attempt(&self, held: &Held) {
        lock(&self.running).remove(&(held.job.id, held.job.facts.attempt));
    }

    pub(super) fn stop_running(&self, cause: StopCause) {
        for running in lock(&self.running).values() {
            running.stop.request(cause);
        }
    }

    pub(super) fn stop_job(&self, job_id: i64, cause: StopCause) {
        for ((running_id, _attempt), running) in lock(&self.running).iter() {
            if *running_id == job_id {
                running.stop.request(cause);
            }
        }
    }

    /// Stops what is over its deadline and returns the next deadline.
    pub(super) fn stop_late(&self, now_ms: i64) -> Option<i64> {
        let running = lock(&self.running);
        let mut next_ms: Option<i64> = None;
        for attempt in running.values() {
            match attempt.deadline_ms {
                Some(deadline_ms) if deadline_ms <= now_ms => attempt.stop.request(StopCause::TimedOut),
                Some(deadline_ms) => {
                    next_ms = Some(next_ms.map_or(deadline_ms, |next| next.min(deadline_ms)))
                }
                None => {}
            }
        }
        next_ms
    }

    /// Output of running attempts that waits to be written.
    pub(super) fn take_logs(&self) -> Vec<LogLine> {
        lock(&self.running).values().flat_map(|running| running.log.take_ready()).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
