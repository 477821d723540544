//! How states look: a form, a word and a colour. Nobody has to tell states apart by colour alone.

use windlass_engine::{JobStatus, RunStatus};

/// A state as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The word.
    pub word: &'static str,
    /// The class that has the colour.
    pub class: &'static str,
    /// The id of the symbol.
    pub symbol: &'static str,
}

/// It runs.
pub const RUNNING: Look = Look { word: "Running", class: "run", symbol: "s-running" };
/// It waits for something.
pub const WAITING: Look = Look { word: "Waiting", class: "wait", symbol: "s-waiting" };
/// It succeeded.
pub const SUCCESSFUL: Look = Look { word: "Successful", class: "ok", symbol: "s-successful" };
/// It failed.
pub const FAILED: Look = Look { word: "Failed", class: "bad", symbol: "s-failed" };
/// It failed, and that does not matter to its run.
pub const FAILED_ALLOWED: Look = Look { word: "Failed, allowed", class: "wait", symbol: "s-allowed" };
/// It was cancelled.
pub const CANCELLED: Look = Look { word: "Cancelled", class: "off", symbol: "s-cancelled" };
/// It was skipped.
pub const SKIPPED: Look = Look { word: "Skipped", class: "off", symbol: "s-skipped" };
/// Its time or its turn has not come.
pub const BLOCKED: Look = Look { word: "Not started", class: "off", symbol: "s-skipped" };

impl Look {
    /// How a run looks.
    #[must_use]
    pub fn of_run(status: RunStatus) -> Look {
        match status {
            RunStatus::Pending => WAITING,
            RunStatus::Running => RUNNING,
            RunStatus::Successful => SUCCESSFUL,
            RunStatus::Failed => FAILED,
            RunStatus::Cancelled => CANCELLED,
        }
    }

    /// How a job looks.
    #[must_use]
    pub fn of_job(status: JobStatus, failure: Failure) -> Look {
        match (status, failure) {
            (JobStatus::Blocked, _) => BLOCKED,
            (JobStatus::Scheduled | JobStatus::Pending | JobStatus::Waiting, _) => WAITING,
            (JobStatus::Running, _) => RUNNING,
            (JobStatus::Successful, _) => SUCCESSFUL,
            (JobStatus::Failed, Failure::Allowed) => FAILED_ALLOWED,
            (JobStatus::Failed, Failure::Matters) => FAILED,
            (JobStatus::Skipped, _) => SKIPPED,
            (JobStatus::Cancelled, _) => CANCELLED,
        }
    }
}

/// Whether the failure of a job fails its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It does.
    Matters,
    /// It does not.
    Allowed,
}

impl Failure {
    /// Of the setting of a job.
    #[must_use]
    pub fn of(allow_failure: bool) -> Failure {
        if allow_failure { Failure::Allowed } else { Failure::Matters }
    }
}
