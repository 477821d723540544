//! What a worker can execute, and whether a job is for it.

use std::collections::HashSet;

/// What a worker can execute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerCapabilities {
    /// Kinds of jobs.
    pub kinds: Vec<String>,
    /// What it has that a job may require.
    pub capabilities: Vec<String>,
    /// The version of its code. Jobs that ask for a later one are kept away from it.
    pub code_version: i64,
}

/// Why a job is not for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Unfit {
    /// It does not know the kind.
    Kind,
    /// It lacks something that the job requires.
    Capabilities,
    /// Its code is too old.
    Version,
}

impl WorkerCapabilities {
    /// Kinds alone, at version 0.
    #[must_use]
    pub fn of_kinds(kinds: Vec<String>) -> WorkerCapabilities {
        WorkerCapabilities { kinds, ..WorkerCapabilities::default() }
    }

    /// Whether a job of this kind is for it. `requires` is the job's JSON list; one that can't be read is
    /// for nobody.
    pub(in crate::store) fn check(&self, kind: &str, requires: &str, code_version: i64) -> Result<(), Unfit> {
        if !self.kinds.iter().any(|known| known == kind) {
            return Err(Unfit::Kind);
        }
        if code_version > self.code_version {
            return Err(Unfit::Version);
        }
        if requires == "[]" {
            return Ok(());
        }
        let has: HashSet<&str> = self.capabilities.iter().map(String::as_str).collect();
        match serde_json::from_str::<Vec<String>>(requires) {
            Ok(requires) if requires.iter().all(|name| has.contains(name.as_str())) => Ok(()),
            Ok(_) | Err(_) => Err(Unfit::Capabilities),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_for_who_knows_its_kind_has_what_it_requires_and_is_not_too_old() {
        let worker_capabilities = WorkerCapabilities {
            kinds: vec!["shell".to_owned()],
            capabilities: vec!["gpu".to_owned(), "ssd".to_owned()],
            code_version: 3,
        };
        let cases = [
            (("shell", "[]", 0), Ok(())),
            (("shell", "[]", 3), Ok(())),
            (("shell", "[]", 4), Err(Unfit::Version)),
            (("http", "[]", 0), Err(Unfit::Kind)),
            (("shell", r#"["gpu"]"#, 0), Ok(())),
            (("shell", r#"["gpu", "ssd"]"#, 3), Ok(())),
            (("shell", r#"["gpu", "tpu"]"#, 0), Err(Unfit::Capabilities)),
            (("shell", "gpu", 0), Err(Unfit::Capabilities)),
            (("shell", "", 0), Err(Unfit::Capabilities)),
        ];
        for ((kind, requires, code_version), expected) in cases {
            assert_eq!(
                worker_capabilities.check(kind, requires, code_version),
                expected,
                "{kind} {requires} {code_version}"
            );
        }
    }
}
