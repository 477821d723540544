//! Temporary databases for measurements: files in a temporary folder on the disk of the user's database, or schemas on the
//! server. Each measurement gets a new database, which is removed after it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass::{Options, Windlass};
use windlass_db::Durability;

use crate::error::BenchError;
use crate::interruption::Interruption;
use crate::plan::{Plan, Sizes};
use crate::raw::{Raw, Rows};

/// Where the databases for measurements are made.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// SQLite files, in a temporary folder within this one.
    Folder(PathBuf),
    /// Schemas of a database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server(String),
}

/// The temporary folder and databases of all measurements. They are removed when this is dropped.
pub(crate) struct Scratch<'p> {
    pub(crate) plan: &'p Plan,
    /// On the disk of the database, if that is a file.
    folder: TempDir,
    root: Root,
    made: Cell<u32>,
}

enum Root {
    Folder,
    #[cfg(feature = "postgres")]
    Server {
        url: String,
        prefix: String,
    },
}

impl<'p> Scratch<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Result<Scratch<'p>, BenchError> {
        let within = match &plan.location {
            // Absolute, because child processes have another working folder.
            DatabaseLocation::Folder(folder) => std::fs::canonicalize(folder)
                .map_err(BenchError::machine(format!("find the folder {}", folder.display())))?,
            #[cfg(feature = "postgres")]
            DatabaseLocation::Server(_) => std::env::temp_dir(),
        };
        let folder = tempfile::Builder::new().prefix("windlass-bench-").tempdir_in(&within);
        let folder = folder
            .map_err(BenchError::machine(format!("make a temporary folder in {}", within.display())))?;
        let root = match &plan.location {
            DatabaseLocation::Folder(_) => Root::Folder,
            #[cfg(feature = "postgres")]
            DatabaseLocation::Server(url) => {
                let prefix = crate::raw::postgres::schema_prefix(url)?;
                Root::Server { url: url.clone(), prefix }
            }
        };
        Ok(Scratch { plan, folder, root, made: Cell::new(0) })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.plan.sizes()
    }

    /// The temporary folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the database files; `None` on a server.
    pub(crate) fn folder_of_files(&self) -> Option<&Path> {
        match &self.root {
            Root::Folder => Some(self.folder.path()),
            #[cfg(feature = "postgres")]
            Root::Server { .. } => None,
        }
    }

    /// A new database. It is only an address until it is opened.
    pub(crate) fn new_database(&self) -> Result<ScratchDatabase, BenchError> {
        self.plan.interruption.check()?;
        let number = self.made.get() + 1;
        self.made.set(number);
        Ok(match &self.root {
            Root::Folder => {
                let path = self.folder.path().join(number.to_string());
                std::fs::create_dir(&path).map_err(BenchError::machine("make a folder"))?;
                ScratchDatabase::Folder(path)
            }
            #[cfg(feature = "postgres")]
            Root::Server { url, prefix } => {
                let schema = format!("{prefix}_{number}");
                ScratchDatabase::Schema { url: crate::raw::postgres::with_schema(url, &schema), schema }
            }
        })
    }
}

/// A database for one measurement. It is removed when this is dropped, so it must be closed before.
#[derive(Debug)]
pub(crate) enum ScratchDatabase {
    Folder(PathBuf),
    #[cfg(feature = "postgres")]
    Schema {
        url: String,
        schema: String,
    },
}

impl ScratchDatabase {
    /// Its address for Windlass.
    pub(crate) fn address(&self) -> PathBuf {
        match self {
            ScratchDatabase::Folder(folder) => folder.join("windlass.db"),
            #[cfg(feature = "postgres")]
            ScratchDatabase::Schema { url, .. } => PathBuf::from(url),
        }
    }

    /// Opens it with Windlass, and creates its tables.
    pub(crate) fn open(&self, durability: Durability) -> Result<Windlass, BenchError> {
        Ok(Windlass::open_with(self.address(), Options { durability, ..Options::default() })?)
    }

    /// Opens it for the raw reference, which has its own table.
    pub(crate) fn raw(&self, durability: Durability) -> Result<Raw, BenchError> {
        match self {
            ScratchDatabase::Folder(folder) => Raw::file(&folder.join("raw.db"), durability),
            #[cfg(feature = "postgres")]
            ScratchDatabase::Schema { url, schema } => Raw::server(url, schema, durability),
        }
    }

    /// Inserts many rows into the tables of Windlass, by SQL.
    pub(crate) fn fill(&self, rows: Rows, interruption: &Interruption) -> Result<(), BenchError> {
        match self {
            ScratchDatabase::Folder(_) => crate::raw::sqlite::fill(&self.address(), rows, interruption),
            #[cfg(feature = "postgres")]
            ScratchDatabase::Schema { url, schema } => {
                crate::raw::postgres::fill(url, schema, rows, interruption)
            }
        }
    }
}

impl Drop for ScratchDatabase {
    fn drop(&mut self) {
        // Errors are ignored: a file is removed with the temporary folder, and a schema can be removed by hand.
        match self {
            ScratchDatabase::Folder(folder) => drop(std::fs::remove_dir_all(folder)),
            #[cfg(feature = "postgres")]
            ScratchDatabase::Schema { url, schema } => drop(crate::raw::postgres::drop_schema(url, schema)),
        }
    }
}
