//! Synchronizing the schedules of a workflow with the definitions in its file.

use windlass_workflow::model::Schedule as Definition;

use super::definitions::{insert, next_after, reactivate, remove, timetable, to_json};
use super::occurrences::{self, NewOccurrence};
use super::plan::{Plan, plan};
use super::{Schedule, ScheduleOrigin, lock_schedules_of_workflow, schedules_of_workflow};
use crate::status::RunSource;
use windlass_db::Connection;
use windlass_db::error::{Error, Result};
use windlass_system::wake_ups::WakeUps;

/// How often [`sync`] compares the schedules with their file again, if other processes add schedules at the same
/// moment.
const TRIES_MAX: usize = 16;

/// A schedule that changed because its workflow was registered.
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
            return reactivate(connection, removed, definition, ScheduleOrigin::File, now_ms);
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

/// Replaces the definition of a schedule. Occurrences that are due by the old rule are still decided by it;
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
