//! Schedules: when a workflow runs by itself. Here they are read; what changes them, what they decide and what
//! comes of it has a file each.

/// `SELECT` of every column that [`read`] reads, in its order.
macro_rules! select_schedules {
    ($rest:literal) => {
        concat!(
            "SELECT schedules.id, schedules.workflow, schedules.name, schedules.definition,
                    schedules.origin, schedules.paused_at,
                    (SELECT paused_at FROM registrations WHERE registrations.name = schedules.workflow),
                    EXISTS (SELECT 1 FROM registrations WHERE registrations.name = schedules.workflow),
                    schedules.next_at, coalesce(schedules.decided_until, schedules.created_at),
                    schedules.removed_at, schedules.created_at
             FROM schedules ",
            $rest
        )
    };
}

mod backfill;
mod definitions;
mod firing;
mod occurrences;
mod overlap;
mod pause;
mod plan;
mod prepared_runs;
mod situation;
mod trigger;

use crate::store::Schedules;
use windlass_workflow::model::Schedule as Definition;

use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, all, first};

pub use backfill::{AT_ONCE_MAX, BACKFILL_MAX, Backfill, Backfilling};
pub use definitions::{ScheduleChange, Synced};
pub use firing::Fired;
pub use occurrences::{Occurrence, OccurrenceStatus};
pub use overlap::WAITING_MAX;
pub use plan::{COUNTED_MAX, NOTED_MAX, ON_TIME_MS};

pub(super) use definitions::{preview_sync, sync};
pub(super) use pause::begin_anew;

/// A schedule, as it is now. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Its id.
    pub id: i64,
    /// The name of the workflow it fires.
    pub workflow: String,
    /// Its name, unique within the workflow.
    pub name: String,
    /// When it occurs, and what becomes of an occurrence.
    pub definition: Definition,
    /// Where it was written.
    pub origin: ScheduleOrigin,
    /// Since when it fires nothing.
    pub paused_at: Option<i64>,
    /// Since when its workflow is paused, and it fires nothing for that.
    pub workflow_paused_at: Option<i64>,
    /// Its workflow is registered: else it fires nothing.
    pub is_registered: bool,
    /// The nominal time of its next occurrence.
    pub next_at: Option<i64>,
    /// Everything up to here is decided.
    pub decided_until: i64,
    /// When it was deactivated.
    pub removed_at: Option<i64>,
    /// When it was made.
    pub created_at: i64,
}

/// Where a schedule was written.
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

    /// The origin of that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<ScheduleOrigin> {
        [ScheduleOrigin::File, ScheduleOrigin::Command].into_iter().find(|origin| origin.as_str() == text)
    }
}

impl Schedule {
    /// What it is called everywhere: `WORKFLOW/NAME`.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.workflow, &self.name)
    }

    /// It may fire.
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
    first(connection, select_schedules!("WHERE id = $1"), &[schedule_id.into()], read)
}

fn find_by_name(connection: &mut dyn Connection, workflow: &str, name: &str) -> Result<Option<Schedule>> {
    let sql = select_schedules!("WHERE workflow = $1 AND name = $2");
    first(connection, sql, &[workflow.into(), name.into()], read)
}

/// Takes the lock of a schedule, after whoever holds it now, and reads it.
fn hold(connection: &mut dyn Connection, schedule_id: i64) -> Result<Schedule> {
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

/// All schedules of a workflow, also those that were removed.
fn of_workflow(connection: &mut dyn Connection, workflow: &str) -> Result<Vec<Schedule>> {
    all(connection, select_schedules!("WHERE workflow = $1 ORDER BY id"), &[workflow.into()], read)
}

/// The same, with their locks, taken in the order of ids after whoever holds them now.
fn hold_all(connection: &mut dyn Connection, workflow: &str) -> Result<Vec<Schedule>> {
    let sql = "SELECT id FROM schedules WHERE workflow = $1 ORDER BY id {wait}";
    let _ids: Vec<i64> = all(connection, sql, &[workflow.into()], |row| row.integer(0))?;
    of_workflow(connection, workflow)
}

impl Schedules<'_> {
    /// All schedules that were not removed, by workflow and name.
    ///
    /// # Errors
    /// The database's, or [`Error::Internal`] when another program wrote a definition that is none.
    pub fn list(&self) -> Result<Vec<Schedule>> {
        self.store.read(|connection| {
            all(connection, select_schedules!("WHERE removed_at IS NULL ORDER BY workflow, name"), &[], read)
        })
    }

    /// A schedule, also one that was removed.
    ///
    /// # Errors
    /// [`Error::NotFound`], and as of [`Store::schedules`].
    pub fn get(&self, schedule_id: i64) -> Result<Schedule> {
        let found = self.store.read(|connection| find(connection, schedule_id))?;
        found.ok_or_else(|| Error::not_found(format!("schedule {schedule_id}")))
    }
}
