//! The database of the command line. A command opens it when it needs it, and not before.

mod unused_copy;

use std::path::Path;
use std::sync::{Arc, Once};

use rustix::fs::Access;
use windlass::{Options, Windlass};
use windlass_db::{Error, OpenMode, Unavailable};
use windlass_engine::store::{Change, Subject};
use windlass_engine::trace::TraceParent;
use windlass_engine::{HasStore, Store};
use windlass_scheduler::FailureDetector;

use crate::arguments::{DatabaseAddress, GlobalOptions};
use crate::error::Failure;
use crate::{engine_errors, stderr};
use unused_copy::UnusedCopy;

/// An open database. All clones share it.
#[derive(Clone)]
pub(crate) struct Database {
    windlass: Windlass,
    address: DatabaseAddress,
    global: GlobalOptions,
    /// The copy that is open, if the file itself can't be opened.
    _copy: Option<Arc<UnusedCopy>>,
}

impl Database {
    /// Opens the database for a verb that needs an existing one.
    ///
    /// The jobs of dead workers are rescued first, so that the command shows the current states.
    pub(crate) fn existing(global: &GlobalOptions) -> Result<Database, Failure> {
        let database = Database::existing_without_rescue(global)?;
        match FailureDetector::default().rescue_dead_workers(database.store()) {
            Ok(_rescued) => Ok(database),
            // Who may only read cannot rescue: the command shows the rows as they are.
            Err(Error::Unavailable {
                reason: Unavailable::Forbidden(_) | Unavailable::Standby | Unavailable::ReadOnly,
                ..
            }) => Ok(database),
            Err(error) => Err(database.failure(error)),
        }
    }

    /// Opens an existing database for a verb that only reads, also for a user who may not write to it.
    pub(crate) fn for_reading(global: &GlobalOptions) -> Result<Database, Failure> {
        let failure = match Database::existing(global) {
            Ok(database) => return Ok(database),
            Err(failure) => failure,
        };
        let DatabaseAddress::File(path) = global.database().address()? else { return Err(failure) };
        if !path.is_file() || may_write_beside(&path) {
            return Err(failure);
        }
        let Ok(Some(copy)) = unused_copy::make(&path) else { return Err(failure) };
        let options = Options { mode: OpenMode::Existing, ..Options::default() };
        let windlass = Windlass::open_with(&copy.path, options).map_err(|_error| failure)?;
        stderr::note(
            "you may not write to the folder of the database, so a copy is read; no process uses the database now\n",
        );
        let address = DatabaseAddress::File(path);
        Ok(Database { windlass, address, global: global.clone(), _copy: Some(Arc::new(copy)) })
    }

    /// Opens an existing database, and does not rescue the jobs of dead workers.
    pub(crate) fn existing_without_rescue(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Existing)
    }

    /// Opens the database for a verb that adds work, and creates a missing file.
    pub(crate) fn existing_or_new(global: &GlobalOptions) -> Result<Database, Failure> {
        Database::open(global, OpenMode::Create)
    }

    /// Opens the database, or returns `None` if it does not exist yet.
    pub(crate) fn if_exists(global: &GlobalOptions) -> Result<Option<Database>, Failure> {
        let (address, opened) = Database::try_open(global, OpenMode::Existing)?;
        match opened {
            Err(Error::Unavailable {
                reason: Unavailable::Missing(_) | Unavailable::NoTables(_), ..
            }) => Ok(None),
            opened => Database::opened(global, address, opened).map(Some),
        }
    }

    fn open(global: &GlobalOptions, mode: OpenMode) -> Result<Database, Failure> {
        let (address, opened) = Database::try_open(global, mode)?;
        Database::opened(global, address, opened)
    }

    fn try_open(
        global: &GlobalOptions,
        mode: OpenMode,
    ) -> Result<(DatabaseAddress, windlass_db::Result<Windlass>), Failure> {
        if global.shows_password() {
            warn_of_password();
        }
        let address = global.database().address()?;
        let files = match &address {
            DatabaseAddress::File(_) => None,
            #[cfg(feature = "postgres")]
            DatabaseAddress::Server { .. } => global.files(),
        };
        let options = Options { durability: global.durability().into(), mode, files, ..Options::default() };
        let opened = match &address {
            DatabaseAddress::File(path) => Windlass::open_with(path, options),
            #[cfg(feature = "postgres")]
            DatabaseAddress::Server { address, .. } => Windlass::open_postgres(address, options),
        };
        Ok((address, opened))
    }

    fn opened(
        global: &GlobalOptions,
        address: DatabaseAddress,
        opened: windlass_db::Result<Windlass>,
    ) -> Result<Database, Failure> {
        match opened {
            Ok(windlass) => Ok(Database { windlass, address, global: global.clone(), _copy: None }),
            Err(error) => Err(engine_errors::failure(error, &address, |verb| global.hint(verb))),
        }
    }

    /// The address, without a password.
    pub(crate) fn address(&self) -> &DatabaseAddress {
        &self.address
    }

    /// The handle of the library.
    pub(crate) fn windlass(&self) -> &Windlass {
        &self.windlass
    }

    /// The store.
    pub(crate) fn store(&self) -> &Store {
        self.windlass.store()
    }

    /// The failure for an error of the engine.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        engine_errors::failure(error, &self.address, |verb| self.hint(verb))
    }

    /// A command for the user to type next, on this database.
    pub(crate) fn hint(&self, verb: &str) -> String {
        self.global.hint(verb)
    }

    /// Calls the store. An error becomes a failure that names this database.
    pub(crate) fn ask<T>(
        &self,
        question: impl FnOnce(&Store) -> windlass_db::Result<T>,
    ) -> Result<T, Failure> {
        question(self.store()).map_err(|error| self.failure(error))
    }

    /// Calls the store, and records what it writes as changes by the user of this process. `subject` is what is changed.
    pub(crate) fn change<T>(
        &self,
        subject: impl Into<Subject>,
        change: impl FnOnce(&Store) -> windlass_db::Result<T>,
    ) -> Result<T, Failure> {
        change(&self.recorded(subject)).map_err(|error| self.failure(error))
    }

    /// A store that records what it writes as changes by the user of this process.
    pub(crate) fn recorded(&self, subject: impl Into<Subject>) -> Store {
        let recorded = Change {
            caller: present_user(),
            address: None,
            subject: subject.into(),
            traceparent: present_traceparent(),
        };
        self.store().recorded(recorded)
    }
}

/// The name of the user of this process. Services and containers often have no variable with it.
pub(crate) fn present_user() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|variable| std::env::var(variable).ok());
    name.filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| format!("user {}", rustix::process::getuid().as_raw()))
}

/// The place of this process in a trace, which other tools set too. The standard says that an invalid one is ignored.
fn present_traceparent() -> Option<TraceParent> {
    std::env::var("TRACEPARENT").ok().and_then(|text| TraceParent::parse(&text))
}

/// Whether this user may write to the folder of a file.
fn may_write_beside(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::fs::access(folder, Access::WRITE_OK).is_ok()
}

/// Warns once about a password on the command line.
fn warn_of_password() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        stderr::warn(
            "warning: everybody who can list processes on this machine can read the password on the command line\n\
             \x20 help: put the address into WINDLASS_DB, or put only the password into PGPASSWORD, ~/.pgpass, or a \
             service in ~/.pg_service.conf\n",
        );
    });
}
