//! The built-in kinds of jobs: a folder for each, and a line for each in the list below. A program registers its own
//! kinds with [`Handlers::register`]. `messages` sends what is no job with the same means.

mod fake;
mod files;
mod http;
mod messages;
mod secrets;
mod shell;
mod values;
mod workspace;

use std::sync::Arc;

use crate::handler::Handlers;
pub use fake::{FakeEnd, FakeEnds, HowItEnds};
pub use messages::{
    JsonAnswer, JsonRequest, Message, MessageCommand, MessageOutput, NotSent, Recipient, check_url, send,
    send_json,
};
pub use secrets::{SecretPresence, find_own_secret, look_for_secret};
pub use shell::open_files;

impl Handlers {
    /// The built-in kinds.
    #[must_use]
    pub fn with_built_in_kinds() -> Handlers {
        let mut handlers = Handlers::new();
        handlers.register_per_worker("shell", shell::start);
        handlers.register_per_worker("http", http::start);
        handlers
    }

    /// Fakes of the built-in kinds. They start no process and send nothing: `ends` says how each attempt ends.
    #[must_use]
    pub fn fakes(ends: &Arc<FakeEnds>) -> Handlers {
        let mut handlers = Handlers::new();
        handlers.register("shell", shell::start_fake(Arc::clone(ends)));
        handlers.register("http", http::start_fake(Arc::clone(ends)));
        handlers
    }
}
