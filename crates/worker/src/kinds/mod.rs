//! The built-in kinds of jobs: one folder each, and one line in the list. A program's own kinds are registered with
//! [`Handlers::register`].

mod shell;

use std::sync::Arc;

use crate::handler::{Handler, Handlers, WorkerContext};
pub use shell::{check_shell_payload, open_files};

/// Every built-in kind, with the function that makes its handler for one worker.
const BUILT_IN: &[(&str, StartBuiltIn)] = &[("shell", shell::start)];

type StartBuiltIn = fn(&WorkerContext) -> Arc<dyn Handler>;

impl Handlers {
    /// The built-in kinds.
    #[must_use]
    pub fn with_built_in_kinds() -> Handlers {
        let mut handlers = Handlers::new();
        for (kind, start) in BUILT_IN {
            handlers.register_start(*kind, Arc::new(start));
        }
        handlers
    }
}
