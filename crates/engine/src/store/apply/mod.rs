//! Activates a definition under its name: as the next version, or as the version that has this content already.

use crate::store::Registrations;
use crate::store::evidence::Evidence;
use crate::store::registrations::versions::{Numbers, definition, insert_version, last_version};
use crate::store::registrations::{Change, NewRegistration, Registration, read};
use crate::store::registrations::{find, select_registrations};
use crate::store::runs::submit::{Content, keep_version};
use crate::store::schedules::advance_cursors_of_workflow;
use crate::store::schedules::{ChangedSchedule, preview_sync, sync};
use windlass_db::Connection;
use windlass_db::Value;
use windlass_db::error::Error;
use windlass_db::error::Result;
use windlass_db::first;
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::Workflow;

pub(in crate::store) mod change;

/// How often a registration is begun anew when others register the same name at the same moment.
const TRIES_MAX: usize = 16;

/// What a registration came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The name of the workflow.
    pub name: String,
    /// The version that is active now.
    pub version: i64,
    /// What became of it.
    pub change: Change,
    /// The definition that was active before, when it was another.
    pub before: Option<Workflow>,
    /// What changed of its schedules.
    pub schedules: Vec<ChangedSchedule>,
}

impl Registrations<'_> {
    /// Activates a definition under its name. The content that is active already makes no new version.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place when the workflow can't be executed, and the database's.
    pub fn apply(&self, new: NewRegistration) -> Result<Applied> {
        new.workflow.check().map_err(|error| {
            Error::invalid(format!("register workflow `{}`", new.workflow.name), error.to_string())
        })?;
        let now_ms = self.store.clock.now_ms();
        let content = Content::of(&new.workflow);
        self.store.write("register a workflow", Evidence::Token, move |connection| {
            let workflow_id = keep_version(connection, &new.workflow.name, &content, now_ms)?;
            for _try in 0..TRIES_MAX {
                if let Some(mut applied) = apply(connection, &new, workflow_id, now_ms)? {
                    let Workflow { name, schedules, .. } = &new.workflow;
                    match applied.change {
                        // What it missed while it was not there is not caught up, also not by a rule that
                        // is about to be replaced.
                        Change::Created => advance_cursors_of_workflow(connection, name, now_ms)?,
                        Change::Updated | Change::Unchanged => {}
                    }
                    applied.schedules = sync(connection, name, schedules, now_ms)?;
                    connection.wake(WakeUps::DUE);
                    return Ok(applied);
                }
            }
            let operation = format!("register workflow `{}`", new.workflow.name);
            Err(Error::conflict(operation, "others register and remove it all the time"))
        })
    }

    /// What [`Store::apply`] would come to; nothing changes.
    ///
    /// # Errors
    /// The database's.
    pub fn preview(&self, workflow: &Workflow) -> Result<Applied> {
        let (name, hash) = (&workflow.name, workflow.hash());
        self.store.read(|connection| {
            let own = first(
                connection,
                "SELECT id FROM workflows WHERE name = $1 AND hash = $2",
                &[name.into(), (&hash).into()],
                |row| row.integer(0),
            )?;
            let present = find(connection, name)?;
            let last = last_version(connection, name)?;
            let (change, version) = decide(present.as_ref().map(Numbers::of), last, own);
            let before = before(connection, change, present.as_ref())?;
            let schedules = preview_sync(connection, name, &workflow.schedules)?;
            Ok(Applied { name: name.clone(), version, change, before, schedules })
        })
    }
}

/// Returns nothing when another transaction registered the name meanwhile.
fn apply(
    connection: &mut dyn Connection,
    new: &NewRegistration,
    workflow_id: i64,
    now_ms: i64,
) -> Result<Option<Applied>> {
    let name = &new.workflow.name;
    // Its row is the lock of its name; without one, whoever inserts it first is.
    let present = first(connection, select_registrations!("WHERE name = $1 {wait}"), &[name.into()], read)?;
    let last = last_version(connection, name)?;
    let (change, version) = decide(present.as_ref().map(Numbers::of), last, Some(workflow_id));
    let before = before(connection, change, present.as_ref())?;
    if last.is_none_or(|last| last.version < version)
        && !insert_version(connection, new, version, workflow_id, now_ms)?
    {
        return Ok(None);
    }
    let is_written = match (change, &present) {
        (Change::Unchanged, Some(present)) if present.file == new.file && present.dir == new.dir => true,
        (Change::Created, _) => insert(connection, new, version, workflow_id, now_ms)?,
        (Change::Updated | Change::Unchanged, _) => update(connection, new, version, workflow_id, now_ms)?,
    };
    if !is_written {
        return Ok(None);
    }
    Ok(Some(Applied { name: name.clone(), version, change, before, schedules: Vec::new() }))
}

/// What activating the content `own` changes, and under which version. A content that was never seen
/// has no number.
fn decide(active: Option<Numbers>, last: Option<Numbers>, own: Option<i64>) -> (Change, i64) {
    let has_content = |numbers: &Numbers| Some(numbers.workflow_id) == own;
    if let Some(same) = active.filter(has_content) {
        return (Change::Unchanged, same.version);
    }
    let change = if active.is_some() { Change::Updated } else { Change::Created };
    // A file that was away for a while has not changed by that.
    let version = match last {
        Some(last) if has_content(&last) && active.is_none_or(|numbers| numbers.version < last.version) => {
            last.version
        }
        Some(last) => last.version + 1,
        None => 1,
    };
    (change, version)
}

/// The values of a row of `registrations`.
fn row(new: &NewRegistration, version: i64, workflow_id: i64, now_ms: i64) -> [Value<'_>; 6] {
    [
        (&new.workflow.name).into(),
        version.into(),
        workflow_id.into(),
        (&new.file).into(),
        (&new.dir).into(),
        now_ms.into(),
    ]
}

/// Returns whether the name was free.
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
        &row(new, version, workflow_id, now_ms),
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
        &row(new, version, workflow_id, now_ms),
    )?;
    Ok(updated == 1)
}

/// The definition that is no longer active.
fn before(
    connection: &mut dyn Connection,
    change: Change,
    present: Option<&Registration>,
) -> Result<Option<Workflow>> {
    match (change, present) {
        (Change::Updated, Some(present)) => definition(connection, present.workflow_id).map(Some),
        (Change::Updated, None) | (Change::Created | Change::Unchanged, _) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_is_no_new_version_and_numbers_go_on() {
        let at = |version, workflow_id| Some(Numbers { version, workflow_id });
        let cases = [
            ("new", None, None, Some(7), (Change::Created, 1)),
            ("never seen", None, None, None, (Change::Created, 1)),
            ("the same", at(3, 7), at(3, 7), Some(7), (Change::Unchanged, 3)),
            ("another", at(3, 7), at(3, 7), Some(8), (Change::Updated, 4)),
            ("another that was never seen", at(3, 7), at(3, 7), None, (Change::Updated, 4)),
            ("back as it was", None, at(3, 7), Some(7), (Change::Created, 3)),
            ("back as another", None, at(3, 7), Some(5), (Change::Created, 4)),
            ("numbered, and another came between", at(3, 7), at(4, 5), Some(5), (Change::Updated, 4)),
        ];
        for (name, active, last, own, expected) in cases {
            assert_eq!(decide(active, last, own), expected, "{name}");
        }
    }
}
