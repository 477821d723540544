//! The stored form of a workflow, and the hash of its content.

use serde::de::Error as _;
use sha2::{Digest, Sha256};

use crate::check::check_graph;
use crate::model::Workflow;

impl Workflow {
    /// The stored form. Equal workflows give the same text.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a workflow has only string keys and finite numbers")
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// The text has another shape than [`Workflow::to_json`] writes, an index names no job, or jobs need each other in a
    /// cycle.
    pub fn from_json(json: &str) -> Result<Workflow, serde_json::Error> {
        let workflow: Workflow = serde_json::from_str(json)?;
        // Other programs can write to the table that has the stored text.
        for workflow in std::iter::once(&workflow).chain(&workflow.workflows) {
            check_graph(workflow).map_err(serde_json::Error::custom)?;
        }
        Ok(workflow)
    }

    /// The SHA-256 of the stored form, in hexadecimal. Equal workflows have equal hashes.
    #[must_use]
    pub fn hash(&self) -> String {
        hash_of_stored(&self.to_json())
    }
}

/// The hash of a workflow whose stored form the caller has already. Making the stored form of a large workflow takes long.
#[must_use]
pub fn hash_of_stored(json: &str) -> String {
    Sha256::digest(json.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::{Source, Workflow, hash_of_stored, parse};

    fn workflow(text: &str) -> Workflow {
        parse(&Source::new("a.toml", text.into()).unwrap()).unwrap()
    }

    const TWO_JOBS: &str = "[jobs.a]\nrun = 'x'\n[jobs.b]\nneeds = 'a'\ncommand = ['y']\n";

    #[test]
    fn the_stored_form_can_be_read_back() {
        let workflow = workflow(TWO_JOBS);
        assert_eq!(Workflow::from_json(&workflow.to_json()).unwrap(), workflow);
    }

    #[test]
    fn the_hash_depends_on_the_content_and_not_on_the_spelling() {
        let first = workflow(TWO_JOBS).hash();
        assert_eq!(first.len(), 64);
        assert_eq!(hash_of_stored(&workflow(TWO_JOBS).to_json()), first);
        let other_spelling = TWO_JOBS.replace("'x'", "\"x\" # a comment").replace("'a'", "['a']");
        assert_eq!(workflow(&other_spelling).hash(), first);
        assert_ne!(workflow(&TWO_JOBS.replace("'x'", "'z'")).hash(), first);
    }

    #[test]
    fn wrong_indices_and_cycles_are_refused() {
        let json = workflow(TWO_JOBS).to_json();
        for (wrong, reason) in [("[7]", "it is 7"), ("[1]", "the job itself")] {
            let changed = json.replace("\"needs\":[0]", &format!("\"needs\":{wrong}"));
            assert_ne!(changed, json);
            let message = Workflow::from_json(&changed).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
        assert!(Workflow::from_json("{}").is_err());
    }
}
