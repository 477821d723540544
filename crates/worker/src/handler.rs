//! What executes a job. The built-in kinds and a program's own are the same to the executor.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attempt::Attempt;
use windlass_engine::transition::{Outcome, Repeat};

/// Executes the jobs of one kind. Called from many threads at once.
pub trait Handler: Send + Sync {
    /// Executes one attempt and says what came of it. A panic fails the attempt and nothing else.
    ///
    /// It should end soon after [`Attempt::stop`] asks for it: a thread can't be killed.
    fn execute(&self, attempt: &Attempt) -> Outcome;
}

impl<F> Handler for F
where
    F: Fn(&Attempt) -> Outcome + Send + Sync,
{
    fn execute(&self, attempt: &Attempt) -> Outcome {
        self(attempt)
    }
}

/// The kinds that a worker can execute.
#[derive(Clone, Default)]
pub struct Handlers {
    by_kind: BTreeMap<String, Arc<dyn Handler>>,
}

impl Handlers {
    /// No kinds at all.
    #[must_use]
    pub fn new() -> Handlers {
        Handlers::default()
    }

    /// The kinds that are built in.
    #[must_use]
    pub fn with_shell() -> Handlers {
        let mut handlers = Handlers::new();
        handlers.register("shell", super::kinds::shell::Shell);
        handlers
    }

    /// Registers what executes a kind, in place of what did before.
    pub fn register(&mut self, kind: impl Into<String>, handler: impl Handler + 'static) {
        self.by_kind.insert(kind.into(), Arc::new(handler));
    }

    /// Its kinds, sorted.
    #[must_use]
    pub fn kinds(&self) -> Vec<String> {
        self.by_kind.keys().cloned().collect()
    }

    pub(super) fn get(&self, kind: &str) -> Option<&Arc<dyn Handler>> {
        self.by_kind.get(kind)
    }
}

/// A failure that may go away by itself.
#[must_use]
pub fn failed(error: impl Into<String>) -> Outcome {
    Outcome::Failed { error: error.into(), repeat: Repeat::Allowed }
}

/// A failure that would only happen again.
#[must_use]
pub fn failed_for_good(error: impl Into<String>) -> Outcome {
    Outcome::Failed { error: error.into(), repeat: Repeat::Pointless }
}
