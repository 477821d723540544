//! Claims jobs and executes them: a worker and its threads.
//!
//! `ARCHITECTURE.md` follows a job through this crate and the engine, file by file.
//!
//! The threads are listed in `threads.rs`. A call into the database may block for minutes. Each thread makes one sort of
//! call, and none waits for another thread, so that a blocked call delays nothing else.

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

pub use executor::BegunAttempt;
pub use handler::{
    Attempt, Handler, Handlers, LOG_MAX_BYTES, LOG_MAX_LINES, LOG_TAIL_BYTES, LOG_TAIL_LINES, LinkLocal,
    OutputLog, Stop, StopCause, failed, failed_for_good,
};
pub use kinds::{
    FakeEnd, FakeEnds, HowItEnds, JsonAnswer, JsonRequest, Message, MessageCommand, MessageOutput, NotSent,
    Recipient, SecretPresence, check_url, find_own_secret, look_for_secret, open_files, send, send_json,
};
pub use options::{THREADS_MAX, WorkerOptions};
pub use steps::WorkerSteps;
pub use threads::Thread;
pub use worker::Worker;
