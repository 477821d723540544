//! What the threads of one worker share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};

use super::handler::Handlers;
use super::held::HeldJobs;
use super::results::{Done, Results};
use super::running::RunningAttempts;
use super::worker::WorkerOptions;
use crate::signal::{Hints, Listener};
use crate::store::{ClaimedJob, Store};

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

pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) handlers: Handlers,
    pub(super) options: WorkerOptions,
    pub(super) instance: Arc<str>,
    pub(super) held: HeldJobs,
    pub(super) results: Results,
    pub(super) running: RunningAttempts,
    /// Wakes the dispatcher.
    pub(super) dispatcher: Listener,
    /// Wakes the warden.
    pub(super) warden: Listener,
    /// Wakes the thread that does the upkeep.
    pub(super) upkeep: Listener,
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
        let upkeep = store.listen(Hints::EXECUTOR | Hints::STOP);
        let renewed_at_ms = AtomicI64::new(store.clock().monotonic_ms());
        Shared {
            store,
            handlers,
            options,
            instance,
            held: HeldJobs::default(),
            results: Results::default(),
            running: RunningAttempts::default(),
            dispatcher,
            warden,
            upkeep,
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
            self.running.leave();
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

    /// An identity was fenced. Stops what runs under it, and has the dispatcher register anew if it is
    /// still the present one.
    pub(super) fn lose(&self, worker_id: i64) {
        self.running.lose(worker_id);
        self.dispatcher.raise(Hints::FENCED);
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

    pub(super) fn hold(&self, jobs: Vec<ClaimedJob>) {
        self.held.add(jobs, self.worker_id(), self.store.clock().monotonic_ms());
    }

    pub(super) fn hand_back(&self, done: Done, elapsed_us: i64) {
        if self.results.add(done, elapsed_us) {
            self.dispatcher.raise(Hints::EXECUTOR);
        }
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.warden.raise(Hints::STOP);
        self.upkeep.raise(Hints::STOP);
        self.held.close();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}
