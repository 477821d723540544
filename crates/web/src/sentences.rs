//! What the command line knows: why a job waits and what is wrong with the system, in words for people, and what the machine
//! says of the database's file.

use std::sync::Arc;

use windlass_engine::store::{Job, Reason};
use windlass_engine::{Error, Result};
use windlass_views::DoctorView;

use crate::metrics::FileReading;

type ReasonText = dyn Fn(&Reason, &Job, i64) -> String + Send + Sync;
type File = dyn Fn() -> FileReading + Send + Sync;
type Health = dyn Fn() -> std::result::Result<DoctorView, String> + Send + Sync;

/// Makes the texts. The functions are called on threads that may call the database.
#[derive(Clone)]
pub struct Sentences {
    reason: Arc<ReasonText>,
    health: Arc<Health>,
    file: Arc<File>,
}

impl Sentences {
    /// `reason` gets the reason, its job, and now in milliseconds. `health` makes the checks of `windlass doctor`.
    pub fn new(
        reason: impl Fn(&Reason, &Job, i64) -> String + Send + Sync + 'static,
        health: impl Fn() -> std::result::Result<DoctorView, String> + Send + Sync + 'static,
    ) -> Sentences {
        Sentences { reason: Arc::new(reason), health: Arc::new(health), file: Arc::new(FileReading::default) }
    }

    /// The same with what the machine says of the database's file.
    #[must_use]
    pub fn with_file(self, file: impl Fn() -> FileReading + Send + Sync + 'static) -> Sentences {
        Sentences { file: Arc::new(file), ..self }
    }

    pub(crate) fn file(&self) -> FileReading {
        (self.file)()
    }

    pub(crate) fn reason(&self, reason: &Reason, job: &Job, now_ms: i64) -> String {
        (self.reason)(reason, job, now_ms)
    }

    pub(crate) fn health(&self) -> Result<DoctorView> {
        (self.health)().map_err(|text| Error::internal("check the health", text))
    }
}
