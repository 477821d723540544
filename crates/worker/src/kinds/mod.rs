//! The built-in kinds of jobs: a folder for each, and a line for each in the list below. A program registers its own
//! kinds with [`Handlers::register`].

mod http;
mod secrets;
mod shell;
mod values;
mod workspace;

use crate::handler::Handlers;
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
}
