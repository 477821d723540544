//! The end of an attempt between the decision and the write.

use crate::shared::AttemptKey;
use windlass_engine::store::Finish;

/// What the end of an attempt makes of its job. It is decided, and not written yet.
pub(super) struct DecidedEnd {
    pub(super) finish: Finish,
    /// Whether anything of the attempt may have run.
    pub(super) has_begun: bool,
}

impl DecidedEnd {
    pub(super) fn key(&self) -> AttemptKey {
        (self.finish.job_id, self.finish.attempt)
    }
}
