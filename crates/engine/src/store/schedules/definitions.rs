//! Adding, changing and removing schedules, one by one or all that a workflow's file defines. A row is never deleted,
//! so that a schedule that is added again under its name does not repeat occurrences.

use crate::store::Schedules;
use windlass_workflow::Workflow;
use windlass_workflow::model::Schedule as Definition;
use windlass_workflow::schedule::Timetable;

use super::occurrences::{self, NewOccurrence};
use super::plan::{Plan, plan};
use super::trigger::bind;
use super::{
    Schedule, ScheduleOrigin, find_by_name, key, lock_schedule, lock_schedules_of_workflow,
    schedules_of_workflow,
};
use crate::status::RunSource;
use crate::store::evidence::Evidence;
use crate::store::registrations::registered_workflow;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, one};
use windlass_system::wake_ups::WakeUps;

/// The maximum number of schedules of one workflow.
const SCHEDULES_MAX: i64 = 1_000;
/// How often [`sync`] compares the schedules with their file again, if other processes add schedules at the same
/// moment.
const TRIES_MAX: usize = 16;

/// A schedule that [`sync`] changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSchedule {
    /// The schedule's name.
    pub name: String,
    /// How it changed.
    pub change: ScheduleChange,
}

/// How a registration changed a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleChange {
    /// It is new, or was removed before and is active again.
    Added,
    /// Its definition has changed.
    Changed,
    /// The file does not define it any more.
    Removed,
}

impl Schedules<'_> {
    /// Adds a schedule to a registered workflow. Its occurrences begin now.
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

/// Makes the schedules of a workflow match its file. Returns what changed.
pub(in crate::store) fn sync(
    connection: &mut dyn Connection,
    workflow: &str,
    definitions: &[Definition],
    now_ms: i64,
) -> Result<Vec<ChangedSchedule>> {
    let mut done = Vec::new();
    for _try in 0..TRIES_MAX {
        let present = lock_schedules_of_workflow(connection, workflow)?;
        let mut is_taken = false;
        for synced in compare(&present, definitions) {
            let definition = definitions.iter().find(|definition| definition.name == synced.name);
            if apply_change(connection, workflow, &present, &synced, definition, now_ms)? {
                done.push(synced);
            } else {
                is_taken = true;
            }
        }
        if !is_taken {
            if !done.is_empty() {
                connection.wake(WakeUps::DUE);
            }
            return Ok(done);
        }
    }
    let operation = format!("change the schedules of workflow `{workflow}`");
    Err(Error::conflict(operation, "other processes keep adding and removing them"))
}

/// Makes one change. Returns `false` if another process added a schedule of that name after `present` was read.
fn apply_change(
    connection: &mut dyn Connection,
    workflow: &str,
    present: &[Schedule],
    ChangedSchedule { name, change }: &ChangedSchedule,
    definition: Option<&Definition>,
    now_ms: i64,
) -> Result<bool> {
    let known = present.iter().find(|schedule| schedule.name == *name);
    match (change, known, definition) {
        (ScheduleChange::Removed, Some(schedule), _) => remove(connection, schedule, now_ms)?,
        (ScheduleChange::Changed, Some(schedule), Some(definition)) => {
            replace(connection, schedule, definition, now_ms)?;
        }
        (ScheduleChange::Added, Some(removed), Some(definition)) => {
            return revive(connection, removed, definition, ScheduleOrigin::File, now_ms);
        }
        (ScheduleChange::Added, None, Some(definition)) => {
            return insert(connection, workflow, definition, ScheduleOrigin::File, now_ms);
        }
        (ScheduleChange::Removed, None, _)
        | (ScheduleChange::Changed, None, _)
        | (ScheduleChange::Added | ScheduleChange::Changed, _, None) => {}
    }
    Ok(true)
}

/// Returns what [`sync`] would change.
pub(in crate::store) fn preview_sync(
    connection: &mut dyn Connection,
    workflow: &str,
    definitions: &[Definition],
) -> Result<Vec<ChangedSchedule>> {
    Ok(compare(&schedules_of_workflow(connection, workflow)?, definitions))
}

/// Compares the stored schedules of a workflow with its file. A schedule from the command line that has the name of
/// one in the file counts as changed: the file takes it over.
fn compare(present: &[Schedule], definitions: &[Definition]) -> Vec<ChangedSchedule> {
    let active = |schedule: &&Schedule| schedule.removed_at.is_none();
    let of_file = |schedule: &&Schedule| match schedule.origin {
        ScheduleOrigin::File => true,
        ScheduleOrigin::Command => false,
    };
    let is_gone =
        |schedule: &&Schedule| definitions.iter().all(|definition| definition.name != schedule.name);
    let removed = present.iter().filter(active).filter(of_file).filter(is_gone);
    let mut changes: Vec<ChangedSchedule> = removed
        .map(|schedule| ChangedSchedule { name: schedule.name.clone(), change: ScheduleChange::Removed })
        .collect();
    for definition in definitions {
        let known = present.iter().filter(active).find(|schedule| schedule.name == definition.name);
        let change = match known {
            Some(schedule) if schedule.definition == *definition && of_file(&schedule) => continue,
            Some(_other) => ScheduleChange::Changed,
            None => ScheduleChange::Added,
        };
        changes.push(ChangedSchedule { name: definition.name.clone(), change });
    }
    changes
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
        Some(removed) => revive(connection, &removed, definition, ScheduleOrigin::Command, now_ms)?,
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

fn to_json(definition: &Definition) -> Result<String> {
    serde_json::to_string(definition).map_err(|error| Error::internal("write a schedule", error.to_string()))
}

/// Inserts a schedule. Returns `false` if the name is taken.
fn insert(
    connection: &mut dyn Connection,
    workflow: &str,
    definition: &Definition,
    origin: ScheduleOrigin,
    now_ms: i64,
) -> Result<bool> {
    let inserted = connection.execute(
        "INSERT INTO schedules (workflow, name, definition, origin, next_at, decided_until, created_at,
                                updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $6, $6)
         ON CONFLICT (workflow, name) DO NOTHING",
        &[
            workflow.into(),
            (&definition.name).into(),
            (&to_json(definition)?).into(),
            origin.as_str().into(),
            next_after(definition, now_ms)?.into(),
            now_ms.into(),
        ],
    )?;
    Ok(inserted == 1)
}

/// Activates a removed schedule again, from now on. Returns `false` if another process has done so already.
fn revive(
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

/// Replaces the definition of a schedule. Occurrences that are due by the old rule are still decided by the old rule;
/// the new rule applies from now on.
fn replace(
    connection: &mut dyn Connection,
    schedule: &Schedule,
    definition: &Definition,
    now_ms: i64,
) -> Result<()> {
    let mut cursor = (schedule.decided_until, schedule.next_at);
    if !has_same_times(&schedule.definition, definition) {
        let decided_until = decide_by_old_rule(connection, schedule, now_ms)?;
        cursor = (decided_until, next_after(definition, decided_until)?);
    }
    connection.execute(
        "UPDATE schedules
         SET definition = $2, origin = 'file', decided_until = $3, next_at = $4, updated_at = $5
         WHERE id = $1",
        &[
            schedule.id.into(),
            (&to_json(definition)?).into(),
            cursor.0.into(),
            cursor.1.into(),
            now_ms.into(),
        ],
    )?;
    Ok(())
}

fn has_same_times(one: &Definition, other: &Definition) -> bool {
    let times = |definition: &Definition| {
        let Definition { rule, timezone, start_ms, end_ms, .. } = definition;
        (rule.clone(), timezone.clone(), *start_ms, *end_ms)
    };
    times(one) == times(other)
}

/// Decides the occurrences that are still due by the old rule: they wait or are skipped. Returns the instant up to
/// which everything is decided.
fn decide_by_old_rule(connection: &mut dyn Connection, schedule: &Schedule, now_ms: i64) -> Result<i64> {
    let mut decided_until = schedule.decided_until;
    // A rule that can't be read has no occurrences, and neither has a schedule that is not active.
    if let Ok(timetable) = timetable(&schedule.definition)
        && schedule.is_active()
    {
        while decided_until < now_ms {
            let plan = plan(&schedule.key(), &schedule.definition, &timetable, decided_until, now_ms);
            write_plan(connection, schedule, &plan, now_ms)?;
            decided_until = plan.decided_until;
        }
    }
    Ok(decided_until.max(now_ms))
}

fn write_plan(connection: &mut dyn Connection, schedule: &Schedule, plan: &Plan, now_ms: i64) -> Result<()> {
    let waiting = plan.due.iter().map(|due| NewOccurrence::waiting(due.at_ms, due.start_after, due.source));
    let missed = plan
        .missed
        .iter()
        .map(|(at_ms, reason)| NewOccurrence::skipped(*at_ms, *at_ms, RunSource::Schedule, reason));
    let news: Vec<NewOccurrence<'_>> = waiting.chain(missed).collect();
    occurrences::write(connection, schedule.id, &news, now_ms)
}

fn remove(connection: &mut dyn Connection, schedule: &Schedule, now_ms: i64) -> Result<()> {
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
