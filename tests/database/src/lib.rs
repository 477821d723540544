//! A database for one test: a SQLite file or a PostgreSQL schema. An environment variable chooses, so that the same tests run
//! on both.
//!
//! This crate does not use Windlass. Tests read and write the tables by SQL, as any other program does.

mod row;
mod sql;

use std::env;
use std::path::{Path, PathBuf};

use windlass_test_server::Schema;

pub use row::{Column, Field, Row};
pub use sql::{Access, Result, Sql, SqlError};

/// The variable that chooses: `sqlite`, which is the default, or `postgres`.
pub const DATABASE_VARIABLE: &str = "WINDLASS_TEST_DATABASE";

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A SQLite file.
    Sqlite,
    /// A schema on a PostgreSQL server.
    Postgres,
}

/// The kind of database for the tests of this process.
///
/// # Panics
/// When the variable has another value.
#[must_use]
pub fn chosen_kind() -> DatabaseKind {
    match env::var(DATABASE_VARIABLE).as_deref() {
        Err(_not_set) => DatabaseKind::Sqlite,
        Ok("sqlite") => DatabaseKind::Sqlite,
        Ok("postgres") => DatabaseKind::Postgres,
        Ok(other) => panic!("{DATABASE_VARIABLE} must be sqlite or postgres, not {other:?}"),
    }
}

/// A database that no other test uses. It is only an address until a program opens it and creates the tables.
#[derive(Debug)]
pub struct TestDatabase {
    location: Location,
}

#[derive(Debug)]
enum Location {
    File(PathBuf),
    Schema(Schema),
}

impl TestDatabase {
    /// A database of the chosen kind. A file is in `folder`, which the test removes; a schema is removed when this is dropped.
    ///
    /// # Panics
    /// When no database can be made; the message says why.
    #[must_use]
    pub fn in_folder(folder: &Path) -> TestDatabase {
        TestDatabase::of_kind(chosen_kind(), folder)
    }

    /// A database of a given kind, for tests that need both kinds.
    ///
    /// # Panics
    /// When no database can be made; the message says why.
    #[must_use]
    pub fn of_kind(kind: DatabaseKind, folder: &Path) -> TestDatabase {
        let location = match kind {
            DatabaseKind::Sqlite => Location::File(folder.join("windlass.db")),
            DatabaseKind::Postgres => Location::Schema(Schema::new()),
        };
        TestDatabase { location }
    }

    /// A schema on another server, such as a private one.
    #[must_use]
    pub fn on_server(url: &str) -> TestDatabase {
        TestDatabase { location: Location::Schema(Schema::on(url)) }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> DatabaseKind {
        match &self.location {
            Location::File(_) => DatabaseKind::Sqlite,
            Location::Schema(_) => DatabaseKind::Postgres,
        }
    }

    /// Its address for Windlass: a path or a URL.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.location {
            Location::File(path) => path.to_string_lossy().into_owned(),
            Location::Schema(schema) => schema.url(),
        }
    }

    /// The part of its address that every message with the address contains.
    #[must_use]
    pub fn shown_as(&self) -> &'static str {
        match &self.location {
            Location::File(_) => "windlass.db",
            Location::Schema(_) => "postgres://",
        }
    }

    /// Whether it exists.
    ///
    /// # Panics
    /// When the server cannot be asked.
    #[must_use]
    pub fn exists(&self) -> bool {
        match &self.location {
            Location::File(path) => path.exists(),
            Location::Schema(schema) => {
                let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
                let found = schema.client().query_opt(sql, &[&schema.name()]);
                found.unwrap_or_else(|error| panic!("{sql}: {error}")).is_some()
            }
        }
    }

    /// Whether it has a table or a view of this name.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        self.exists() && self.sql(Access::Read).has_table(name)
    }

    /// Makes the database refuse to give this state to this job, with an error that contains `refused`.
    ///
    /// # Panics
    /// When the tables are not there.
    pub fn refuse(&self, job_id: i64, status: &str) {
        self.sql(Access::Write).execute(&match self.kind() {
            DatabaseKind::Sqlite => format!(
                "CREATE TRIGGER refused BEFORE UPDATE ON jobs WHEN new.id = {job_id} AND new.status = '{status}'
                 BEGIN SELECT RAISE(ABORT, 'refused'); END"
            ),
            DatabaseKind::Postgres => format!(
                "ALTER TABLE jobs ADD CONSTRAINT refused CHECK (id <> {job_id} OR status <> '{status}') NOT VALID"
            ),
        });
    }

    /// Ends the effect of [`TestDatabase::refuse`].
    ///
    /// # Panics
    /// When nothing was refused.
    pub fn allow(&self) {
        self.sql(Access::Write).execute(match self.kind() {
            DatabaseKind::Sqlite => "DROP TRIGGER refused",
            DatabaseKind::Postgres => "ALTER TABLE jobs DROP CONSTRAINT refused",
        });
    }

    /// A connection to it, which must exist.
    ///
    /// # Panics
    /// When it cannot be opened.
    #[must_use]
    pub fn sql(&self, access: Access) -> Sql {
        match &self.location {
            Location::File(path) => Sql::open_file(path, access),
            Location::Schema(schema) => Sql::open_schema(schema, access),
        }
    }
}
