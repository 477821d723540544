//! The stored form of a workflow, and the hash that names its content.

use sha2::{Digest, Sha256};

use crate::model::Workflow;

impl Workflow {
    /// The stored form: the same workflow always gives the same text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a workflow has only string keys and finite numbers")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the text was not written by [`Workflow::to_json`].
    pub fn from_json(json: &str) -> Result<Workflow, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// SHA-256 of the stored form, in hexadecimal: equal exactly for equal definitions.
    #[must_use]
    pub fn hash(&self) -> String {
        Sha256::digest(self.to_json().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
