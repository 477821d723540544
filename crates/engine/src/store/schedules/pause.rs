//! Schedules that fire nothing for a while. What a pause hides is not caught up.

use super::definitions::next_after;
use super::{Schedule, hold, hold_all};
use crate::store::Schedules;
use crate::store::evidence::Evidence;
use windlass_db::Connection;
use windlass_db::error::Result;
use windlass_system::wake_ups::WakeUps;

impl Schedules<'_> {
    /// Lets a schedule fire nothing. Returns whether it did before.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn pause(&self, schedule_id: i64) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("pause a schedule", Evidence::Token, move |connection| {
            hold(connection, schedule_id)?;
            let paused = connection.execute(
                "UPDATE schedules SET paused_at = $2, updated_at = $2 WHERE id = $1 AND paused_at IS NULL",
                &[schedule_id.into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::DUE);
            Ok(paused == 1)
        })
    }

    /// Lets a schedule fire again, from now on. Returns whether it did not before.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] and the database's.
    pub fn resume(&self, schedule_id: i64) -> Result<bool> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("resume a schedule", Evidence::Token, move |connection| {
            let schedule = hold(connection, schedule_id)?;
            if schedule.paused_at.is_none() {
                return Ok(false);
            }
            begin_at(connection, &schedule, now_ms)?;
            connection.execute(
                "UPDATE schedules SET paused_at = NULL, updated_at = $2 WHERE id = $1",
                &[schedule_id.into(), now_ms.into()],
            )?;
            connection.wake(WakeUps::DUE);
            Ok(true)
        })
    }
}

/// The schedules of a workflow that fired nothing until now occur from now on.
pub(in crate::store) fn begin_anew(
    connection: &mut dyn Connection,
    workflow: &str,
    now_ms: i64,
) -> Result<()> {
    let schedules = hold_all(connection, workflow)?;
    for schedule in schedules.into_iter().filter(|schedule| schedule.removed_at.is_none()) {
        begin_at(connection, &schedule, now_ms)?;
    }
    connection.wake(WakeUps::DUE);
    Ok(())
}

/// Everything before an instant counts as decided. The cursor never goes back, also when the clock did.
fn begin_at(connection: &mut dyn Connection, schedule: &Schedule, now_ms: i64) -> Result<()> {
    let decided_until = schedule.decided_until.max(now_ms);
    // A rule that can't be read is said when it is to fire.
    let next_at = next_after(&schedule.definition, decided_until).unwrap_or(Some(decided_until + 1));
    connection.execute(
        "UPDATE schedules SET decided_until = $2, next_at = $3 WHERE id = $1",
        &[schedule.id.into(), decided_until.into(), next_at.into()],
    )?;
    Ok(())
}
