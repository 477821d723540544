//! Claim, execute, finish: a worker and its threads.
//!
//! - The *dispatcher* claims and finishes, one thread at a time; each of its transactions does both.
//! - *Executors* take claimed jobs from memory, run their handlers and hand the results back. One that finds
//!   nothing else to execute is the dispatcher for one transaction.
//! - The *deadline monitor* tells attempts to stop: deadlines, and the end of the lease. It never touches the database.
//! - The *cancellation poller* reads stop requests.
//! - The *heartbeat* renews the lease.
//! - The *log writer* writes output that is still coming.
//!
//! A call into the database may block for minutes. Each of these can, without holding up another: that is
//! why they are several, and why none of them waits for the other. Only the dispatcher's own thread waits for
//! an executor that has its role.

mod attempt;
mod cancellation_poller;
mod contexts;
mod deadline_monitor;
mod dispatcher;
mod handler;
mod heartbeat;
mod in_flight;
mod kinds;
mod latch;
mod lease;
mod log_writer;
pub mod open_files;
mod output_log;
mod pool;
mod prefetch_buffer;
mod prefetch_controller;
mod results;
mod running;
#[cfg(test)]
mod sample;
mod shared;
mod shortage;
mod stop;
mod threads;
mod worker;

pub use attempt::Attempt;
pub use handler::{Handler, Handlers, failed, failed_for_good};
pub use output_log::{LOG_MAX_BYTES, LOG_MAX_LINES, LOG_TAIL_BYTES, LOG_TAIL_LINES, OutputLog};
pub use stop::{Stop, StopCause};
pub use worker::{THREADS_MAX, Worker, WorkerOptions};
