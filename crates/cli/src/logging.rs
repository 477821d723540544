//! What the engine tells about its work, on standard error: warnings only, unless `RUST_LOG` asks for
//! more or the verb is `worker`, whose log is all that it shows.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::progress;

/// Starts to show what is logged at this level and above.
pub(crate) fn start(level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let has_colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(progress::stderr_beside_view)
        .with_ansi(has_colour)
        .with_target(false)
        .log_internal_errors(false)
        .try_init();
    // Only a second start could fail, and there is none.
    debug_assert!(started.is_ok());
}
