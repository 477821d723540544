//! Opening the database that the command line names, no earlier than it is needed.

use std::sync::Once;

use windlass::{Durability, Error, FailureDetector, OpenMode, Options, Store, Unavailable, Windlass};

use crate::cli::{self, GlobalOptions};
use crate::error::Failure;
use crate::output;
use crate::place::Place;

/// An open database. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Database {
    windlass: Windlass,
    place: Place,
    global: GlobalOptions,
}

impl Database {
    /// The database for a verb that only makes sense when there is one already.
    ///
    /// What dead workers left is taken back first, so that what is shown is true now.
    pub(crate) fn existing(global: &GlobalOptions) -> Result<Database, Failure> {
        let database = Database::as_it_is(global)?;
        match FailureDetector::default().look(database.store()) {
            Ok(_rescued) => Ok(database),
            // Who may only look, or looks at a standby, sees the tables as they are.
            Err(Error::Unavailable { reason: Unavailable::Forbidden(_) | Unavailable::Standby, .. }) => {
                Ok(database)
            }
            Err(error) => Err(database.failure(error)),
        }
    }

    /// The database, and nothing in it is touched.
    pub(crate) fn as_it_is(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Existing)
    }

    /// The database for a verb that brings work; a missing file is made.
    pub(crate) fn existing_or_new(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Create)
    }

    /// The database as it is, or nothing where none is yet.
    pub(crate) fn if_there(global: &GlobalOptions) -> Result<Option<Database>, Failure> {
        let (place, opened) = Database::try_open(global, OpenMode::Existing)?;
        match opened {
            Err(Error::Unavailable {
                reason: Unavailable::Missing(_) | Unavailable::NoTables(_), ..
            }) => Ok(None),
            opened => Database::opened(global, place, opened).map(Some),
        }
    }

    fn open(global: &GlobalOptions, mode: OpenMode) -> Result<Database, Failure> {
        let (place, opened) = Database::try_open(global, mode)?;
        Database::opened(global, place, opened)
    }

    fn try_open(
        global: &GlobalOptions,
        mode: OpenMode,
    ) -> Result<(Place, windlass::Result<Windlass>), Failure> {
        if global.shows_password() {
            warn_of_password();
        }
        let place = global.database().place()?;
        let durability = match global.durability() {
            cli::Durability::Full => Durability::Full,
            cli::Durability::Normal => Durability::Normal,
        };
        let options = Options { durability, mode, ..Options::default() };
        let opened = match &place {
            Place::File(path) => Windlass::open_with(path, options),
            #[cfg(feature = "postgres")]
            Place::Server { address, .. } => Windlass::open_postgres(address, options),
        };
        Ok((place, opened))
    }

    fn opened(
        global: &GlobalOptions,
        place: Place,
        opened: windlass::Result<Windlass>,
    ) -> Result<Database, Failure> {
        match opened {
            Ok(windlass) => Ok(Database { windlass, place, global: global.clone() }),
            Err(error) => Err(Failure::from_engine(error, &place, |verb| global.hint(verb))),
        }
    }

    /// Where it is, as people know it.
    pub(crate) fn place(&self) -> &Place {
        &self.place
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
        Failure::from_engine(error, &self.place, |verb| self.hint(verb))
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

/// Says once what a password on the command line means.
fn warn_of_password() {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        output::note(
            "warning: whoever may list the processes of this machine can read the password on the command line\n\
             \x20 help: put the whole address into WINDLASS_DB; or leave the password out of it, and put it into \
             PGPASSWORD, ~/.pgpass, or a service in ~/.pg_service.conf\n",
        );
    });
}
