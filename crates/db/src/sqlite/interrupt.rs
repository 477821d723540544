//! Ends reads that take too long.

use rusqlite::Connection;

use crate::read_limit::ReadLimit;

/// After so many steps of SQLite's machine the time is looked at: some tens of microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 4_000;

/// While this exists, statements of the connection are interrupted once the limit of this thread is reached.
pub(super) struct Limited<'c> {
    connection: &'c Connection,
}

impl Limited<'_> {
    /// `None` if this thread has no limit.
    pub(super) fn of(connection: &Connection) -> Option<Limited<'_>> {
        let limit = ReadLimit::of_this_thread()?;
        let until_ms = limit.clock.monotonic_ms().saturating_add(limit.longest_ms());
        let is_reached = move || limit.clock.monotonic_ms() >= until_ms;
        // It fails only for connections that rusqlite did not open.
        connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(is_reached)).ok()?;
        Some(Limited { connection })
    }
}

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        let _owned = self.connection.progress_handler(0, None::<fn() -> bool>);
    }
}
