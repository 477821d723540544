//! Durable workflows in one binary and one SQLite file: the library.
//!
//! ```no_run
//! use std::time::Duration;
//! use windlass::{Handlers, Windlass, WorkerOptions, output_of, typed};
//!
//! # fn main() -> windlass::Result<()> {
//! let windlass = Windlass::open("windlass.db")?;
//! let mut handlers = Handlers::with_shell();
//! handlers.register("greet", typed(|_attempt, name: String| Ok::<_, String>(format!("Hello, {name}"))));
//! let engine = windlass.start(handlers, WorkerOptions::default())?;
//! let id = windlass.enqueue("greet", &"world")?;
//! if let Some(job) = windlass.wait_for_job(id, Duration::from_secs(60))? {
//!     let greeting: String = output_of(&job)?;
//!     println!("{greeting}");
//! }
//! engine.drain();
//! engine.join()
//! # }
//! ```

mod engine;
mod open;
mod restore;
mod typed;
mod wait;

pub use engine::Engine;
pub use open::{Options, Windlass};
pub use restore::BrokenRules;
pub use typed::{output_of, typed};

#[cfg(feature = "postgres")]
pub use windlass_db::postgres::{
    AddressError, CONNECTIONS_MAX as POSTGRES_CONNECTIONS_MAX, PostgresAddress, is_postgres,
};
pub use windlass_db::sqlite::{FileSize, SqliteDatabase};
pub use windlass_db::{Durability, OpenMode};
pub use windlass_engine::SCHEMA_VERSION;
pub use windlass_engine::{
    Clock, Error, JobStatus, Random, Refusal, Result, RunSource, RunStatus, StopReason, Store, Unavailable,
    WorkerStatus, store, transition,
};
pub use windlass_scheduler::{FailureDetector, Retention, gone_workers};
pub use windlass_system::{files, wake_ups};
pub use windlass_worker::Handlers;
pub use windlass_worker::open_files;
pub use windlass_worker::{
    Attempt, Handler, LOG_MAX_BYTES, LOG_MAX_LINES, Stop, StopCause, THREADS_MAX, WorkerOptions, failed,
    failed_for_good,
};
pub use windlass_workflow as workflow;
