//! Which secrets a job uses.

use crate::model::{Job, Secret, Workflow};

impl Workflow {
    /// The secrets that the job uses, as variables or in its templates, in the order of the file. A worker resolves these and
    /// no others.
    #[must_use]
    pub fn secrets_of(&self, job: &Job) -> Vec<&Secret> {
        if self.secrets.is_empty() {
            return Vec::new();
        }
        let read = job.action.secrets_read();
        let is_used = |secret: &&Secret| job.secrets.contains(&secret.name) || read.contains(&secret.name);
        self.secrets.iter().filter(is_used).collect()
    }
}
