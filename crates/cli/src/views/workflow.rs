//! Registered workflows as JSON.

use serde::Serialize;
use serde_json::Value;
use windlass::store::{Applied, Change, RegisteredVersion, Registration};

use super::instant;
use crate::changes::Changes;
use crate::workflow_files::WorkflowFile;

/// What `apply` did with a file.
#[derive(Debug, Serialize)]
pub(crate) struct AppliedView {
    workflow: String,
    file: String,
    version: i64,
    change: &'static str,
    changes: Option<Changes>,
}

impl AppliedView {
    pub(crate) fn new(file: &WorkflowFile, applied: &Applied) -> AppliedView {
        AppliedView {
            workflow: applied.name.clone(),
            file: file.absolute.clone(),
            version: applied.version,
            change: match applied.change {
                Change::Created => "created",
                Change::Updated => "updated",
                Change::Unchanged => "unchanged",
            },
            changes: applied.before.as_ref().map(|before| Changes::between(before, &file.workflow)),
        }
    }
}

/// A registered workflow.
#[derive(Debug, Serialize)]
pub(crate) struct RegistrationView {
    name: String,
    version: i64,
    file: Option<String>,
    dir: Option<String>,
    paused_at: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    schedules: Vec<String>,
    next_at: Option<String>,
}

impl RegistrationView {
    pub(crate) fn new(
        registration: &Registration,
        schedules: Vec<String>,
        next_at: Option<i64>,
    ) -> RegistrationView {
        RegistrationView {
            name: registration.name.clone(),
            version: registration.version,
            file: registration.file.clone(),
            dir: registration.dir.clone(),
            paused_at: instant(registration.paused_at),
            created_at: instant(Some(registration.created_at)),
            updated_at: instant(Some(registration.updated_at)),
            schedules,
            next_at: instant(next_at),
        }
    }
}

/// A version that was registered.
#[derive(Debug, Serialize)]
pub(crate) struct VersionView {
    version: i64,
    active: bool,
    file: Option<String>,
    applied_at: Option<String>,
    changes: Option<Changes>,
}

impl VersionView {
    /// A version, and what it changed of the one before.
    pub(crate) fn new(
        version: &RegisteredVersion,
        before: Option<&RegisteredVersion>,
        active: Option<i64>,
    ) -> VersionView {
        VersionView {
            version: version.version,
            active: active == Some(version.version),
            file: version.file.clone(),
            applied_at: instant(Some(version.applied_at)),
            changes: before.map(|before| Changes::between(&before.workflow, &version.workflow)),
        }
    }
}

/// A version with its definition.
#[derive(Debug, Serialize)]
pub(crate) struct DefinitionView {
    name: String,
    version: i64,
    active: bool,
    file: Option<String>,
    applied_at: Option<String>,
    paused_at: Option<String>,
    definition: Value,
}

impl DefinitionView {
    pub(crate) fn new(
        name: &str,
        version: &RegisteredVersion,
        registration: Option<&Registration>,
    ) -> DefinitionView {
        DefinitionView {
            name: name.to_owned(),
            version: version.version,
            active: registration.is_some_and(|registration| registration.version == version.version),
            file: version.file.clone(),
            applied_at: instant(Some(version.applied_at)),
            paused_at: instant(registration.and_then(|registration| registration.paused_at)),
            definition: super::json(&version.workflow.to_json()),
        }
    }
}
