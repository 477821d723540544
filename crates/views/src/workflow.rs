//! Registered workflows as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use windlass_engine::store::{Applied, RegisteredVersion, Registration, RegistrationChange};
use windlass_workflow::Workflow;

use crate::time::{Instant, instant};
use crate::workflow_changes::WorkflowChanges;

/// The result of applying one file.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Applied")]
pub struct AppliedView {
    /// Its name.
    workflow: String,
    /// The absolute path of its file; null if it was sent to the web server.
    file: Option<String>,
    /// The number of the version.
    version: i64,
    /// What was done.
    #[schemars(extend("enum" = ["created", "updated", "unchanged"]))]
    change: &'static str,
    /// What differs from the version before.
    changes: Option<WorkflowChanges>,
}

impl AppliedView {
    /// `file` is the absolute path, if there is one; `workflow` is its content.
    pub fn new(file: Option<&str>, workflow: &Workflow, applied: &Applied) -> AppliedView {
        AppliedView {
            workflow: applied.name.clone(),
            file: file.map(str::to_owned),
            version: applied.version,
            change: match applied.change {
                RegistrationChange::Created => "created",
                RegistrationChange::Updated => "updated",
                RegistrationChange::Unchanged => "unchanged",
            },
            changes: applied.before.as_ref().map(|before| WorkflowChanges::between(before, workflow)),
        }
    }
}

/// A registered workflow.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Registration")]
pub struct RegistrationView {
    /// Its name.
    workflow: String,
    /// The active version.
    version: i64,
    /// The file that it was registered from.
    file: Option<String>,
    /// The folder in which its jobs start.
    dir: Option<String>,
    /// Since when its schedules are paused.
    paused_at: Option<Instant>,
    /// When it was registered first.
    created_at: Option<Instant>,
    /// When it was registered last.
    updated_at: Option<Instant>,
    /// Its tags, sorted.
    tags: Vec<String>,
    /// The names of its schedules.
    schedules: Vec<String>,
    /// The names of its triggers.
    triggers: Vec<String>,
    /// The next occurrence of all its schedules.
    next_at: Option<Instant>,
}

impl RegistrationView {
    /// `schedules` and `triggers` are names; `next_at` is the earliest occurrence of all of them.
    pub fn new(
        registration: &Registration,
        schedules: Vec<String>,
        triggers: Vec<String>,
        next_at: Option<i64>,
    ) -> RegistrationView {
        RegistrationView {
            workflow: registration.name.clone(),
            version: registration.version,
            file: registration.file.clone(),
            dir: registration.dir.clone(),
            paused_at: instant(registration.paused_at),
            created_at: instant(Some(registration.created_at)),
            updated_at: instant(Some(registration.updated_at)),
            tags: registration.tags.clone(),
            schedules,
            triggers,
            next_at: instant(next_at),
        }
    }
}

/// One registered version of a workflow.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Version")]
pub struct VersionView {
    /// Its number.
    version: i64,
    /// It is the active version.
    active: bool,
    /// The file that it was registered from.
    file: Option<String>,
    /// When it was registered.
    applied_at: Option<Instant>,
    /// What differs from the version before.
    changes: Option<WorkflowChanges>,
}

impl VersionView {
    /// `before` is the version before this one; `active` is the number of the active version.
    pub fn new(
        version: &RegisteredVersion,
        before: Option<&RegisteredVersion>,
        active: Option<i64>,
    ) -> VersionView {
        VersionView {
            version: version.version,
            active: active == Some(version.version),
            file: version.file.clone(),
            applied_at: instant(Some(version.applied_at)),
            changes: before.map(|before| WorkflowChanges::between(&before.workflow, &version.workflow)),
        }
    }
}

/// A version with its definition.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Definition")]
pub struct DefinitionView {
    /// The name.
    workflow: String,
    /// The number of the version.
    version: i64,
    /// It is the active version.
    active: bool,
    /// The file that it was registered from.
    file: Option<String>,
    /// When it was registered.
    applied_at: Option<Instant>,
    /// Since when the schedules of the workflow are paused.
    paused_at: Option<Instant>,
    /// The whole definition.
    definition: Value,
}

impl DefinitionView {
    /// `registration` is `None` for a workflow that was removed.
    pub fn new(
        name: &str,
        version: &RegisteredVersion,
        registration: Option<&Registration>,
    ) -> DefinitionView {
        DefinitionView {
            workflow: name.to_owned(),
            version: version.version,
            active: registration.is_some_and(|registration| registration.version == version.version),
            file: version.file.clone(),
            applied_at: instant(Some(version.applied_at)),
            paused_at: instant(registration.and_then(|registration| registration.paused_at)),
            definition: crate::json(&version.workflow.to_json()),
        }
    }
}
