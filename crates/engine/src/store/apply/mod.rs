//! Registers a definition under its name, and makes it the active version.

use crate::store::Registrations;
use crate::store::evidence::Evidence;
use crate::store::registrations::versions::{VersionRef, definition, insert_version, last_version};
use crate::store::registrations::{NewRegistration, Registration, RegistrationChange, find, read};
use crate::store::runs::prepared::StoredDefinition;
use crate::store::runs::submit::store_definition;
use crate::store::schedules::{ChangedSchedule, advance_cursors_of_workflow, preview_sync, sync};
use crate::store::triggers::sync_triggers;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Value, first};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::Workflow;

pub(in crate::store) mod change;

/// How often a registration is tried again if other processes register the same name at the same time.
const TRIES_MAX: usize = 16;

/// What a registration did.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The name of the workflow.
    pub name: String,
    /// The version that is active now.
    pub version: i64,
    /// Whether the active version changed.
    pub change: RegistrationChange,
    /// The previous active definition, if it was a different one.
    pub before: Option<Workflow>,
    /// The schedules that changed.
    pub schedules: Vec<ChangedSchedule>,
}

impl Registrations<'_> {
    /// Registers a definition and activates it. If the same content is active already, no new version is made.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place of the error if the workflow is invalid; [`Error::Conflict`] if other
    /// processes keep changing the same registration; and the database's.
    pub fn apply(&self, new: NewRegistration) -> Result<Applied> {
        new.workflow.check().map_err(|error| {
            Error::invalid(format!("register workflow `{}`", new.workflow.name), error.to_string())
        })?;
        self.store.check_files(&format!("register workflow `{}`", new.workflow.name), &new.workflow)?;
        let now_ms = self.store.clock.now_ms();
        let content = StoredDefinition::of(&new.workflow);
        self.store.write("register a workflow", Evidence::Token, move |connection| {
            let workflow_id = store_definition(connection, &new.workflow.name, &content, now_ms)?;
            for _try in 0..TRIES_MAX {
                if let Some(mut applied) = apply(connection, &new, workflow_id, now_ms)? {
                    let Workflow { name, schedules, .. } = &new.workflow;
                    match applied.change {
                        // Occurrences that were missed while the workflow was not registered are not caught up, not
                        // even by a rule that is about to be replaced.
                        RegistrationChange::Created => advance_cursors_of_workflow(connection, name, now_ms)?,
                        RegistrationChange::Updated | RegistrationChange::Unchanged => {}
                    }
                    sync_triggers(connection, name, &new.workflow.triggers, now_ms)?;
                    applied.schedules = sync(connection, name, schedules, now_ms)?;
                    connection.wake(WakeUps::DUE);
                    return Ok(applied);
                }
            }
            let operation = format!("register workflow `{}`", new.workflow.name);
            Err(Error::conflict(operation, "other processes keep registering and removing it"))
        })
    }

    /// Returns what [`Registrations::apply`] would do, and changes nothing.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn preview(&self, workflow: &Workflow) -> Result<Applied> {
        let (name, hash) = (&workflow.name, workflow.hash());
        self.store.read(|connection| {
            let content_id = first(
                connection,
                "SELECT id FROM workflows WHERE name = $1 AND hash = $2",
                &[name.into(), (&hash).into()],
                |row| row.integer(0),
            )?;
            let present = find(connection, name)?;
            let last = last_version(connection, name)?;
            let (change, version) = decide_version(present.as_ref().map(VersionRef::of), last, content_id);
            let before = previous_definition(connection, change, present.as_ref())?;
            let schedules = preview_sync(connection, name, &workflow.schedules)?;
            Ok(Applied { name: name.clone(), version, change, before, schedules })
        })
    }
}

/// Returns `None` if another transaction has registered the name in between.
fn apply(
    connection: &mut dyn Connection,
    new: &NewRegistration,
    workflow_id: i64,
    now_ms: i64,
) -> Result<Option<Applied>> {
    let name = &new.workflow.name;
    // The registration's row is the lock of the name. If there is no row, the first transaction to insert one wins.
    let present = first(
        connection,
        "SELECT {registration_columns} FROM registrations WHERE name = $1 {wait}",
        &[name.into()],
        read,
    )?;
    let last = last_version(connection, name)?;
    let (change, version) = decide_version(present.as_ref().map(VersionRef::of), last, Some(workflow_id));
    let before = previous_definition(connection, change, present.as_ref())?;
    if last.is_none_or(|last| last.version < version)
        && !insert_version(connection, new, version, workflow_id, now_ms)?
    {
        return Ok(None);
    }
    let is_written = match (change, &present) {
        (RegistrationChange::Unchanged, Some(present))
            if present.file == new.file && present.dir == new.dir =>
        {
            true
        }
        (RegistrationChange::Created, _) => insert(connection, new, version, workflow_id, now_ms)?,
        (RegistrationChange::Updated | RegistrationChange::Unchanged, _) => {
            update(connection, new, version, workflow_id, now_ms)?
        }
    };
    if !is_written {
        return Ok(None);
    }
    Ok(Some(Applied { name: name.clone(), version, change, before, schedules: Vec::new() }))
}

/// Decides what activating a definition changes, and which version number it gets. `content_id` is the row of
/// `workflows` with the same content, or `None` if there is none yet.
fn decide_version(
    active: Option<VersionRef>,
    last: Option<VersionRef>,
    content_id: Option<i64>,
) -> (RegistrationChange, i64) {
    let has_content = |version: &VersionRef| Some(version.workflow_id) == content_id;
    if let Some(same) = active.filter(has_content) {
        return (RegistrationChange::Unchanged, same.version);
    }
    let change = if active.is_some() { RegistrationChange::Updated } else { RegistrationChange::Created };
    // A workflow that was removed and comes back with the same content keeps its version.
    let version = match last {
        Some(last) if has_content(&last) && active.is_none_or(|active| active.version < last.version) => {
            last.version
        }
        Some(last) => last.version + 1,
        None => 1,
    };
    (change, version)
}

/// The values for a row of `registrations`.
fn registration_values(new: &NewRegistration, version: i64, workflow_id: i64, now_ms: i64) -> [Value<'_>; 6] {
    [
        (&new.workflow.name).into(),
        version.into(),
        workflow_id.into(),
        (&new.file).into(),
        (&new.dir).into(),
        now_ms.into(),
    ]
}

/// Inserts the registration. Returns `false` if the name is taken.
fn insert(
    connection: &mut dyn Connection,
    new: &NewRegistration,
    version: i64,
    workflow_id: i64,
    now_ms: i64,
) -> Result<bool> {
    let inserted = connection.execute(
        "INSERT INTO registrations (name, version, workflow_id, file, dir, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6)
         ON CONFLICT (name) DO NOTHING",
        &registration_values(new, version, workflow_id, now_ms),
    )?;
    Ok(inserted == 1)
}

fn update(
    connection: &mut dyn Connection,
    new: &NewRegistration,
    version: i64,
    workflow_id: i64,
    now_ms: i64,
) -> Result<bool> {
    let updated = connection.execute(
        "UPDATE registrations SET version = $2, workflow_id = $3, file = $4, dir = $5, updated_at = $6
         WHERE name = $1",
        &registration_values(new, version, workflow_id, now_ms),
    )?;
    Ok(updated == 1)
}

/// Returns the definition that was active until now, if it was replaced.
fn previous_definition(
    connection: &mut dyn Connection,
    change: RegistrationChange,
    present: Option<&Registration>,
) -> Result<Option<Workflow>> {
    match (change, present) {
        (RegistrationChange::Updated, Some(present)) => definition(connection, present.workflow_id).map(Some),
        (RegistrationChange::Updated, None)
        | (RegistrationChange::Created | RegistrationChange::Unchanged, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_version_is_made_only_for_new_content() {
        let at = |version, workflow_id| Some(VersionRef { version, workflow_id });
        let cases = [
            ("new", None, None, Some(7), (RegistrationChange::Created, 1)),
            ("new, and not stored", None, None, None, (RegistrationChange::Created, 1)),
            ("the same content", at(3, 7), at(3, 7), Some(7), (RegistrationChange::Unchanged, 3)),
            ("other content", at(3, 7), at(3, 7), Some(8), (RegistrationChange::Updated, 4)),
            ("other content, not stored", at(3, 7), at(3, 7), None, (RegistrationChange::Updated, 4)),
            (
                "removed, and back with the same content",
                None,
                at(3, 7),
                Some(7),
                (RegistrationChange::Created, 3),
            ),
            (
                "removed, and back with other content",
                None,
                at(3, 7),
                Some(5),
                (RegistrationChange::Created, 4),
            ),
            (
                "the last version has this content, and is not active",
                at(3, 7),
                at(4, 5),
                Some(5),
                (RegistrationChange::Updated, 4),
            ),
        ];
        for (name, active, last, content_id, expected) in cases {
            assert_eq!(decide_version(active, last, content_id), expected, "{name}");
        }
    }
}
