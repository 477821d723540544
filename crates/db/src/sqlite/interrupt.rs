//! Ends reads at the deadline of their thread.

use rusqlite::Connection;

use crate::error::Result;
use crate::read_deadline::ReadDeadline;

/// After so many steps of SQLite's machine the time is looked at: some tens of microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 4_000;

/// While this exists, statements of the connection are interrupted once the deadline of this thread is reached.
pub(super) struct Limited<'c> {
    connection: &'c Connection,
}

impl Limited<'_> {
    /// `None` if this thread has no deadline.
    ///
    /// # Errors
    /// When the deadline is reached already: short statements end before the time is looked at.
    pub(super) fn of(connection: &Connection) -> Result<Option<Limited<'_>>> {
        let Some(deadline) = ReadDeadline::of_this_thread() else { return Ok(None) };
        deadline.left_ms()?;
        let is_reached = move || deadline.left_ms().is_err();
        // It fails only for connections that rusqlite did not open.
        let is_set = connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(is_reached));
        Ok(is_set.ok().map(|()| Limited { connection }))
    }
}

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        let _owned = self.connection.progress_handler(0, None::<fn() -> bool>);
    }
}
