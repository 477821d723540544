//! Registered workflows: which version of a definition is in force under its name. A version never changes;
//! its content is the row of `workflows` that it names.

use windlass_workflow::Workflow;

use super::Store;
use super::schedules::{Synced, begin_anew, preview_sync, sync};
use super::submit::{Content, keep_version};
use crate::db::{Connection, Row, all, first};
use crate::error::{Error, Result};
use crate::signal::Hints;

/// How often a registration is begun anew when others register the same name at the same moment.
const TRIES_MAX: usize = 16;

/// A workflow to be put in force under its name.
#[derive(Debug, Clone)]
pub struct NewRegistration {
    /// The definition.
    pub workflow: Workflow,
    /// Where it was read from.
    pub file: Option<String>,
    /// The folder that relative paths of its jobs start from.
    pub dir: Option<String>,
}

/// What a registration came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The name of the workflow.
    pub name: String,
    /// The version that is in force now.
    pub version: i64,
    /// What became of it.
    pub change: Change,
    /// The definition that was in force before, when it was another.
    pub before: Option<Workflow>,
    /// What changed of its schedules.
    pub schedules: Vec<Synced>,
}

/// What a registration changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The name was not registered. Its version is above 1 when it had been there before and was removed.
    Created,
    /// Another content is in force, under the next version.
    Updated,
    /// The same content was in force already. The file may be another.
    Unchanged,
}

/// A name and what is in force under it. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The name of the workflow.
    pub name: String,
    /// The version in force, counted from 1.
    pub version: i64,
    /// The row of `workflows` with its definition.
    pub workflow_id: i64,
    /// Where it was read from.
    pub file: Option<String>,
    /// The folder that relative paths of its jobs start from.
    pub dir: Option<String>,
    /// Since when its schedules fire nothing.
    pub paused_at: Option<i64>,
    /// When the name was registered.
    pub created_at: i64,
    /// When anything of this changed.
    pub updated_at: i64,
}

/// A version that was put in force.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredVersion {
    /// Its number.
    pub version: i64,
    /// The row of `workflows` with its definition.
    pub workflow_id: i64,
    /// Where it was read from.
    pub file: Option<String>,
    /// When it was put in force, in milliseconds since the Unix epoch.
    pub applied_at: i64,
    /// Its definition.
    pub workflow: Workflow,
}

/// `SELECT` of every column that [`read`] reads, in its order.
macro_rules! select_registrations {
    ($rest:literal) => {
        concat!(
            "SELECT name, version, workflow_id, file, dir, paused_at, created_at, updated_at
             FROM registrations ",
            $rest
        )
    };
}

/// `SELECT` of every column that [`read_version`] reads, in its order.
macro_rules! select_versions {
    ($rest:literal) => {
        concat!(
            "SELECT versions.version, versions.workflow_id, versions.file, versions.applied_at,
                    workflows.definition
             FROM registration_versions AS versions
             JOIN workflows ON workflows.id = versions.workflow_id ",
            $rest
        )
    };
}

impl Store {
    /// Puts a definition in force under its name. The content that is in force already makes no new version.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the workflow has no jobs, and the database's.
    pub fn apply(&self, new: NewRegistration) -> Result<Applied> {
        if new.workflow.jobs.is_empty() {
            let operation = format!("register workflow `{}`", new.workflow.name);
            return Err(Error::invalid(operation, "it has no jobs"));
        }
        let now_ms = self.clock.now_ms();
        let content = Content::of(&new.workflow);
        self.write("register a workflow", move |connection| {
            let workflow_id = keep_version(connection, &new.workflow.name, &content, now_ms)?;
            for _try in 0..TRIES_MAX {
                if let Some(mut applied) = apply(connection, &new, workflow_id, now_ms)? {
                    let Workflow { name, schedules, .. } = &new.workflow;
                    match applied.change {
                        // What it missed while it was not there is not caught up, also not by a rule that
                        // is about to be replaced.
                        Change::Created => begin_anew(connection, name, now_ms)?,
                        Change::Updated | Change::Unchanged => {}
                    }
                    applied.schedules = sync(connection, name, schedules, now_ms)?;
                    connection.hint(Hints::DUE);
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
        self.read(|connection| {
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

    /// What is in force under a name.
    ///
    /// # Errors
    /// The database's.
    pub fn registration(&self, name: &str) -> Result<Option<Registration>> {
        self.read(|connection| find(connection, name))
    }

    /// All registered workflows by name.
    ///
    /// # Errors
    /// The database's.
    pub fn registrations(&self) -> Result<Vec<Registration>> {
        self.read(|connection| all(connection, select_registrations!("ORDER BY name"), &[], read))
    }

    /// The definition that is in force under a name, and its registration.
    ///
    /// # Errors
    /// The database's, or [`Error::Internal`] when another program wrote a definition that is none.
    pub fn registered_workflow(&self, name: &str) -> Result<Option<(Registration, Workflow)>> {
        self.read(|connection| registered_workflow(connection, name))
    }

    /// The versions that were put in force under a name, the newest first; also of one that was removed.
    ///
    /// # Errors
    /// The database's, or [`Error::Internal`] when another program wrote a definition that is none.
    pub fn registered_versions(&self, name: &str, limit: i64) -> Result<Vec<RegisteredVersion>> {
        self.read(|connection| {
            all(
                connection,
                select_versions!("WHERE versions.name = $1 ORDER BY versions.version DESC LIMIT $2"),
                &[name.into(), limit.into()],
                read_version,
            )
        })
    }

    /// One version of a name; also of one that was removed.
    ///
    /// # Errors
    /// The database's, or [`Error::Internal`] when another program wrote a definition that is none.
    pub fn registered_version(&self, name: &str, version: i64) -> Result<Option<RegisteredVersion>> {
        self.read(|connection| {
            let sql = select_versions!("WHERE versions.name = $1 AND versions.version = $2");
            first(connection, sql, &[name.into(), version.into()], read_version)
        })
    }

    /// Takes a name out of force. Its versions are kept, its runs go on.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn remove_registration(&self, name: &str) -> Result<()> {
        let (name, now_ms) = (name.to_owned(), self.clock.now_ms());
        self.write("remove a workflow", move |connection| {
            let removed =
                connection.execute("DELETE FROM registrations WHERE name = $1", &[(&name).into()])?;
            if removed == 0 {
                return Err(not_registered(&name));
            }
            sync(connection, &name, &[], now_ms)?;
            connection.hint(Hints::DUE);
            Ok(())
        })
    }

    /// Lets the schedules of a workflow fire nothing. Returns whether they did before.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn pause_registration(&self, name: &str) -> Result<bool> {
        let (name, now_ms) = (name.to_owned(), self.clock.now_ms());
        self.write("pause a workflow", move |connection| {
            let paused = connection.execute(
                "UPDATE registrations SET paused_at = $2, updated_at = $2
                 WHERE name = $1 AND paused_at IS NULL",
                &[(&name).into(), now_ms.into()],
            )?;
            connection.hint(Hints::DUE);
            changed_or_missing(connection, &name, paused)
        })
    }

    /// Lets the schedules of a workflow fire again, from now on. Returns whether they did not before.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn resume_registration(&self, name: &str) -> Result<bool> {
        let (name, now_ms) = (name.to_owned(), self.clock.now_ms());
        self.write("resume a workflow", move |connection| {
            let resumed = connection.execute(
                "UPDATE registrations SET paused_at = NULL, updated_at = $2
                 WHERE name = $1 AND paused_at IS NOT NULL",
                &[(&name).into(), now_ms.into()],
            )?;
            if resumed > 0 {
                begin_anew(connection, &name, now_ms)?;
            }
            changed_or_missing(connection, &name, resumed)
        })
    }
}

/// The definition that is in force under a name, inside a transaction.
pub(super) fn registered_workflow(
    connection: &mut dyn Connection,
    name: &str,
) -> Result<Option<(Registration, Workflow)>> {
    let Some(registration) = find(connection, name)? else { return Ok(None) };
    let workflow = definition(connection, registration.workflow_id)?;
    Ok(Some((registration, workflow)))
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

/// A version and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Numbers {
    version: i64,
    workflow_id: i64,
}

impl Numbers {
    fn of(registration: &Registration) -> Numbers {
        Numbers { version: registration.version, workflow_id: registration.workflow_id }
    }
}

/// What putting the content `own` in force comes to, and under which version. A content that was never seen
/// has no number.
fn decide(in_force: Option<Numbers>, last: Option<Numbers>, own: Option<i64>) -> (Change, i64) {
    let has_content = |numbers: &Numbers| Some(numbers.workflow_id) == own;
    if let Some(same) = in_force.filter(has_content) {
        return (Change::Unchanged, same.version);
    }
    let change = if in_force.is_some() { Change::Updated } else { Change::Created };
    // A file that was away for a while has not changed by that.
    let version = match last {
        Some(last) if has_content(&last) && in_force.is_none_or(|numbers| numbers.version < last.version) => {
            last.version
        }
        Some(last) => last.version + 1,
        None => 1,
    };
    (change, version)
}

/// Returns whether the number was free.
fn insert_version(
    connection: &mut dyn Connection,
    new: &NewRegistration,
    version: i64,
    workflow_id: i64,
    now_ms: i64,
) -> Result<bool> {
    let inserted = connection.execute(
        "INSERT INTO registration_versions (name, version, workflow_id, file, applied_at)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (name, version) DO NOTHING",
        &[(&new.workflow.name).into(), version.into(), workflow_id.into(), (&new.file).into(), now_ms.into()],
    )?;
    Ok(inserted == 1)
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
        &[
            (&new.workflow.name).into(),
            version.into(),
            workflow_id.into(),
            (&new.file).into(),
            (&new.dir).into(),
            now_ms.into(),
        ],
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
        &[
            (&new.workflow.name).into(),
            version.into(),
            workflow_id.into(),
            (&new.file).into(),
            (&new.dir).into(),
            now_ms.into(),
        ],
    )?;
    Ok(updated == 1)
}

/// The definition that is not in force any more.
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

fn find(connection: &mut dyn Connection, name: &str) -> Result<Option<Registration>> {
    first(connection, select_registrations!("WHERE name = $1"), &[name.into()], read)
}

fn last_version(connection: &mut dyn Connection, name: &str) -> Result<Option<Numbers>> {
    first(
        connection,
        "SELECT version, workflow_id FROM registration_versions WHERE name = $1
         ORDER BY version DESC LIMIT 1",
        &[name.into()],
        |row| Ok(Numbers { version: row.integer(0)?, workflow_id: row.integer(1)? }),
    )
}

fn definition(connection: &mut dyn Connection, workflow_id: i64) -> Result<Workflow> {
    let definition =
        first(connection, "SELECT definition FROM workflows WHERE id = $1", &[workflow_id.into()], |row| {
            row.text(0)
        })?;
    parse(workflow_id, &definition.ok_or_else(|| Error::not_found(format!("definition {workflow_id}")))?)
}

fn parse(workflow_id: i64, definition: &str) -> Result<Workflow> {
    Workflow::from_json(definition)
        .map_err(|error| Error::internal(format!("read definition {workflow_id}"), error.to_string()))
}

fn changed_or_missing(connection: &mut dyn Connection, name: &str, changed: u64) -> Result<bool> {
    if changed == 0 && find(connection, name)?.is_none() {
        return Err(not_registered(name));
    }
    Ok(changed > 0)
}

fn not_registered(name: &str) -> Error {
    Error::not_found(format!("registered workflow `{name}`"))
}

fn read(row: &dyn Row) -> Result<Registration> {
    Ok(Registration {
        name: row.text(0)?,
        version: row.integer(1)?,
        workflow_id: row.integer(2)?,
        file: row.optional_text(3)?,
        dir: row.optional_text(4)?,
        paused_at: row.optional_integer(5)?,
        created_at: row.integer(6)?,
        updated_at: row.integer(7)?,
    })
}

fn read_version(row: &dyn Row) -> Result<RegisteredVersion> {
    let workflow_id = row.integer(1)?;
    Ok(RegisteredVersion {
        version: row.integer(0)?,
        workflow_id,
        file: row.optional_text(2)?,
        applied_at: row.integer(3)?,
        workflow: parse(workflow_id, &row.text(4)?)?,
    })
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
        for (name, in_force, last, own, expected) in cases {
            assert_eq!(decide(in_force, last, own), expected, "{name}");
        }
    }
}
