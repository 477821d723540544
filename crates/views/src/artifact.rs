//! An artifact as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use windlass_engine::store::KeptArtifact;

/// A file that a job kept.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Artifact")]
pub struct ArtifactView {
    /// The job that kept the file.
    job_id: i64,
    /// The name of that job.
    job: String,
    /// The path of the file, from the folder of the job.
    path: String,
    /// Its size.
    bytes: i64,
    /// The SHA-256 of its content, in hexadecimal digits.
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
