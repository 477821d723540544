//! Who cancelled a run, as far as the audit tells.

use crate::store::Runs;
use windlass_db::error::Result;
use windlass_db::first;

/// So many changes are searched for the one that cancelled a run, the newest first.
const CHANGES_SEARCHED: i64 = 1_000;

impl Runs<'_> {
    /// Who cancelled a run, if that is among the newest thousand changes that were recorded.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn cancelled_by(&self, run_id: i64) -> Result<Option<String>> {
        self.store.read(|connection| {
            first(
                connection,
                "SELECT caller
                 FROM (SELECT id, caller, action, subject FROM audit ORDER BY id DESC LIMIT $2) AS newest
                 WHERE subject = $1 AND action = 'cancel a run' ORDER BY id DESC LIMIT 1",
                &[format!("run {run_id}").as_str().into(), CHANGES_SEARCHED.into()],
                |row| row.text(0),
            )
        })
    }
}
