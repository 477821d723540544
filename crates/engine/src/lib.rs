//! The durable heart of Windlass: states, the database seam, the store, the executor.

pub mod clock;
pub mod db;
pub mod error;
pub mod executor;
pub mod files;
pub mod process;
pub mod random;
pub mod shortage;
pub mod signal;
pub mod status;
pub mod store;
pub mod transition;

pub use clock::Clock;
pub use error::{Error, Refusal, Result, Unavailable};
pub use random::Random;
pub use status::{JobStatus, RunSource, RunStatus, StopReason, WorkerStatus};
pub use store::Store;
