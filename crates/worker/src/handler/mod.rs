//! Handlers: the code that executes jobs. A worker treats the built-in kinds and a program's own kinds alike.

mod attempt;
mod masker;
mod newest_lines;
mod output_log;
mod run_context_cache;
mod stop;

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_engine::transition::{Outcome, Repeat};
use windlass_system::Clock;
use windlass_system::process::HostScope;

pub use attempt::Attempt;
pub(crate) use attempt::NewAttempt;
pub(crate) use masker::{Masker, SECRET_MIN_CHARS, StreamMasker};
pub use output_log::{LOG_MAX_BYTES, LOG_MAX_LINES, LOG_TAIL_BYTES, LOG_TAIL_LINES, OutputLog};
pub(crate) use run_context_cache::RunContextCache;
pub(crate) use stop::WakeFile;
pub use stop::{Stop, StopCause};

/// Executes the jobs of one kind. It is called from many threads at once.
pub trait Handler: Send + Sync {
    /// Executes one attempt and says how it ended. A panic fails the attempt and nothing else.
    ///
    /// It should return soon after [`Attempt::stop`] asks for it, because a thread can't be killed.
    fn execute(&self, attempt: &Attempt) -> Outcome;

    /// How long an attempt may take by the rules of its kind, in milliseconds. Only fakes say it, because they take no time.
    fn longest_ms(&self, attempt: &Attempt) -> Option<i64> {
        let _only_for_fakes = attempt;
        None
    }

    /// The worker's lease was confirmed. When its monotonic clock shows `backstop_at_ms` and no later confirmation
    /// has come, nothing that this handler started may run any more, even if the worker's own threads are stopped.
    /// Only a handler that starts something outside this process needs to know.
    fn lease_confirmed(&self, backstop_at_ms: i64) {
        let _only_for_handlers_with_processes = backstop_at_ms;
    }

    /// The worker was dropped, and some of its threads still wait for the database. Ends what this handler started
    /// outside this process.
    fn abandon(&self) {}
}

impl<F> Handler for F
where
    F: Fn(&Attempt) -> Outcome + Send + Sync,
{
    fn execute(&self, attempt: &Attempt) -> Outcome {
        self(attempt)
    }
}

/// What a handler gets to know about its worker before the first job.
#[derive(Debug, Clone)]
pub(crate) struct WorkerContext {
    pub(crate) clock: Clock,
    pub(crate) host_scope: HostScope,
    /// Which addresses jobs of the kind `http` may connect to.
    pub(crate) link_local: LinkLocal,
    /// The program that runs containers.
    pub(crate) container_program: Arc<str>,
}

/// The container program unless the configuration names another one.
pub(crate) const DEFAULT_CONTAINER_PROGRAM: &str = "docker";

/// Whether requests of jobs may go to link-local addresses, which serve the credentials of a machine in a cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinkLocal {
    /// They are refused.
    #[default]
    Refused,
    /// They are allowed.
    Allowed,
}

/// Makes the handler of a kind for one worker.
type StartHandler = dyn Fn(&WorkerContext) -> Arc<dyn Handler> + Send + Sync;

/// The kinds that a worker can execute.
#[derive(Clone, Default)]
pub struct Handlers {
    by_kind: BTreeMap<String, Arc<StartHandler>>,
}

impl Handlers {
    /// No kinds at all.
    #[must_use]
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// Registers the handler of a kind. It replaces an earlier one of the same kind.
    pub fn register(&mut self, kind: impl Into<String>, handler: impl Handler + 'static) {
        let handler: Arc<dyn Handler> = Arc::new(handler);
        self.register_per_worker(kind, move |_worker| Arc::clone(&handler));
    }

    /// Its kinds, sorted.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        self.by_kind.keys().cloned().collect()
    }

    /// Registers a kind with a handler for each worker, because the handler keeps state for its worker.
    pub(crate) fn register_per_worker(
        &mut self,
        kind: impl Into<String>,
        start: impl Fn(&WorkerContext) -> Arc<dyn Handler> + Send + Sync + 'static,
    ) {
        self.by_kind.insert(kind.into(), Arc::new(start));
    }

    /// Makes the handlers of one worker.
    pub(crate) fn start(&self, worker: &WorkerContext) -> StartedHandlers {
        let start = |(kind, start): (&String, &Arc<StartHandler>)| (kind.clone(), start(worker));
        StartedHandlers { by_kind: self.by_kind.iter().map(start).collect() }
    }
}

/// The handlers of one worker.
pub(crate) struct StartedHandlers {
    by_kind: BTreeMap<String, Arc<dyn Handler>>,
}

impl StartedHandlers {
    /// The kinds, sorted.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.by_kind.keys().cloned().collect()
    }

    pub(crate) fn get(&self, kind: &str) -> Option<&dyn Handler> {
        self.by_kind.get(kind).map(Arc::as_ref)
    }

    /// See [`Handler::lease_confirmed`].
    pub(crate) fn lease_confirmed(&self, backstop_at_ms: i64) {
        self.by_kind.values().for_each(|handler| handler.lease_confirmed(backstop_at_ms));
    }

    /// See [`Handler::abandon`].
    pub(crate) fn abandon(&self) {
        self.by_kind.values().for_each(|handler| handler.abandon());
    }
}

/// A failure after which a retry may help.
#[must_use]
pub fn failed(error: impl Into<String>) -> Outcome {
    Outcome::Failed { error: error.into(), repeat: Repeat::Allowed }
}

/// A failure that is never retried, because it would happen again.
#[must_use]
pub fn failed_for_good(error: impl Into<String>) -> Outcome {
    Outcome::Failed { error: error.into(), repeat: Repeat::Pointless }
}
