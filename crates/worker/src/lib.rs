//! Claims jobs and executes them: a worker and its threads.
//!
//! The way of a job, file by file:
//!
//! 1. `dispatcher/mod.rs`: a step of the dispatcher, woken because a job became PENDING.
//! 2. `dispatcher/turn.rs`: its turn collects results and decides whether to claim.
//! 3. `dispatcher/claim.rs`: how many jobs are claimed; the claimed ones go into the prefetch buffer.
//! 4. `shared/prefetch_buffer.rs`: the buffer wakes an executor.
//! 5. `executor/mod.rs`: the executor takes the job and calls the handler of its kind.
//! 6. `handler/mod.rs`: what a handler is; the built-in handlers are in `kinds/`.
//! 7. `shared/results.rs`: the executor adds the end of the attempt to the results.
//! 8. `dispatcher/finish.rs`: the next turn decides what the end makes of the job, SUCCESSFUL for instance, writes it,
//!    and claims again in the same transaction.
//!
//! The threads are listed in `threads.rs`. A call into the database may block for minutes. Each thread has one such
//! call to make, and none waits for another thread, so that a blocked call delays nothing else.

mod cancellation_poller;
mod deadline_monitor;
mod dispatcher;
mod executor;
mod handler;
mod heartbeat;
mod kinds;
mod log_writer;
mod options;
mod registration;
mod shared;
mod steps;
#[cfg(test)]
mod test_worker;
mod threads;
mod worker;

pub use handler::{
    Attempt, Handler, Handlers, LOG_MAX_BYTES, LOG_MAX_LINES, LOG_TAIL_BYTES, LOG_TAIL_LINES, OutputLog,
    Stop, StopCause, failed, failed_for_good,
};
pub use kinds::open_files;
pub use options::{THREADS_MAX, WorkerOptions};
pub use steps::WorkerSteps;
pub use threads::Thread;
pub use worker::Worker;
