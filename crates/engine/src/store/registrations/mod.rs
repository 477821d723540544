//! Registrations: which version of a workflow is active under its name. A version never changes; its content is a row
//! of `workflows`.

pub(in crate::store) mod versions;

use crate::store::Registrations;
use crate::store::runs::read_tags;
use windlass_workflow::Workflow;

pub use versions::{ListedVersion, RegisteredVersion};

use windlass_db::error::Result;
use windlass_db::{Connection, Fragment, Row, all, first};

/// A registered name and its active version. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The name of the workflow.
    pub name: String,
    /// The active version, counted from 1.
    pub version: i64,
    /// The row of `workflows` with its definition.
    pub workflow_id: i64,
    /// The file that it was read from.
    pub file: Option<String>,
    /// The folder against which its jobs resolve relative paths.
    pub dir: Option<String>,
    /// When its schedules were paused.
    pub paused_at: Option<i64>,
    /// When the name was registered.
    pub created_at: i64,
    /// When the registration last changed.
    pub updated_at: i64,
    /// The tags of the active version, sorted.
    pub tags: Vec<String>,
}

/// A workflow to register.
#[derive(Debug, Clone)]
pub struct NewRegistration {
    /// The definition.
    pub workflow: Workflow,
    /// The file that it was read from.
    pub file: Option<String>,
    /// The folder against which its jobs resolve relative paths.
    pub dir: Option<String>,
}

/// How a registration changed the active version of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationChange {
    /// The name was not registered. The version is above 1 if it was registered before and then removed.
    Created,
    /// A new version replaced the active one.
    Updated,
    /// The same content was active already. Its file may have changed.
    Unchanged,
}

/// The columns of `registrations` that [`read`] reads, in its order.
pub(crate) const REGISTRATION_COLUMNS: Fragment = Fragment {
    name: "registration_columns",
    sql: "name, version, workflow_id, file, dir, paused_at, created_at, updated_at,
          (SELECT tags FROM workflows WHERE workflows.id = registrations.workflow_id)",
};

impl Registrations<'_> {
    /// Reads the registration of a name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn get(&self, name: &str) -> Result<Option<Registration>> {
        self.store.read(|connection| find(connection, name))
    }

    /// Lists all registrations by name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn list(&self) -> Result<Vec<Registration>> {
        self.store.read(|connection| {
            all(connection, "SELECT {registration_columns} FROM registrations ORDER BY name", &[], read)
        })
    }

    /// Reads the registration of a name and its active definition.
    ///
    /// # Errors
    /// Returns the database's error, or [`windlass_db::error::Error::Internal`] if another program wrote an invalid definition.
    pub fn workflow(&self, name: &str) -> Result<Option<(Registration, Workflow)>> {
        self.store.read(|connection| registered_workflow(connection, name))
    }
}

/// Reads the registration of a name and its active definition, in the caller's transaction.
pub(in crate::store) fn registered_workflow(
    connection: &mut dyn Connection,
    name: &str,
) -> Result<Option<(Registration, Workflow)>> {
    let Some(registration) = find(connection, name)? else { return Ok(None) };
    let workflow = versions::definition(connection, registration.workflow_id)?;
    Ok(Some((registration, workflow)))
}

pub(in crate::store) fn find(connection: &mut dyn Connection, name: &str) -> Result<Option<Registration>> {
    first(
        connection,
        "SELECT {registration_columns} FROM registrations WHERE name = $1",
        &[name.into()],
        read,
    )
}

pub(in crate::store) fn read(row: &dyn Row) -> Result<Registration> {
    Ok(Registration {
        name: row.text(0)?,
        version: row.integer(1)?,
        workflow_id: row.integer(2)?,
        file: row.optional_text(3)?,
        dir: row.optional_text(4)?,
        paused_at: row.optional_integer(5)?,
        created_at: row.integer(6)?,
        updated_at: row.integer(7)?,
        tags: read_tags(row.optional_text(8)?),
    })
}
