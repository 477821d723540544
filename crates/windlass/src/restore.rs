//! Restoring a backup.

use std::path::Path;
use std::sync::Arc;

use windlass_db::Database;
use windlass_db::sqlite::StagedBackup;
use windlass_engine::store::Restored;
use windlass_engine::{Clock, Error, HasStore, Random, Result, RunFiles, Store, TABLES};
use windlass_scheduler::FailureDetector;

use crate::OpenMode;
use crate::open::{Options, Windlass};

const OPERATION: &str = "restore the database";
/// The largest number of problems that an error shows.
const SHOWN_MAX: usize = 3;

/// What to do with a backup whose rows are inconsistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrokenRules {
    /// Refuse it.
    #[default]
    Refuse,
    /// Restore it as it is.
    Accept,
}

impl Windlass {
    /// Replaces a SQLite database with a backup, or creates the database from it. The backup is checked first. In the
    /// restored database all workers are fenced and all schedules are paused. The content is replaced in one transaction.
    ///
    /// # Errors
    /// Returns [`Error::Conflict`] if a worker uses the database or the backup is inconsistent, or the reason why one of
    /// the two can't be used. After an error the database is unchanged.
    pub fn restore(
        backup: impl AsRef<Path>,
        database: impl AsRef<Path>,
        broken: BrokenRules,
    ) -> Result<Restored> {
        let (backup, database) = (backup.as_ref(), database.as_ref());
        if database.symlink_metadata().is_ok() {
            let options = Options { mode: OpenMode::Existing, ..Options::default() };
            let present = Windlass::open_with(database, options)?;
            FailureDetector::default().rescue_dead_workers(present.store())?;
            present.store().for_restore().refuse_while_used()?;
        }
        let staged = StagedBackup::copy(backup, database)?;
        let restored = prepare(&staged, broken)?;
        copy_contents(backup, database)?;
        staged.put_in_place()?;
        discard_unknown_files(database)?;
        Ok(restored)
    }
}

/// Copies the contents of artifacts that are beside the backup. Those without rows are removed later.
fn copy_contents(backup: &Path, database: &Path) -> Result<()> {
    let beside = |path: &Path| RunFiles::beside(&path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    beside(backup)
        .copy_contents_to(&beside(database))
        .map_err(|error| Error::conflict(OPERATION, format!("the files of its runs: {error}")))
}

/// Removes the workspaces of runs that the backup does not know. A new run may get the number of one of them.
fn discard_unknown_files(database: &Path) -> Result<()> {
    let options = Options { mode: OpenMode::Existing, ..Options::default() };
    let restored = Windlass::open_with(database, options)?;
    match restored.store().for_scheduler().discard_unknown_workspaces()?.first() {
        None => Ok(()),
        Some(failure) => {
            Err(Error::conflict(OPERATION, format!("it is restored, and old files are left: {failure}")))
        }
    }
}

fn prepare(staged: &StagedBackup, broken: BrokenRules) -> Result<Restored> {
    let copy: Arc<dyn Database> = Arc::new(staged.open(&TABLES)?);
    let store = Store::new(copy, Clock::system(), Random::from_entropy());
    let problems = store.upkeep().check()?;
    if broken == BrokenRules::Refuse && !problems.is_empty() {
        let shown: Vec<&str> =
            problems.iter().take(SHOWN_MAX).map(|problem| problem.detail.as_str()).collect();
        let reason = format!("the backup breaks {} of its rules: {}", problems.len(), shown.join("; "));
        return Err(Error::conflict(OPERATION, reason));
    }
    store.for_restore().finish_restore()
}
