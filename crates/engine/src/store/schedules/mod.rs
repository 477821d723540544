//! Schedules: rules that start runs of a workflow. This file reads them. Each change has a file of its own. `plan`
//! and `overlap` are the pure decisions, and `firing` writes what they decide.

/// The columns of `schedules` that [`read`] reads, in its order.
pub(crate) const SCHEDULE_COLUMNS: Fragment = Fragment {
    name: "schedule_columns",
    sql: "schedules.id, schedules.workflow, schedules.name, schedules.definition, schedules.origin, schedules.paused_at,
          (SELECT paused_at FROM registrations WHERE registrations.name = schedules.workflow),
          EXISTS (SELECT 1 FROM registrations WHERE registrations.name = schedules.workflow),
          schedules.next_at, coalesce(schedules.decided_until, schedules.created_at),
          schedules.removed_at, schedules.created_at",
};

mod backfill;
mod definitions;
mod fire;
mod firing;
mod occurrences;
mod overlap;
mod pause;
mod plan;
mod planned_firing;
mod prepared_runs;
mod sync;

use crate::store::Schedules;
use windlass_workflow::model::Schedule as Definition;

use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all, first};

pub use backfill::{AT_ONCE_MAX, BACKFILL_MAX, Backfill, BackfillResult};
pub use firing::Fired;
pub use occurrences::{Occurrence, OccurrenceStatus};
pub use overlap::WAITING_MAX;
pub use plan::{MISSED_COUNT_MAX, ON_TIME_MS, RECORDED_MAX};
pub use sync::{ChangedSchedule, ScheduleChange};

pub(super) use pause::advance_cursors_of_workflow;
pub(super) use sync::{preview_sync, sync};

/// A schedule, as it is now. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its id.
    pub id: i64,
    /// The name of the workflow whose runs it starts.
    pub workflow: String,
    /// Its name, unique within the workflow.
    pub name: String,
    /// When it occurs, and what to do with each occurrence.
    pub definition: Definition,
    /// Where it was defined.
    pub origin: ScheduleOrigin,
    /// When it was paused.
    pub paused_at: Option<i64>,
    /// When its workflow was paused. A paused workflow's schedules do not fire.
    pub workflow_paused_at: Option<i64>,
    /// Whether its workflow is registered. Otherwise it does not fire.
    pub is_registered: bool,
    /// The nominal time of its next occurrence.
    pub next_at: Option<i64>,
    /// The cursor: all occurrences up to this instant are decided.
    pub decided_until: i64,
    /// When it was deactivated.
    pub removed_at: Option<i64>,
    /// When it was created.
    pub created_at: i64,
}

/// Where a schedule was defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleOrigin {
    /// In the file of its workflow.
    File,
    /// On the command line, or by a program.
    Command,
}

impl ScheduleOrigin {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ScheduleOrigin::File => "file",
            ScheduleOrigin::Command => "command",
        }
    }

    /// The origin with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<ScheduleOrigin> {
        [ScheduleOrigin::File, ScheduleOrigin::Command].into_iter().find(|origin| origin.as_str() == text)
    }
}

impl Schedule {
    /// Its full name, `WORKFLOW/NAME`.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.workflow, &self.name)
    }

    /// Whether it may fire.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_registered
            && [self.paused_at, self.workflow_paused_at, self.removed_at].iter().all(Option::is_none)
    }
}

/// `WORKFLOW/NAME`.
fn key(workflow: &str, name: &str) -> String {
    format!("{workflow}/{name}")
}

fn read(row: &dyn Row) -> Result<Schedule> {
    let (id, definition) = (row.integer(0)?, row.text(3)?);
    Ok(Schedule {
        id,
        workflow: row.text(1)?,
        name: row.text(2)?,
        definition: serde_json::from_str(&definition)
            .map_err(|error| Error::internal(format!("read schedule {id}"), error.to_string()))?,
        origin: row.parsed(4, ScheduleOrigin::parse)?,
        paused_at: row.optional_integer(5)?,
        workflow_paused_at: row.optional_integer(6)?,
        is_registered: row.integer(7)? != 0,
        next_at: row.optional_integer(8)?,
        decided_until: row.integer(9)?,
        removed_at: row.optional_integer(10)?,
        created_at: row.integer(11)?,
    })
}

fn find(connection: &mut dyn Connection, schedule_id: i64) -> Result<Option<Schedule>> {
    first(connection, "SELECT {schedule_columns} FROM schedules WHERE id = $1", &[schedule_id.into()], read)
}

fn find_by_name(connection: &mut dyn Connection, workflow: &str, name: &str) -> Result<Option<Schedule>> {
    let sql = "SELECT {schedule_columns} FROM schedules WHERE workflow = $1 AND name = $2";
    first(connection, sql, &[workflow.into(), name.into()], read)
}

/// Locks a schedule's row, waiting for another transaction if necessary, and reads it.
fn lock_schedule(connection: &mut dyn Connection, schedule_id: i64) -> Result<Schedule> {
    let held =
        first(connection, "SELECT id FROM schedules WHERE id = $1 {wait}", &[schedule_id.into()], |row| {
            row.integer(0)
        })?;
    let schedule = match held {
        Some(_id) => find(connection, schedule_id)?,
        None => None,
    };
    schedule
        .filter(|schedule| schedule.removed_at.is_none())
        .ok_or_else(|| Error::not_found(format!("schedule {schedule_id}")))
}

/// Reads all schedules of a workflow, removed ones included.
fn schedules_of_workflow(connection: &mut dyn Connection, workflow: &str) -> Result<Vec<Schedule>> {
    all(
        connection,
        "SELECT {schedule_columns} FROM schedules WHERE workflow = $1 ORDER BY id",
        &[workflow.into()],
        read,
    )
}

/// Locks all schedules of a workflow in the order of their ids, waiting if necessary, and reads them.
fn lock_schedules_of_workflow(connection: &mut dyn Connection, workflow: &str) -> Result<Vec<Schedule>> {
    let sql = "SELECT id FROM schedules WHERE workflow = $1 ORDER BY id {wait}";
    let _ids: Vec<i64> = all(connection, sql, &[workflow.into()], |row| row.integer(0))?;
    schedules_of_workflow(connection, workflow)
}

impl Schedules<'_> {
    /// Lists all schedules that were not removed, by workflow and name.
    ///
    /// # Errors
    /// Returns the database's error, or [`Error::Internal`] if another program wrote an invalid definition.
    pub fn list(&self) -> Result<Vec<Schedule>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {schedule_columns} FROM schedules WHERE removed_at IS NULL ORDER BY workflow, name",
                &[],
                read,
            )
        })
    }

    /// Reads a schedule, even if it was removed.
    ///
    /// # Errors
    /// [`Error::NotFound`], and as of [`Schedules::list`].
    pub fn get(&self, schedule_id: i64) -> Result<Schedule> {
        let found = self.store.read(|connection| find(connection, schedule_id))?;
        found.ok_or_else(|| Error::not_found(format!("schedule {schedule_id}")))
    }
}
