//! Durable workflows in one binary and one SQLite file: the library.
//!
//! ```no_run
//! use std::time::Duration;
//! use windlass::{Handlers, Windlass, WorkerOptions, output_of, typed};
//!
//! # fn main() -> windlass::Result<()> {
//! let windlass = Windlass::open("windlass.db")?;
//! let mut handlers = Handlers::with_built_in_kinds();
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
//!
//! What only a worker or a scheduler may call, such as claiming a job, is not a part of this library:
//!
//! ```compile_fail
//! let windlass = windlass::Windlass::open("windlass.db").unwrap();
//! let _store = windlass.store();
//! ```

mod engine;
mod open;
mod restore;
mod typed;
mod verbs;
mod wait;

pub use engine::Engine;
pub use open::{Options, Windlass};
pub use restore::BrokenRules;
pub use typed::{output_of, typed};

// Types of other crates that the methods above take or return. Each type is listed, so that nothing that only a worker or
// a scheduler may call becomes public by accident.
#[cfg(feature = "postgres")]
pub use windlass_db::postgres::{AddressError, PostgresAddress, is_postgres};
pub use windlass_db::sqlite::{FileSize, SqliteDatabase};
pub use windlass_db::{Durability, Error, OpenMode, Refusal, Result, Unavailable};
pub use windlass_engine::decide::next_definition::DefinitionChanges;
pub use windlass_engine::store::{
    Applied, Backfill, BackfillResult, BrokenBefore, Cancellation, Continued, Copied, CopyError, Count,
    Cursor, DEAD_LETTERS_BATCH, DEAD_LETTERS_COUNTED_MAX, DeadLetterBatch, DeadLetterCursor, DeadLetters,
    DefinitionFile, DefinitionOrigin, DefinitionVerb, ENQUEUE_MAX, Health, JOBS_COUNTED_MAX, Job, JobChange,
    JobCounts, JobFilter, JobSummary, Jobs, ListedVersion, LogLine, LogPosition, LogStream, Logs, NewJob,
    NewRegistration, NewRun, NextDefinition, Occasion, Occurrence, OccurrenceStatus, OldPending, OnlyJobs,
    Order, PAGE_MAX, Page, ParamFilter, Problem, QUEUES_MAX, Queue, QueueLimits, QueuePage, Queues, Rate,
    Reason, RegisteredVersion, Registration, RegistrationChange, Registrations, Restored, RetrySelection,
    Run, RunDefinition, RunFilter, RunSummary, Runs, SEARCH_MAX, Schedule, ScheduleChange, ScheduleOrigin,
    Schedules, SearchBound, Setting, StartTime, StartedBy, Stats, Submitted, TimeRange, Upkeep,
    VARIABLES_LISTED_MAX, Variable, Variables, Why, Worker, Workers,
};
pub use windlass_engine::transition::{Outcome, Repeat};
pub use windlass_engine::{JobStatus, RunSource, RunStatus, StopReason, WaitsFor, WorkerStatus};
pub use windlass_scheduler::Retention;
pub use windlass_system::{Clock, Random};
pub use windlass_worker::{
    Attempt, Handler, Handlers, LOG_MAX_BYTES, LOG_MAX_LINES, Stop, StopCause, THREADS_MAX, WorkerOptions,
    failed, failed_for_good,
};
pub use windlass_workflow as workflow;
