//! What the threads of one worker share.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::contexts::RunContexts;
use super::dispatcher::DispatcherState;
use super::handler::Handlers;
use super::kinds::shell::Reaper;
use super::latch::Latch;
use super::lease::Lease;
use super::prefetch_buffer::{AddedBy, PrefetchBuffer};
use super::results::Results;
use super::running::RunningAttempts;
use super::shortage::Shortage;
use super::worker::{Registration, WorkerOptions};
use windlass_db::error::Error;
use windlass_engine::store::{ClaimedJob, Store};
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

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
    pub(super) contexts: Arc<RunContexts>,
    pub(super) options: WorkerOptions,
    pub(super) instance: Arc<str>,
    pub(super) prefetched: PrefetchBuffer,
    pub(super) results: Results,
    /// Who holds it claims and finishes.
    pub(super) desk: Mutex<DispatcherState>,
    pub(super) running: RunningAttempts,
    pub(super) shortage: Shortage,
    /// Why a thread that found the database unusable for good ends the worker.
    failure: Mutex<Option<Error>>,
    pub(super) reaper: Arc<Reaper>,
    /// Each wakes the thread of its name.
    pub(super) dispatcher: WakeUpListener,
    pub(super) deadline_monitor: WakeUpListener,
    pub(super) cancellation_poller: WakeUpListener,
    pub(super) heartbeat: WakeUpListener,
    pub(super) log_writer: WakeUpListener,
    mode: AtomicU8,
    /// Set with [`Mode::Leaving`].
    pub(super) leaving: Latch,
    ended: Latch,
    worker_id: AtomicI64,
    /// Since when the dispatcher waits for the database, by the monotonic clock; [`NOT_ASKING`] when it
    /// does not.
    asking_since_ms: AtomicI64,
}

const NOT_ASKING: i64 = i64::MAX;

impl Shared {
    pub(super) fn new(
        store: Store,
        handlers: Handlers,
        options: WorkerOptions,
        instance: Arc<str>,
        registration: Registration,
    ) -> Shared {
        let dispatcher = store.listen(WakeUps::PENDING | WakeUps::EXECUTOR | WakeUps::FENCED | WakeUps::STOP);
        let deadline_monitor = store.listen(WakeUps::EXECUTOR | WakeUps::STOP);
        let cancellation_poller = store.listen(WakeUps::CANCEL | WakeUps::STOP);
        let heartbeat = store.listen(WakeUps::STOP);
        let log_writer = store.listen(WakeUps::EXECUTOR | WakeUps::STOP);
        let lease = Lease::confirmed(options.lease_ms, registration.sent_at_ms);
        let desk = Mutex::new(DispatcherState::empty(store.clock().monotonic_ms()));
        let reaper = Arc::new(Reaper::new(store.database_capabilities().reach));
        reaper.confirm(lease.reaper_ends_at_ms(), store.clock());
        Shared {
            store,
            handlers,
            contexts: Arc::default(),
            options,
            instance,
            prefetched: PrefetchBuffer::default(),
            results: Results::default(),
            desk,
            running: RunningAttempts::new(lease),
            shortage: Shortage::default(),
            failure: Mutex::default(),
            reaper,
            dispatcher,
            deadline_monitor,
            cancellation_poller,
            heartbeat,
            log_writer,
            mode: AtomicU8::new(0),
            leaving: Latch::default(),
            ended: Latch::default(),
            worker_id: AtomicI64::new(registration.worker_id),
            asking_since_ms: AtomicI64::new(NOT_ASKING),
        }
    }

    pub(super) fn mode(&self) -> Mode {
        match self.mode.load(Ordering::Acquire) {
            0 => Mode::Working,
            1 => Mode::Draining,
            _ => Mode::Leaving,
        }
    }

    /// Goes on towards the end; never back. Whoever calls it waits for nothing.
    pub(super) fn advance_mode(&self, mode: Mode) {
        let code = match mode {
            Mode::Working => 0,
            Mode::Draining => 1,
            Mode::Leaving => 2,
        };
        self.mode.fetch_max(code, Ordering::AcqRel);
        if mode == Mode::Leaving {
            self.running.leave();
            self.leaving.set();
        }
        self.dispatcher.raise(WakeUps::STOP);
        self.heartbeat.raise(WakeUps::STOP);
    }

    pub(super) fn worker_id(&self) -> i64 {
        self.worker_id.load(Ordering::Acquire)
    }

    pub(super) fn become_worker(&self, registration: Registration) {
        self.contexts.forget();
        self.worker_id.store(registration.worker_id, Ordering::Release);
        let _said_otherwise = self.lease_renewed(registration.sent_at_ms);
    }

    /// An identity was fenced. Stops what runs under it, and has the dispatcher register anew if it is
    /// still the present one.
    pub(super) fn lose(&self, worker_id: i64) {
        self.running.lose(worker_id);
        self.dispatcher.raise(WakeUps::FENCED);
    }

    /// A renewal was confirmed. `sent_at_ms` was taken before it was sent: the lease can only be longer than
    /// we think. Returns whether jobs may start that might not before.
    pub(super) fn lease_renewed(&self, sent_at_ms: i64) -> bool {
        let clock = self.store.clock();
        let may_start_again = self.running.renewed(sent_at_ms, || clock.monotonic_ms());
        self.reaper.confirm(self.running.lease().reaper_ends_at_ms(), clock);
        if may_start_again {
            self.dispatcher.raise(WakeUps::PENDING);
            self.deadline_monitor.raise(WakeUps::EXECUTOR);
        }
        may_start_again
    }

    /// Nothing may be claimed or started: others may have taken the jobs back by now.
    pub(super) fn lease_is_over(&self) -> bool {
        self.running.lease().is_over(self.store.clock().monotonic_ms())
    }

    pub(super) fn hold(&self, jobs: Vec<ClaimedJob>, by: AddedBy) {
        self.prefetched.add(jobs, self.worker_id(), self.store.clock().monotonic_ms(), by);
    }

    /// The dispatcher asks the database for something, or has its answer.
    pub(super) fn set_asking(&self, is_asking: Asking) {
        let since_ms = match is_asking {
            Asking::Begins => self.store.clock().monotonic_ms(),
            Asking::Ends => NOT_ASKING,
        };
        self.asking_since_ms.store(since_ms, Ordering::Release);
    }

    /// For how long the dispatcher has waited for the database.
    pub(super) fn has_asked_for_ms(&self) -> i64 {
        let since_ms = self.asking_since_ms.load(Ordering::Acquire);
        self.store.clock().monotonic_ms().saturating_sub(since_ms).max(0)
    }

    /// An attempt could not get what it needs to start. The worker claims nothing for a moment.
    pub(super) fn refused(&self, reason: &str) {
        if self.shortage.refused(reason, self.store.clock().monotonic_ms()) {
            tracing::warn!(
                reason,
                "jobs can't be started for now: they go back uncounted, and are claimed again when there is room"
            );
            self.heartbeat.raise(WakeUps::STOP);
        }
        self.dispatcher.raise(WakeUps::EXECUTOR);
    }

    /// What the worker lacks to start jobs.
    pub(super) fn lacks(&self) -> Option<String> {
        self.shortage.reason(self.store.clock().monotonic_ms())
    }

    /// Ends the worker when an error says that the database can't be used and never will be. Every thread that tries
    /// again by itself asks here first.
    pub(super) fn heed(&self, error: &Error) {
        if error.is_lasting() {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
            self.dispatcher.raise(WakeUps::STOP);
        }
    }

    /// Why the worker is to end.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn end(&self) {
        self.ended.set();
        for listener in [&self.deadline_monitor, &self.cancellation_poller, &self.heartbeat, &self.log_writer]
        {
            listener.raise(WakeUps::STOP);
        }
        self.prefetched.close();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_set()
    }
}

/// Whether a question to the database begins or is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Begins,
    Ends,
}
