//! What the command line knows: why a job waits and what is wrong with the system, in words for people, and what the machine
//! says of the database's file.

use std::sync::Arc;

use windlass_engine::store::{Job, Reason};
use windlass_engine::{Result, Store};
use windlass_views::{DoctorView, FindingView};

use crate::metrics::FileReading;

type ReasonText = dyn Fn(&Reason, &Job, i64) -> String + Send + Sync;
type File = dyn Fn() -> FileReading + Send + Sync;
type Attention = dyn Fn(&Store) -> Result<Vec<FindingView>> + Send + Sync;
type Health = dyn Fn() -> Result<DoctorView> + Send + Sync;

/// Makes the texts. The functions are called on threads that may call the database.
#[derive(Clone)]
pub struct Sentences {
    reason: Arc<ReasonText>,
    health: Arc<Health>,
    attention: Arc<Attention>,
    file: Arc<File>,
}

impl Sentences {
    /// `reason` gets the reason, its job, and now in milliseconds. `health` makes the checks of `windlass doctor` that only
    /// read.
    pub fn new(
        reason: impl Fn(&Reason, &Job, i64) -> String + Send + Sync + 'static,
        health: impl Fn() -> Result<DoctorView> + Send + Sync + 'static,
    ) -> Sentences {
        Sentences {
            reason: Arc::new(reason),
            health: Arc::new(health),
            attention: Arc::new(|_store| Ok(Vec::new())),
            file: Arc::new(FileReading::default),
        }
    }

    /// The same with the checks of `windlass doctor` that are fast and found something.
    #[must_use]
    pub fn with_attention(
        self,
        attention: impl Fn(&Store) -> Result<Vec<FindingView>> + Send + Sync + 'static,
    ) -> Sentences {
        Sentences { attention: Arc::new(attention), ..self }
    }

    /// The same with what the machine says of the database's file.
    #[must_use]
    pub fn with_file(self, file: impl Fn() -> FileReading + Send + Sync + 'static) -> Sentences {
        Sentences { file: Arc::new(file), ..self }
    }

    pub(crate) fn attention(&self, store: &Store) -> Result<Vec<FindingView>> {
        (self.attention)(store)
    }

    pub(crate) fn file(&self) -> FileReading {
        (self.file)()
    }

    pub(crate) fn reason(&self, reason: &Reason, job: &Job, now_ms: i64) -> String {
        (self.reason)(reason, job, now_ms)
    }

    pub(crate) fn health(&self) -> Result<DoctorView> {
        (self.health)()
    }
}
