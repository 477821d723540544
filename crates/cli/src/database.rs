//! Opening the database that the command line names, no earlier than it is needed.

use std::path::{Path, PathBuf};

use windlass::{Durability, Error, OpenMode, Options, Store, Watchman, Windlass};

use crate::cli::{self, GlobalOptions};
use crate::error::Failure;

/// An open database.
pub(crate) struct Database {
    windlass: Windlass,
    path: PathBuf,
    global: GlobalOptions,
}

impl Database {
    /// The database for a verb that only makes sense when there is one already.
    ///
    /// What dead workers left is taken back first, so that what is shown is true now.
    pub(crate) fn existing(global: &GlobalOptions) -> Result<Database, Failure> {
        let database = Database::as_it_is(global)?;
        database.ask(|store| Watchman::default().look(store))?;
        Ok(database)
    }

    /// The database, and nothing in it is touched.
    pub(crate) fn as_it_is(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Existing)
    }

    /// The database for a verb that brings work; a missing file is made.
    pub(crate) fn existing_or_new(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Create)
    }

    fn open(global: &GlobalOptions, mode: OpenMode) -> Result<Database, Failure> {
        let path = global.database_path();
        let durability = match global.durability {
            cli::Durability::Full => Durability::Full,
            cli::Durability::Normal => Durability::Normal,
        };
        let options = Options { durability, mode, ..Options::default() };
        let opened = match path.to_str().filter(|address| windlass::is_postgres(address)) {
            None => Windlass::open_with(&path, options),
            Some(url) => {
                let address = windlass::PostgresAddress::parse(url, &|name| std::env::var(name).ok())
                    .map_err(|error| Failure::usage(error.to_string(), "see the guide"))?;
                Windlass::open_postgres(&address, options)
            }
        };
        match opened {
            Ok(windlass) => Ok(Database { windlass, path, global: global.clone() }),
            Err(error) => Err(Failure::from_engine(error, &path, |verb| global.hint(verb))),
        }
    }

    /// The file as it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// How people know it.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The library's handle.
    pub(crate) fn windlass(&self) -> &Windlass {
        &self.windlass
    }

    /// Everything that may be read or done.
    pub(crate) fn store(&self) -> &Store {
        self.windlass.store()
    }

    /// The words for an error of the engine on this database.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        Failure::from_engine(error, &self.path, |verb| self.hint(verb))
    }

    /// A command that the user may type next, on this database.
    pub(crate) fn hint(&self, verb: &str) -> String {
        self.global.hint(verb)
    }

    /// Asks the store; its errors become failures that name this database.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&Store) -> windlass::Result<T>) -> Result<T, Failure> {
        question(self.store()).map_err(|error| self.failure(error))
    }
}
