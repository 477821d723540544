//! An artifact as JSON.

use serde::Serialize;
use windlass_engine::store::KeptArtifact;

/// A file that a job kept.
#[derive(Debug, Serialize)]
pub struct ArtifactView {
    job_id: i64,
    job: String,
    path: String,
    bytes: i64,
    sha256: String,
}

impl ArtifactView {
    /// The view of an artifact.
    #[must_use]
    pub fn new(kept: &KeptArtifact) -> ArtifactView {
        let KeptArtifact { job_id, job, artifact } = kept;
        ArtifactView {
            job_id: *job_id,
            job: job.clone(),
            path: artifact.path.clone(),
            bytes: artifact.bytes,
            sha256: artifact.hash.clone(),
        }
    }
}
