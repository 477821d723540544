//! What the threads of one worker share: jobs in memory, running attempts, results, the lease, the mode.

mod lease;
mod owned_job;
mod prefetch_buffer;
mod resource_shortage;
mod results;
mod running_attempts;

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::handler::{Handlers, RunContextCache, StartedHandlers, WorkerContext};
use crate::options::WorkerOptions;
use crate::registration::Registration;
use lease::Lease;
pub(crate) use owned_job::{AttemptKey, OwnedJob};
pub(crate) use prefetch_buffer::{AddedBy, NextJob, PrefetchBuffer};
pub(crate) use resource_shortage::ResourceShortage;
pub(crate) use results::{EndedAttempt, Results};
pub(crate) use running_attempts::{RunningAttempt, RunningAttempts};
use windlass_db::error::Error;
use windlass_engine::store::{ClaimedJob, Store};
use windlass_system::Clock;
use windlass_system::event::Event;
use windlass_system::wake_ups::{WakeUpListener, WakeUps};

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It claims and executes jobs.
    Working,
    /// It finishes what runs and claims nothing.
    Draining,
    /// It stops what runs and ends.
    Leaving,
}

impl Mode {
    fn code(self) -> u8 {
        match self {
            Mode::Working => 0,
            Mode::Draining => 1,
            Mode::Leaving => 2,
        }
    }
}

/// What the threads of one worker share.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) handlers: StartedHandlers,
    pub(crate) run_contexts: Arc<RunContextCache>,
    pub(crate) options: WorkerOptions,
    /// The id of the database.
    pub(crate) instance: Arc<str>,
    pub(crate) prefetched: PrefetchBuffer,
    pub(crate) results: Results,
    pub(crate) running: RunningAttempts,
    pub(crate) shortage: ResourceShortage,
    /// Each listener wakes the thread of its name.
    pub(crate) dispatcher: WakeUpListener,
    pub(crate) deadline_monitor: WakeUpListener,
    pub(crate) cancellation_poller: WakeUpListener,
    pub(crate) heartbeat: WakeUpListener,
    pub(crate) log_writer: WakeUpListener,
    /// Set with [`Mode::Leaving`].
    pub(crate) leaving: Event,
    ended: Event,
    mode: AtomicU8,
    worker_id: AtomicI64,
    /// Why the worker has to end: a thread found that the database can't be used and never will be.
    failure: Mutex<Option<Error>>,
    /// Since when the dispatcher waits for an answer of the database, by the monotonic clock, or [`NOT_ASKING`].
    asking_since_ms: AtomicI64,
}

const NOT_ASKING: i64 = i64::MAX;

impl Shared {
    pub(crate) fn new(
        store: Store,
        handlers: &Handlers,
        options: WorkerOptions,
        instance: Arc<str>,
        registration: Registration,
    ) -> Shared {
        let handlers = handlers.start(&WorkerContext {
            clock: store.clock().clone(),
            link_local: options.link_local,
            container_program: Arc::clone(&options.container_program),
            host_scope: store.database_capabilities().host_scope,
        });
        let lease = Lease::confirmed(options.lease_ms, registration.sent_at_ms);
        handlers.lease_confirmed(lease.backstop_at_ms());
        Shared {
            handlers,
            run_contexts: Arc::default(),
            options,
            instance,
            prefetched: PrefetchBuffer::default(),
            results: Results::default(),
            running: RunningAttempts::new(lease),
            shortage: ResourceShortage::default(),
            dispatcher: store.listen(WakeUps::PENDING | WakeUps::EXECUTOR | WakeUps::FENCED | WakeUps::STOP),
            deadline_monitor: store.listen(WakeUps::EXECUTOR | WakeUps::STOP),
            cancellation_poller: store.listen(WakeUps::CANCEL | WakeUps::STOP),
            heartbeat: store.listen(WakeUps::STOP),
            log_writer: store.listen(WakeUps::EXECUTOR | WakeUps::STOP),
            leaving: Event::default(),
            ended: Event::default(),
            mode: AtomicU8::new(Mode::Working.code()),
            worker_id: AtomicI64::new(registration.worker_id),
            failure: Mutex::default(),
            asking_since_ms: AtomicI64::new(NOT_ASKING),
            store,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.store.clock()
    }

    pub(crate) fn mode(&self) -> Mode {
        let code = self.mode.load(Ordering::Acquire);
        [Mode::Working, Mode::Draining].into_iter().find(|mode| mode.code() == code).unwrap_or(Mode::Leaving)
    }

    /// Advances towards the end; a worker never goes back to an earlier mode. Does not wait.
    pub(crate) fn advance_mode(&self, mode: Mode) {
        self.mode.fetch_max(mode.code(), Ordering::AcqRel);
        if mode == Mode::Leaving {
            self.running.leave();
            self.leaving.set();
        }
        self.dispatcher.raise(WakeUps::STOP);
        self.heartbeat.raise(WakeUps::STOP);
    }

    /// The present worker id.
    pub(crate) fn worker_id(&self) -> i64 {
        self.worker_id.load(Ordering::Acquire)
    }

    /// Goes on under a new worker id.
    pub(crate) fn become_worker(&self, registration: Registration) {
        self.run_contexts.clear();
        self.worker_id.store(registration.worker_id, Ordering::Release);
        let _logged_by_the_caller = self.renew_lease(registration.sent_at_ms);
    }

    /// Stops what runs under a worker id that was fenced. The dispatcher registers the worker anew if that is still
    /// the present id.
    pub(crate) fn fence(&self, worker_id: i64) {
        self.running.fence(worker_id);
        self.dispatcher.raise(WakeUps::FENCED);
    }

    /// Notes a confirmed renewal. `sent_at_ms` was taken before the renewal was sent, so that the lease really is at
    /// least as long. Returns whether the lease was over and jobs may start again.
    pub(crate) fn renew_lease(&self, sent_at_ms: i64) -> bool {
        let may_start_again = self.running.renew_lease(sent_at_ms, || self.clock().monotonic_ms());
        self.handlers.lease_confirmed(self.running.lease().backstop_at_ms());
        if may_start_again {
            self.dispatcher.raise(WakeUps::PENDING);
            self.deadline_monitor.raise(WakeUps::EXECUTOR);
        }
        may_start_again
    }

    /// Whether the lease is over. Then nothing may be claimed or started, because others may have taken the jobs.
    pub(crate) fn lease_is_over(&self) -> bool {
        self.running.lease().is_over(self.clock().monotonic_ms())
    }

    /// Adds claimed jobs to the prefetch buffer.
    pub(crate) fn prefetch(&self, jobs: Vec<ClaimedJob>, by: AddedBy) {
        self.prefetched.add(jobs, self.worker_id(), self.clock().monotonic_ms(), by);
    }

    /// Notes that the dispatcher asks the database, or that it has the answer.
    pub(crate) fn set_asking(&self, asking: Asking) {
        let since_ms = match asking {
            Asking::Begins => self.clock().monotonic_ms(),
            Asking::Ends => NOT_ASKING,
        };
        self.asking_since_ms.store(since_ms, Ordering::Release);
    }

    /// For how long the dispatcher has waited for an answer of the database.
    pub(crate) fn unanswered_ms(&self) -> i64 {
        let since_ms = self.asking_since_ms.load(Ordering::Acquire);
        self.clock().monotonic_ms().saturating_sub(since_ms).max(0)
    }

    /// Notes that the system refused what an attempt needs to start. The worker claims nothing for a while.
    pub(crate) fn note_refusal(&self, reason: &str) {
        if self.shortage.refused(reason, self.clock().monotonic_ms()) {
            tracing::warn!(
                reason,
                "jobs can't be started for now: claimed jobs go back, and the worker claims no others for a while"
            );
            self.heartbeat.raise(WakeUps::STOP);
        }
        self.dispatcher.raise(WakeUps::EXECUTOR);
    }

    /// What the system refuses to this worker's jobs.
    pub(crate) fn shortage_reason(&self) -> Option<String> {
        self.shortage.reason(self.clock().monotonic_ms())
    }

    /// Ends the worker if an error says that the database can't be used and never will be. A thread that would try
    /// again by itself calls this first.
    pub(crate) fn end_if_lasting(&self, error: &Error) {
        if error.is_permanent() {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
            self.dispatcher.raise(WakeUps::STOP);
        }
    }

    /// Why the worker has to end, if it has to.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends all threads but the dispatcher.
    pub(crate) fn end(&self) {
        self.ended.set();
        for listener in [&self.deadline_monitor, &self.cancellation_poller, &self.heartbeat, &self.log_writer]
        {
            listener.raise(WakeUps::STOP);
        }
        self.prefetched.close();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_set()
    }
}

/// Whether a question to the database begins or was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Begins,
    Ends,
}
