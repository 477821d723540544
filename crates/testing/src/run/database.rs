//! The database of a case. It counts commits, and can end the engine before one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use windlass_db::sqlite::{SqliteDatabase, SqliteOptions};
use windlass_db::{
    Capabilities, Connection, Database, Durability, Error, OpenMode, Recovery, Result, Unavailable,
    WriteOperation,
};
use windlass_engine::TABLES;
use windlass_system::wake_ups::WakeUpChannel;

/// How many commits an engine can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifespan {
    /// As many as it likes.
    Endless,
    /// When it begins another one after so many, its process has died: nothing of its memory reaches the database any more.
    Commits(u64),
}

/// A SQLite file that can be used for a lifespan.
pub(super) struct CaseDatabase {
    file: SqliteDatabase,
    lifespan: Lifespan,
    /// Commits are counted once the case has begun.
    is_counting: AtomicBool,
    commits: AtomicU64,
    is_dead: AtomicBool,
}

impl CaseDatabase {
    /// Opens the file, or makes it. Its commits survive the end of the engine, and not a power cut.
    pub(super) fn open(path: &Path, lifespan: Lifespan) -> Result<CaseDatabase> {
        let options = SqliteOptions { durability: Durability::Normal, mode: OpenMode::Create };
        Ok(CaseDatabase {
            file: SqliteDatabase::open(path, &TABLES, &options)?,
            lifespan,
            is_counting: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            is_dead: AtomicBool::new(false),
        })
    }

    /// Counts commits from now on.
    pub(super) fn begin_counting(&self) {
        self.is_counting.store(true, Ordering::Release);
    }

    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    /// Whether the engine has died.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    fn check_life(&self, operation: &'static str) -> Result<()> {
        match self.is_dead() {
            true => Err(Error::unavailable(operation, Unavailable::Closed)),
            false => Ok(()),
        }
    }

    /// Ends the engine if its commits are used up.
    fn begin_commit(&self) {
        let is_last = match self.lifespan {
            Lifespan::Endless => false,
            Lifespan::Commits(most) => self.is_counting.load(Ordering::Acquire) && self.commits() >= most,
        };
        if is_last {
            self.is_dead.store(true, Ordering::Release);
        }
    }
}

impl Database for CaseDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.check_life("read")?;
        self.file.read(operation)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
        self.begin_commit();
        self.check_life(name)?;
        self.file.write(name, operation, recovery)?;
        if self.is_counting.load(Ordering::Acquire) {
            self.commits.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }

    fn wake_ups(&self) -> &WakeUpChannel {
        self.file.wake_ups()
    }

    fn watch(&self) {
        // Nobody else writes.
    }

    fn capabilities(&self) -> Capabilities {
        self.file.capabilities()
    }
}
