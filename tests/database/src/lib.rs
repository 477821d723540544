//! The database that a test has for itself: a SQLite file or a PostgreSQL schema, as the environment
//! chooses, so that the same tests run on both.
//!
//! Nothing here knows Windlass: a test reads and writes its tables as any other program would.

mod row;
mod sql;

use std::env;
use std::path::{Path, PathBuf};

use windlass_test_server::Schema;

pub use row::{Column, Field, Row};
pub use sql::{Access, Result, Sql, SqlError};

/// The variable that chooses: `sqlite`, which is the default, or `postgres`.
pub const DATABASE_VARIABLE: &str = "WINDLASS_TEST_DATABASE";

/// What a database is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Underneath {
    /// A file.
    Sqlite,
    /// A schema on a server.
    Postgres,
}

/// What the tests of this process run on.
///
/// # Panics
/// When the variable names neither.
#[must_use]
pub fn chosen() -> Underneath {
    match env::var(DATABASE_VARIABLE).as_deref() {
        Err(_not_set) => Underneath::Sqlite,
        Ok("sqlite") => Underneath::Sqlite,
        Ok("postgres") => Underneath::Postgres,
        Ok(other) => panic!("{DATABASE_VARIABLE} must be sqlite or postgres, not {other:?}"),
    }
}

/// A database that nobody else uses. It is an address at first: whoever opens it makes the tables.
#[derive(Debug)]
pub struct TestDatabase {
    place: Place,
}

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Schema(Schema),
}

impl TestDatabase {
    /// The chosen kind of database; a file lies in `folder`, which the test removes, a schema goes when this
    /// is dropped.
    ///
    /// # Panics
    /// When there can be none; the message says why.
    #[must_use]
    pub fn in_folder(folder: &Path) -> TestDatabase {
        TestDatabase::made_of(chosen(), folder)
    }

    /// One kind of database, whatever is chosen: for tests that need both.
    ///
    /// # Panics
    /// When there can be none; the message says why.
    #[must_use]
    pub fn made_of(underneath: Underneath, folder: &Path) -> TestDatabase {
        let place = match underneath {
            Underneath::Sqlite => Place::File(folder.join("windlass.db")),
            Underneath::Postgres => Place::Schema(Schema::new()),
        };
        TestDatabase { place }
    }

    /// A schema on the server of an address, such as a private one.
    #[must_use]
    pub fn on_server(url: &str) -> TestDatabase {
        TestDatabase { place: Place::Schema(Schema::on(url)) }
    }

    /// What it is made of.
    #[must_use]
    pub fn underneath(&self) -> Underneath {
        match &self.place {
            Place::File(_) => Underneath::Sqlite,
            Place::Schema(_) => Underneath::Postgres,
        }
    }

    /// How it is named to Windlass: a path or a URL.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.place {
            Place::File(path) => path.to_string_lossy().into_owned(),
            Place::Schema(schema) => schema.url(),
        }
    }

    /// A part of its address that is shown wherever it is named to a person.
    #[must_use]
    pub fn shown_as(&self) -> &'static str {
        match &self.place {
            Place::File(_) => "windlass.db",
            Place::Schema(_) => "postgres://",
        }
    }

    /// Somebody made it.
    ///
    /// # Panics
    /// When the server cannot be asked.
    #[must_use]
    pub fn exists(&self) -> bool {
        match &self.place {
            Place::File(path) => path.exists(),
            Place::Schema(schema) => {
                let sql = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
                let found = schema.client().query_opt(sql, &[&schema.name()]);
                found.unwrap_or_else(|error| panic!("{sql}: {error}")).is_some()
            }
        }
    }

    /// It has a table or a view of this name.
    #[must_use]
    pub fn has_table(&self, name: &str) -> bool {
        self.exists() && self.sql(Access::Read).has_table(name)
    }

    /// From now on no row of `jobs` with this id can be given this state: the error names `refused`.
    ///
    /// # Panics
    /// When the tables are not there.
    pub fn refuse(&self, job_id: i64, status: &str) {
        self.sql(Access::Write).execute(&match self.underneath() {
            Underneath::Sqlite => format!(
                "CREATE TRIGGER refused BEFORE UPDATE ON jobs WHEN new.id = {job_id} AND new.status = '{status}'
                 BEGIN SELECT RAISE(ABORT, 'refused'); END"
            ),
            Underneath::Postgres => format!(
                "ALTER TABLE jobs ADD CONSTRAINT refused CHECK (id <> {job_id} OR status <> '{status}') NOT VALID"
            ),
        });
    }

    /// What was refused can be done again.
    ///
    /// # Panics
    /// When nothing was.
    pub fn allow(&self) {
        self.sql(Access::Write).execute(match self.underneath() {
            Underneath::Sqlite => "DROP TRIGGER refused",
            Underneath::Postgres => "ALTER TABLE jobs DROP CONSTRAINT refused",
        });
    }

    /// A connection to it, which must exist.
    ///
    /// # Panics
    /// When it cannot be opened.
    #[must_use]
    pub fn sql(&self, access: Access) -> Sql {
        match &self.place {
            Place::File(path) => Sql::open_file(path, access),
            Place::Schema(schema) => Sql::open_schema(schema, access),
        }
    }
}
