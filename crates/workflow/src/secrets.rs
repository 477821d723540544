//! Which secrets a job uses.

use serde::{Deserialize, Serialize};

use crate::model::{Job, Secret, SecretSource, Workflow};

/// A secret that a job uses, as its payload has it: where a worker finds the value, never the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSecret {
    /// The name in the workflow.
    pub name: String,
    /// Where a worker finds the value.
    #[serde(default)]
    pub source: SecretSource,
    /// Whether the process gets it as a variable of its name. Otherwise only templates read it.
    #[serde(default, rename = "variable", skip_serializing_if = "std::ops::Not::not")]
    pub is_variable: bool,
}

impl Secret {
    /// The variable of the worker that may have the value.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        self.source.variable(&self.name)
    }
}

impl SecretSource {
    /// The variable of the worker that may have the value of the secret with this name.
    #[must_use]
    pub fn variable<'a>(&'a self, secret: &'a str) -> Option<&'a str> {
        match self {
            SecretSource::Worker => Some(secret),
            SecretSource::Env(variable) => Some(variable),
            SecretSource::File(_) | SecretSource::Command(_) => None,
        }
    }
}

impl Workflow {
    /// The secrets that the job uses, as variables or in its templates, in the order of the file. A worker resolves these and
    /// no others.
    #[must_use]
    pub fn secrets_of(&self, job: &Job) -> Vec<JobSecret> {
        if self.secrets.is_empty() {
            return Vec::new();
        }
        let read = job.action.secrets_read();
        let mut used = Vec::new();
        for Secret { name, source } in &self.secrets {
            let is_variable = job.secrets.contains(name);
            if is_variable || read.contains(name) {
                used.push(JobSecret { name: name.clone(), source: source.clone(), is_variable });
            }
        }
        used
    }

    /// The variables of workers that may have values of secrets, sorted, without duplicates. No other job gets them.
    #[must_use]
    pub fn secret_variables(&self) -> Vec<&str> {
        let mut variables: Vec<&str> = self.secrets.iter().filter_map(Secret::variable).collect();
        variables.sort_unstable();
        variables.dedup();
        variables
    }
}
