//! Claim, execute, finish: a worker and its threads.
//!
//! - The *dispatcher* is the only thread that claims and finishes; each of its transactions does both.
//! - *Executors* take claimed jobs from memory, run their handlers and hand the results back.
//! - The *warden* tells attempts to stop: deadlines and stop requests. It only reads.
//! - The *upkeep* renews the lease and writes output that is still coming.

mod attempt;
mod dispatcher;
mod handler;
mod held;
mod output_log;
mod pace;
mod pool;
mod results;
mod running;
mod shared;
pub mod shell;
mod stop;
mod upkeep;
mod warden;
mod worker;

pub use attempt::Attempt;
pub use handler::{Handler, Handlers, failed, failed_for_good};
pub use output_log::{LOG_MAX_BYTES, LOG_MAX_LINES, LOG_TAIL_BYTES, LOG_TAIL_LINES, OutputLog};
pub use stop::{Stop, StopCause};
pub use worker::{THREADS_MAX, Worker, WorkerOptions};
