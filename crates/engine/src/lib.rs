//! The durable heart of Windlass: its tables, all operations on them (`store`), and the pure decisions
//! (`transition`). It starts no thread and runs no job.

pub mod attempt_end;
pub mod decide;
mod files;
pub mod join_rule;
pub mod measurements;
pub mod set_variables;
pub mod signature;
pub mod status;
pub mod store;
mod tables;
pub mod trace;
pub mod transition;
pub mod values;

pub use files::{Content, PlaceError, RunFiles};
pub use status::{JobStatus, RunSource, RunStatus, StopReason, WaitsFor, WorkerStatus};
pub use store::{HasStore, Store};
pub use tables::{SCHEMA_VERSION, TABLES};
pub use windlass_db::{Error, Refusal, Result, Unavailable};
pub use windlass_system::{Clock, Random};
