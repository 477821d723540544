//! The versions of a registered workflow: their numbers and their definitions.

use crate::store::Registrations;
use windlass_workflow::Workflow;

use super::{NewRegistration, Registration};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all, first};

/// A version that was active at some time.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredVersion {
    /// Its number.
    pub version: i64,
    /// The row of `workflows` with its definition.
    pub workflow_id: i64,
    /// The file that it was read from.
    pub file: Option<String>,
    /// When it was activated, in milliseconds since the Unix epoch.
    pub applied_at: i64,
    /// Its definition.
    pub workflow: Workflow,
}

/// A version without its definition, which may be long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVersion {
    /// Its number.
    pub version: i64,
    /// The file that it was read from.
    pub file: Option<String>,
    /// When it was activated, in milliseconds since the Unix epoch.
    pub applied_at: i64,
}

/// The columns of a version and its definition that a [`RegisteredVersion`] is read from.
pub(crate) const VERSION_COLUMNS: Fragment = Fragment {
    name: "version_columns",
    sql: "versions.version, versions.workflow_id, versions.file, versions.applied_at,
                    workflows.definition",
};

impl Registrations<'_> {
    /// Lists the versions of a name, the newest first, even if the name was removed: all, or those before a version.
    ///
    /// # Errors
    /// Returns the database's error, or [`Error::Internal`] if another program wrote an invalid definition.
    pub fn versions(&self, name: &str, before: Option<i64>, limit: i64) -> Result<Vec<RegisteredVersion>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {version_columns} FROM registration_versions AS versions
             JOIN workflows ON workflows.id = versions.workflow_id WHERE versions.name = $1 AND versions.version < $2
             ORDER BY versions.version DESC LIMIT $3",
                &[name.into(), before.unwrap_or(i64::MAX).into(), limit.into()],
                read_version,
            )
        })
    }

    /// The newest versions of a name without their definitions, the newest first, even if the name was removed.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn newest_versions(&self, name: &str, limit: i64) -> Result<Vec<ListedVersion>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT version, file, applied_at FROM registration_versions WHERE name = $1
                 ORDER BY version DESC LIMIT $2",
                &[name.into(), limit.into()],
                |row| {
                    Ok(ListedVersion {
                        version: row.integer(0)?,
                        file: row.optional_text(1)?,
                        applied_at: row.integer(2)?,
                    })
                },
            )
        })
    }

    /// Reads one version of a name, even if the name was removed.
    ///
    /// # Errors
    /// Returns the database's error, or [`Error::Internal`] if another program wrote an invalid definition.
    pub fn version(&self, name: &str, version: i64) -> Result<Option<RegisteredVersion>> {
        self.store.read(|connection| {
            let sql = "SELECT {version_columns} FROM registration_versions AS versions
             JOIN workflows ON workflows.id = versions.workflow_id WHERE versions.name = $1 AND versions.version = $2";
            first(connection, sql, &[name.into(), version.into()], read_version)
        })
    }

    /// A definition by the row of `workflows` with its content.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Internal`] if another program wrote an invalid definition; and the database's.
    pub fn definition(&self, workflow_id: i64) -> Result<Workflow> {
        self.store.read(|connection| definition(connection, workflow_id))
    }
}

/// A version number and the row of `workflows` with its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct VersionRef {
    pub(in crate::store) version: i64,
    pub(in crate::store) workflow_id: i64,
}

impl VersionRef {
    pub(in crate::store) fn of(registration: &Registration) -> VersionRef {
        VersionRef { version: registration.version, workflow_id: registration.workflow_id }
    }
}

/// Inserts a version. Returns `false` if the number is taken.
pub(in crate::store) fn insert_version(
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

pub(in crate::store) fn last_version(
    connection: &mut dyn Connection,
    name: &str,
) -> Result<Option<VersionRef>> {
    first(
        connection,
        "SELECT version, workflow_id FROM registration_versions WHERE name = $1
         ORDER BY version DESC LIMIT 1",
        &[name.into()],
        |row| Ok(VersionRef { version: row.integer(0)?, workflow_id: row.integer(1)? }),
    )
}

pub(in crate::store) fn definition(connection: &mut dyn Connection, workflow_id: i64) -> Result<Workflow> {
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
