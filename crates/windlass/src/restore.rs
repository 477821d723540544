//! Bringing a backup back.

use std::path::Path;
use std::sync::Arc;

use windlass_db::Database;
use windlass_db::sqlite::StagedBackup;
use windlass_engine::store::Restored;
use windlass_engine::{Clock, Error, HasStore, Random, Result, Store, TABLES};
use windlass_scheduler::FailureDetector;

use crate::OpenMode;
use crate::open::{Options, Windlass};

const WHAT: &str = "restore the database";
/// Broken rules that an error shows at most.
const SHOWN_MAX: usize = 3;

/// What is done with a backup whose rows do not fit together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BrokenRules {
    /// It is refused.
    #[default]
    Refuse,
    /// It is restored as it is.
    Accept,
}

impl Windlass {
    /// Replaces a SQLite database by a backup, or makes it from one: checked before, prepared so that nobody acts
    /// in the name of a worker of that time, and all at once. Schedules are paused.
    ///
    /// # Errors
    /// [`Error::Conflict`] when something runs in the database or the backup breaks rules; else the reason why one
    /// of the two can't be used. The database is as it was then.
    pub fn restore(
        backup: impl AsRef<Path>,
        database: impl AsRef<Path>,
        broken: BrokenRules,
    ) -> Result<Restored> {
        let (backup, database) = (backup.as_ref(), database.as_ref());
        if database.symlink_metadata().is_ok() {
            let options = Options { mode: OpenMode::Existing, ..Options::default() };
            let present = Windlass::open_with(database, options)?;
            FailureDetector::default().look(present.store())?;
            present.store().for_restore().refuse_while_used()?;
        }
        let staged = StagedBackup::copy(backup, database)?;
        let restored = prepare(&staged, broken)?;
        staged.put_in_place()?;
        Ok(restored)
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
        return Err(Error::conflict(WHAT, reason));
    }
    store.for_restore().finish_restore()
}
