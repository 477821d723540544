//! Opening a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
#[cfg(feature = "postgres")]
use windlass_db::postgres::{PostgresAddress, PostgresDatabase, PostgresOptions, is_postgres};
use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{Database, Durability, OpenMode};
use windlass_engine::store::{Copied, CopyError, NewJob, NewRun, Submitted};
use windlass_engine::{Clock, Error, HasStore, Random, Result, RunFiles, Store, TABLES};
use windlass_scheduler::Retention;
use windlass_worker::{Handlers, WorkerOptions};

use crate::engine::Engine;

/// How to open a database.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a commit survives.
    pub durability: Durability,
    /// Whether a missing database is created.
    pub mode: OpenMode,
    /// The source of time. On PostgreSQL, it follows the clock of the server.
    pub clock: Clock,
    /// The source of random numbers.
    pub random: Random,
    /// For a database on a server: the folder for files of runs, which all workers share. The files of a SQLite file are
    /// beside it.
    pub files: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::default(),
            mode: OpenMode::default(),
            clock: Clock::system(),
            random: Random::from_entropy(),
            files: None,
        }
    }
}

/// An open database. A clone is cheap and uses the same connections.
#[derive(Clone)]
pub struct Windlass {
    kind: DatabaseKind,
    store: Store,
}

/// The kind of the database, with what only this kind can do.
#[derive(Clone)]
enum DatabaseKind {
    File(Arc<SqliteDatabase>),
    #[cfg(feature = "postgres")]
    Server,
}

impl HasStore for Windlass {
    fn store(&self) -> &Store {
        &self.store
    }
}

impl Windlass {
    /// Opens a database with the default options: a SQLite file by its path, or a PostgreSQL database by its URL,
    /// `postgres://…`. Creates a missing file and missing tables.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the address is invalid, or [`Error::Unavailable`] with the reason.
    pub fn open(address: impl AsRef<Path>) -> Result<Windlass> {
        Windlass::open_with(address, Options::default())
    }

    /// Opens a database: a SQLite file by its path, or a PostgreSQL database by its URL, `postgres://…`. PostgreSQL's
    /// environment variables, such as `PGPASSWORD`, complete the URL.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the address is invalid, or [`Error::Unavailable`] with the reason.
    pub fn open_with(address: impl AsRef<Path>, options: Options) -> Result<Windlass> {
        #[cfg(feature = "postgres")]
        if let Some(url) = address.as_ref().to_str().filter(|text| is_postgres(text)) {
            let address = PostgresAddress::parse(url, &|name| std::env::var(name).ok())
                .map_err(|error| Error::invalid("open the database", error.to_string()))?;
            return Windlass::open_postgres(&address, options);
        }
        Windlass::open_file(address.as_ref(), options)
    }

    fn open_file(path: &Path, options: Options) -> Result<Windlass> {
        let Options { durability, mode, clock, random, files: _beside_the_file } = options;
        let database = Arc::new(SqliteDatabase::open(path, &TABLES, &SqliteOptions { durability, mode })?);
        let store = Store::new(Arc::clone(&database) as Arc<dyn Database>, clock, random)
            .with_files(RunFiles::beside(&canonical(database.path())));
        Ok(Windlass { kind: DatabaseKind::File(database), store })
    }

    /// Opens a database on a PostgreSQL server. Creates missing tables if the options say so.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use windlass::{Options, PostgresAddress, Windlass};
    /// let address = PostgresAddress::parse("postgres://app@db.example/app", &|name| std::env::var(name).ok())?;
    /// let windlass = Windlass::open_postgres(&address, Options::default())?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Unavailable`] with the reason.
    #[cfg(feature = "postgres")]
    pub fn open_postgres(address: &PostgresAddress, options: Options) -> Result<Windlass> {
        let Options { durability, mode, clock, random, files } = options;
        let clock = clock.adjustable();
        let options = PostgresOptions { durability, mode, clock: clock.clone(), random: random.clone() };
        let database = PostgresDatabase::open(address, &TABLES, &options)?;
        let mut store = Store::new(Arc::new(database), clock, random);
        if let Some(folder) = files {
            // Databases that share a folder have runs with the same numbers.
            let path = folder.join(store.instance()?);
            store = store.with_files(RunFiles::at(std::path::absolute(&path).unwrap_or(path)));
        }
        Ok(Windlass { kind: DatabaseKind::Server, store })
    }

    /// Enqueues a single job and returns its id. When the call returns, the job is committed.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the payload can't be written as JSON, or the database's error.
    pub fn enqueue<P: Serialize>(&self, kind: &str, payload: &P) -> Result<i64> {
        let payload = serde_json::to_string(payload)
            .map_err(|error| Error::invalid(format!("enqueue a job of kind `{kind}`"), error.to_string()))?;
        let ids = self.store.jobs().enqueue(vec![NewJob::new(kind, payload)])?;
        ids.first().copied().ok_or_else(|| Error::internal("enqueue a job", "it got no id"))
    }

    /// Submits a run. When the call returns, the run is committed.
    ///
    /// # Errors
    /// Returns the database's error, or [`Error::Invalid`] with the place when the workflow can't be executed.
    pub fn submit(&self, run: NewRun) -> Result<Submitted> {
        self.store.runs().submit(run)
    }

    /// Starts a worker and a scheduler in this process.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if an option is out of bounds, or the database's error.
    pub fn start(&self, handlers: Handlers, options: WorkerOptions) -> Result<Engine> {
        Engine::start(&self.store, handlers, options, Retention::default())
    }

    /// Does the same as [`Windlass::start`], and also deletes finished runs and jobs that the retention does not keep.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if an option is out of bounds, or the database's error.
    pub fn start_with_retention(
        &self,
        handlers: Handlers,
        options: WorkerOptions,
        retention: Retention,
    ) -> Result<Engine> {
        Engine::start(&self.store, handlers, options, retention)
    }

    /// Copies everything into another, empty database. Either of the two may be a file or on a server. Unfinished runs
    /// continue in the copy.
    ///
    /// # Errors
    /// Returns [`Error::Conflict`] if a worker uses this database or the target is not empty, or the error of one of the
    /// databases. [`CopyError`] says which database it is about. After an error the target is unchanged.
    pub fn copy_to(&self, target: &Windlass) -> std::result::Result<Copied, CopyError> {
        self.store.upkeep().copy_to(&target.store)
    }

    /// Copies the contents of artifacts beside a backup.
    fn copy_contents_beside(&self, backup: &Path) -> Result<()> {
        let Some(files) = self.store.files().filter(|files| files.exists()) else { return Ok(()) };
        let target = RunFiles::beside(&std::path::absolute(backup).unwrap_or_else(|_| backup.to_owned()));
        files
            .copy_contents_to(&target)
            .map_err(|error| Error::conflict("copy the files of runs", error.to_string()))
    }

    /// The SQLite file, to read its size and to return free space to the disk. `None` for a database on a server.
    #[must_use]
    pub fn file(&self) -> Option<&SqliteDatabase> {
        match &self.kind {
            DatabaseKind::File(database) => Some(database),
            #[cfg(feature = "postgres")]
            DatabaseKind::Server => None,
        }
    }

    /// Copies a SQLite database into a new file while it is used.
    ///
    /// # Errors
    /// Returns an error if the target exists or can't be written, and for a database on a server, which has its own
    /// tools for this.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<()> {
        match &self.kind {
            DatabaseKind::File(database) => {
                // Once before and once after the rows, so that no content is missing that was placed or removed meanwhile.
                self.copy_contents_beside(target.as_ref())?;
                database.backup(target.as_ref())?;
                self.copy_contents_beside(target.as_ref())
            }
            #[cfg(feature = "postgres")]
            DatabaseKind::Server => Err(Error::invalid(
                "copy the database to a file",
                "a server has its own tools for that: pg_dump, or a base backup",
            )),
        }
    }
}

/// The path of a database without links. The path is looked up, and the file is not opened.
fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
