//! The folder and the database of one test, and the `windlass` command in it.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use tempfile::TempDir;
use windlass_test_database::{Access, Sql, TestDatabase};

use crate::binary::windlass;
use crate::leftovers::{self, Leftover};
use crate::process::{Engine, Outcome};
use crate::tables::Tables;

/// The variable by which a sandbox finds its processes: the engine passes it on to its jobs.
pub const MARK_VARIABLE: &str = "SANDBOX_MARK";

/// A folder that is removed when the test ends, and with it every process that was started in it, and its
/// database.
#[derive(Debug)]
pub struct Sandbox {
    /// The connection for reading. One connection per read would cost the server a process each.
    reader: RefCell<Option<Rc<Sql>>>,
    database: TestDatabase,
    mark: String,
    started: Cell<u32>,
    root: TempDir,
}

impl Default for Sandbox {
    fn default() -> Self {
        Sandbox::new()
    }
}

impl Sandbox {
    /// An empty folder, and the database that the environment chooses.
    ///
    /// # Panics
    /// When the machine's folder for temporary files cannot be written to.
    #[must_use]
    pub fn new() -> Sandbox {
        Sandbox::with(TestDatabase::in_folder)
    }

    /// An empty folder, and a database that `make` makes for it.
    ///
    /// # Panics
    /// When the machine's folder for temporary files cannot be written to.
    #[must_use]
    pub fn with(make: impl FnOnce(&Path) -> TestDatabase) -> Sandbox {
        let root = tempfile::Builder::new().prefix("windlass-test-").tempdir().expect("a temporary folder");
        let mark = root.path().to_string_lossy().into_owned();
        for folder in ["output", "tmp"] {
            fs::create_dir(root.path().join(folder)).expect("a folder in a temporary folder");
        }
        let database = make(root.path());
        Sandbox { reader: RefCell::new(None), database, mark, started: Cell::new(0), root }
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> &TestDatabase {
        &self.database
    }

    /// Writes a file and returns its path as text, for an argument.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path.to_string_lossy().into_owned()
    }

    /// The text of a file. Empty if the file does not exist.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// `windlass` with the database and the folder of this sandbox, and without settings of the caller.
    #[must_use]
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        self.prepared(Command::new(windlass()), arguments)
    }

    /// Any program, in the environment that [`Sandbox::command`] gives to `windlass`.
    #[must_use]
    pub fn prepared<S: AsRef<std::ffi::OsStr>>(&self, mut command: Command, arguments: &[S]) -> Command {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("WINDLASS_") {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .current_dir(self.root.path())
            .env("WINDLASS_DB", self.database.address())
            .env("TMPDIR", self.path("tmp"))
            .env("WINDLASS_FILES", self.path("files"))
            .env(MARK_VARIABLE, &self.mark);
        command
    }

    /// Runs `windlass` to its end.
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Outcome {
        self.spawn(arguments).wait()
    }

    /// Starts `windlass`.
    pub fn spawn<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Engine {
        self.start(self.command(arguments))
    }

    /// Starts a prepared command.
    pub fn start(&self, command: Command) -> Engine {
        let number = self.started.get();
        self.started.set(number + 1);
        Engine::start(command, self.path("output").join(number.to_string()))
    }

    /// The tables, for reading.
    #[must_use]
    pub fn tables(&self) -> Tables {
        let mut reader = self.reader.borrow_mut();
        let open = reader.take().filter(|sql| !sql.is_closed());
        let open = open.unwrap_or_else(|| Rc::new(self.database.sql(Access::Read)));
        Tables::new(Rc::clone(reader.insert(open)))
    }

    /// Processes of jobs that were started in this sandbox and are still alive.
    #[must_use]
    pub fn leftovers(&self) -> Vec<Leftover> {
        leftovers::marked(&[(MARK_VARIABLE, &self.mark)])
            .into_iter()
            .filter(|process| process.idempotency_key.is_some())
            .collect()
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        leftovers::kill(&leftovers::marked(&[(MARK_VARIABLE, &self.mark)]));
    }
}
