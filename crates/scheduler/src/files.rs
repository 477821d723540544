//! Files of runs: workspaces of runs that are over are kept or removed, and contents that no row names are removed.

use std::collections::HashSet;
use std::time::Duration;

use windlass_engine::{Result, Store};

/// Time between two looks for runs that are over.
const PAUSE: Duration = Duration::from_secs(5);
/// Time between two searches for files that no row names.
const SEARCH_MS: i64 = 10 * 60_000;
/// How many calls one step makes at most.
const CALLS_MAX: usize = 100;

/// Cares for the files of runs in the upkeep thread.
#[derive(Debug, Default)]
pub(crate) struct FilesUpkeep {
    /// When to search for files that no row names, by the monotonic clock.
    search_at_ms: Option<i64>,
    /// Which of the 256 folders of contents to search next.
    folder: u8,
    /// What was logged. A failure that stays is logged once.
    logged: HashSet<String>,
}

impl FilesUpkeep {
    /// Does what is due. Returns when to look again, if there are files.
    pub(crate) fn step(&mut self, store: &Store) -> Result<Option<Duration>> {
        if store.files().is_none_or(|files| !files.exists()) {
            return Ok(None);
        }
        let now_ms = store.clock().monotonic_ms();
        let mut failures = Vec::new();
        if now_ms >= self.search_at_ms.unwrap_or(now_ms) {
            failures.extend(store.for_scheduler().discard_unknown_workspaces()?);
            self.search_at_ms = Some(now_ms + SEARCH_MS);
        }
        // So the whole folder takes about 20 minutes.
        failures.extend(store.for_scheduler().remove_unnamed_contents(self.folder)?);
        self.folder = self.folder.wrapping_add(1);
        failures.extend(settle_files(store)?);
        if self.logged.len() > CALLS_MAX {
            self.logged.clear();
        }
        for failure in failures {
            if self.logged.insert(failure.clone()) {
                tracing::warn!("files of runs can't be removed: {failure}");
            }
        }
        Ok(Some(PAUSE))
    }
}

/// Keeps or removes the workspaces of runs that are over. Returns what could not be removed.
///
/// # Errors
/// Returns the database's error.
pub fn settle_files(store: &Store) -> Result<Vec<String>> {
    let Some(files) = store.files().filter(|files| files.exists()) else { return Ok(Vec::new()) };
    let mut failures = Vec::new();
    for _call in 0..CALLS_MAX {
        let settled = store.for_scheduler().settle_workspaces()?;
        failures = settled.failures;
        if settled.runs == 0 || !failures.is_empty() {
            break;
        }
    }
    for _call in 0..CALLS_MAX {
        match files.remove_discarded() {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                failures.push(format!("{}: {error}", files.root().display()));
                break;
            }
        }
    }
    Ok(failures)
}
