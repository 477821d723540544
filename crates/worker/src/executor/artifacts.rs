//! Keeps the artifacts of an attempt that succeeded, before its end is written.

use crate::handler::Attempt;
use windlass_engine::store::Artifact;
use windlass_engine::transition::Outcome;

/// Copies the files that the job keeps. If that fails, so does the attempt.
pub(super) fn keep(attempt: &Attempt, outcome: Outcome) -> (Outcome, Vec<Artifact>) {
    let Outcome::Successful { .. } = &outcome else { return (outcome, Vec::new()) };
    match attempt.keep_files() {
        Ok(artifacts) => (outcome, artifacts),
        Err(failure) => (failure, Vec::new()),
    }
}
