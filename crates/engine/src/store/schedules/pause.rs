//! Pausing and resuming schedules. Occurrences that fall into a pause are not caught up.

use super::definitions::next_after;
use super::{Schedule, lock_schedule, lock_schedules_of_workflow};
use crate::store::Schedules;
use crate::store::evidence::Evidence;
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_system::wake_ups::WakeUps;

impl Schedules<'_> {
    /// Pauses a schedule. Returns `false` if it was paused already.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn pause(&self, schedule_id: i64) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("pause a schedule", Evidence::Token, move |connection| {
            lock_schedule(connection, schedule_id)?;
            let paused = connection.execute(
                "UPDATE schedules SET paused_at = $2, updated_at = $2 WHERE id = $1 AND paused_at IS NULL",
                &[schedule_id.into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::DUE);
            Ok(paused == 1)
        })
    }

    /// Resumes a schedule from now on. Returns `false` if it was not paused.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn resume(&self, schedule_id: i64) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("resume a schedule", Evidence::Token, move |connection| {
            let schedule = lock_schedule(connection, schedule_id)?;
            if schedule.paused_at.is_none() {
                return Ok(false);
            }
            advance_cursor(connection, &schedule, now_ms)?;
            connection.execute(
                "UPDATE schedules SET paused_at = NULL, updated_at = $2 WHERE id = $1",
                &[schedule_id.into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::DUE);
            Ok(true)
        })
    }
}

/// Moves the cursors of a resumed workflow's schedules to now, so that the time of the pause is not caught up.
pub(in crate::store) fn advance_cursors_of_workflow(
    connection: &mut dyn Connection,
    workflow: &str,
    now_ms: i64,
) -> Result<()> {
    let schedules = lock_schedules_of_workflow(connection, workflow)?;
    for schedule in schedules.into_iter().filter(|schedule| schedule.removed_at.is_none()) {
        advance_cursor(connection, &schedule, now_ms)?;
    }
    connection.wake(WakeUps::DUE);
    Ok(())
}

/// Marks everything up to an instant as decided. The cursor never goes back, even if the clock did.
fn advance_cursor(connection: &mut dyn Connection, schedule: &Schedule, now_ms: i64) -> Result<()> {
    let decided_until = schedule.decided_until.max(now_ms);
    // If the rule can't be read, the schedule becomes due at once, and firing it reports the error.
    let next_at = next_after(&schedule.definition, decided_until).unwrap_or(Some(decided_until + 1));
    connection.execute(
        "UPDATE schedules SET decided_until = $2, next_at = $3 WHERE id = $1",
        &[schedule.id.into(), decided_until.into(), next_at.into()],
    )?;
    Ok(())
}
