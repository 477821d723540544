//! Where is measured: a temporary folder on the disk of the database, or a schema of the server. Each measurement
//! gets a database of its own there, which goes with it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windlass::{Options, Windlass};
use windlass_db::Durability;

use crate::error::BenchError;
use crate::interruption::Interruption;
use crate::plan::{Plan, Sizes};
use crate::raw::{Raw, Rows};

/// What lies under the databases that are measured.
#[derive(Debug, Clone)]
pub enum Underneath {
    /// SQLite files, in a temporary folder within this one.
    Folder(PathBuf),
    /// Schemas of a database on a PostgreSQL server.
    #[cfg(feature = "postgres")]
    Server(String),
}

/// Room for the databases of one run of measurements. What is in it goes when it is dropped.
pub(crate) struct Scratch<'p> {
    pub(crate) plan: &'p Plan,
    /// On the disk of the database, if it is files.
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
        let within = match &plan.underneath {
            // Processes of a measurement work in folders of their own.
            Underneath::Folder(folder) => std::fs::canonicalize(folder)
                .map_err(BenchError::machine(format!("find the folder {}", folder.display())))?,
            #[cfg(feature = "postgres")]
            Underneath::Server(_) => std::env::temp_dir(),
        };
        let folder = tempfile::Builder::new().prefix("windlass-bench-").tempdir_in(&within);
        let folder = folder
            .map_err(BenchError::machine(format!("make a temporary folder in {}", within.display())))?;
        let root = match &plan.underneath {
            Underneath::Folder(_) => Root::Folder,
            #[cfg(feature = "postgres")]
            Underneath::Server(url) => {
                let prefix = crate::raw::postgres::schema_prefix(url)?;
                Root::Server { url: url.clone(), prefix }
            }
        };
        Ok(Scratch { plan, folder, root, made: Cell::new(0) })
    }

    pub(crate) fn sizes(&self) -> Sizes {
        self.plan.sizes()
    }

    /// A folder in which there is nothing of anybody else.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder of the database's files, unless they are a server's.
    pub(crate) fn folder_of_files(&self) -> Option<&Path> {
        match &self.root {
            Root::Folder => Some(self.folder.path()),
            #[cfg(feature = "postgres")]
            Root::Server { .. } => None,
        }
    }

    /// Another database: an address at first.
    pub(crate) fn fresh(&self) -> Result<Fresh, BenchError> {
        self.plan.interruption.go_on()?;
        let number = self.made.get() + 1;
        self.made.set(number);
        Ok(match &self.root {
            Root::Folder => {
                let path = self.folder.path().join(number.to_string());
                std::fs::create_dir(&path).map_err(BenchError::machine("make a folder"))?;
                Fresh::Folder(path)
            }
            #[cfg(feature = "postgres")]
            Root::Server { url, prefix } => {
                let schema = format!("{prefix}_{number}");
                Fresh::Schema { url: crate::raw::postgres::with_schema(url, &schema), schema }
            }
        })
    }
}

/// A database of one measurement. What is in it goes when it is dropped; whoever has it open must be gone before.
#[derive(Debug)]
pub(crate) enum Fresh {
    Folder(PathBuf),
    #[cfg(feature = "postgres")]
    Schema {
        url: String,
        schema: String,
    },
}

impl Fresh {
    /// How Windlass is told of it.
    pub(crate) fn address(&self) -> PathBuf {
        match self {
            Fresh::Folder(folder) => folder.join("windlass.db"),
            #[cfg(feature = "postgres")]
            Fresh::Schema { url, .. } => PathBuf::from(url),
        }
    }

    /// Opens it, and makes its tables.
    pub(crate) fn open(&self, durability: Durability) -> Result<Windlass, BenchError> {
        Ok(Windlass::open_with(self.address(), Options { durability, ..Options::default() })?)
    }

    /// The same library without Windlass, in a table of its own.
    pub(crate) fn raw(&self, durability: Durability) -> Result<Raw, BenchError> {
        match self {
            Fresh::Folder(folder) => Raw::file(&folder.join("raw.db"), durability),
            #[cfg(feature = "postgres")]
            Fresh::Schema { url, schema } => Raw::server(url, schema, durability),
        }
    }

    /// Rows that are not for now, written by SQL because they are many.
    pub(crate) fn fill(&self, rows: Rows, interruption: &Interruption) -> Result<(), BenchError> {
        match self {
            Fresh::Folder(_) => crate::raw::sqlite::fill(&self.address(), rows, interruption),
            #[cfg(feature = "postgres")]
            Fresh::Schema { url, schema } => crate::raw::postgres::fill(url, schema, rows, interruption),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // What can't be removed here goes with the folder, or is the server's to tell.
        match self {
            Fresh::Folder(folder) => drop(std::fs::remove_dir_all(folder)),
            #[cfg(feature = "postgres")]
            Fresh::Schema { url, schema } => drop(crate::raw::postgres::drop_schema(url, schema)),
        }
    }
}
