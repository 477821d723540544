//! Adding and removing schedules. A row is never deleted, so that a schedule that is added again under its name does
//! not repeat occurrences.

use crate::store::Schedules;
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Schedule as Definition};
use windlass_workflow::schedule::Timetable;

use super::fire::bind;
use super::{Schedule, ScheduleOrigin, find_by_name, key, lock_schedule};
use crate::store::evidence::Evidence;
use crate::store::registrations::registered_workflow;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, one};
use windlass_system::wake_ups::WakeUps;

/// The maximum number of schedules of one workflow.
const SCHEDULES_MAX: i64 = 1_000;

impl Schedules<'_> {
    /// Adds a schedule to a registered workflow. Its occurrences begin now, or at `start` if all of them are caught up.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the workflow is not registered; [`Error::Conflict`] if it has a schedule of that name;
    /// [`Error::Invalid`] if the rule is invalid or the parameters do not fit the workflow; and the database's.
    pub fn add(&self, workflow: &str, definition: Definition) -> Result<Schedule> {
        let (name, now_ms) = (workflow.to_owned(), self.store.clock.now_ms());
        self.store.write("add a schedule", Evidence::Token, move |connection| {
            add(connection, &name, &definition, now_ms)
        })
    }

    /// Deactivates a schedule. Its runs continue; its waiting occurrences are deleted.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn remove(&self, schedule_id: i64) -> Result<()> {
        let now_ms = self.store.clock.now_ms();
        self.store.write("remove a schedule", Evidence::Token, move |connection| {
            let schedule = lock_schedule(connection, schedule_id)?;
            remove(connection, &schedule, now_ms)
        })
    }
}

fn add(
    connection: &mut dyn Connection,
    workflow: &str,
    definition: &Definition,
    now_ms: i64,
) -> Result<Schedule> {
    let Some((_registration, registered)) = registered_workflow(connection, workflow)? else {
        return Err(Error::not_found(format!("registered workflow `{workflow}`")));
    };
    let operation = format!("add schedule {}", key(workflow, &definition.name));
    definition
        .check(&registered.params)
        .map_err(|error| Error::invalid(operation.as_str(), error.to_string()))?;
    check_params(&operation, &registered, definition, now_ms)?;
    let count = one(
        connection,
        "SELECT count(*) FROM schedules WHERE workflow = $1 AND removed_at IS NULL",
        &[workflow.into()],
        |row| row.integer(0),
    )?;
    if count >= SCHEDULES_MAX {
        let reason = format!("the workflow has {SCHEDULES_MAX} schedules already, which is the maximum");
        return Err(Error::conflict(operation, reason));
    }
    let taken = |origin: ScheduleOrigin| match origin {
        ScheduleOrigin::File => "the workflow's file defines a schedule of that name",
        ScheduleOrigin::Command => "a schedule of that name exists",
    };
    let is_added = match find_by_name(connection, workflow, &definition.name)? {
        Some(schedule) if schedule.removed_at.is_none() => {
            return Err(Error::conflict(operation, taken(schedule.origin)));
        }
        // Both return `false` if another process was faster.
        Some(removed) => reactivate(connection, &removed, definition, ScheduleOrigin::Command, now_ms)?,
        None => insert(connection, workflow, definition, ScheduleOrigin::Command, now_ms)?,
    };
    if !is_added {
        return Err(Error::conflict(operation, taken(ScheduleOrigin::Command)));
    }
    connection.wake(WakeUps::DUE);
    find_by_name(connection, workflow, &definition.name)?
        .ok_or_else(|| Error::internal(operation, "the schedule that was added is missing"))
}

/// Checks that the next occurrence's parameters would fit the workflow.
fn check_params(operation: &str, workflow: &Workflow, definition: &Definition, now_ms: i64) -> Result<()> {
    let at_ms = next_after(definition, now_ms)?.unwrap_or(now_ms);
    bind(workflow, definition, at_ms).map(drop).map_err(|reason| Error::invalid(operation, reason))
}

/// Returns the nominal time of the first occurrence after an instant.
pub(super) fn next_after(definition: &Definition, instant_ms: i64) -> Result<Option<i64>> {
    let timetable = timetable(definition)?;
    let next = timetable.after(instant_ms).next();
    Ok(next.map(|occurrence| occurrence.at_ms))
}

pub(super) fn timetable(definition: &Definition) -> Result<Timetable> {
    Timetable::of(definition)
        .map_err(|error| Error::invalid(format!("schedule `{}`", definition.name), error.to_string()))
}

pub(super) fn to_json(definition: &Definition) -> Result<String> {
    serde_json::to_string(definition).map_err(|error| Error::internal("write a schedule", error.to_string()))
}

/// Inserts a schedule. Returns `false` if the name is taken.
pub(super) fn insert(
    connection: &mut dyn Connection,
    workflow: &str,
    definition: &Definition,
    origin: ScheduleOrigin,
    now_ms: i64,
) -> Result<bool> {
    let decided_until = first_cursor(definition, now_ms);
    let inserted = connection.execute(
        "INSERT INTO schedules (workflow, name, definition, origin, next_at, decided_until, created_at,
                                updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
         ON CONFLICT (workflow, name) DO NOTHING",
        &[
            workflow.into(),
            (&definition.name).into(),
            (&to_json(definition)?).into(),
            origin.as_str().into(),
            next_after(definition, decided_until)?.into(),
            decided_until.into(),
            now_ms.into(),
        ],
    )?;
    Ok(inserted == 1)
}

/// The cursor of a new schedule. Its occurrences begin now. With `start` and `catchup = "all"` they begin at `start`, and those
/// until now count as missed.
fn first_cursor(definition: &Definition, now_ms: i64) -> i64 {
    match (definition.catchup, definition.start_ms) {
        (Catchup::All, Some(start_ms)) => now_ms.min(start_ms.saturating_sub(1)),
        (Catchup::All, None) | (Catchup::Last | Catchup::None, _) => now_ms,
    }
}

/// Activates a removed schedule again, from now on. Returns `false` if another process has done so already.
pub(super) fn reactivate(
    connection: &mut dyn Connection,
    removed: &Schedule,
    definition: &Definition,
    origin: ScheduleOrigin,
    now_ms: i64,
) -> Result<bool> {
    // The cursor never goes back, even if the clock did.
    let decided_until = removed.decided_until.max(now_ms);
    let revived = connection.execute(
        "UPDATE schedules
         SET definition = $2, origin = $3, next_at = $4, decided_until = $5, removed_at = NULL,
             paused_at = NULL, updated_at = $6
         WHERE id = $1 AND removed_at IS NOT NULL",
        &[
            removed.id.into(),
            (&to_json(definition)?).into(),
            origin.as_str().into(),
            next_after(definition, decided_until)?.into(),
            decided_until.into(),
            now_ms.into(),
        ],
    )?;
    Ok(revived == 1)
}

pub(super) fn remove(connection: &mut dyn Connection, schedule: &Schedule, now_ms: i64) -> Result<()> {
    connection.execute(
        "UPDATE schedules SET removed_at = $2, next_at = NULL, updated_at = $2 WHERE id = $1",
        &[schedule.id.into(), now_ms.into()],
    )?;
    connection.execute(
        "DELETE FROM occurrences WHERE schedule_id = $1 AND status = 'WAITING'",
        &[schedule.id.into()],
    )?;
    connection.wake(WakeUps::DUE);
    Ok(())
}
