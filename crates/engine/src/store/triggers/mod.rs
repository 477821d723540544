//! Triggers of registered workflows: the rows that follow the active definitions, and how they are read.

use crate::store::{Registrations, Store};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, all};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::trigger::{Trigger, TriggerSource};

pub(in crate::store) mod start;

/// `event_name` of a trigger that takes ends of runs.
pub(in crate::store) const RUN_ENDS: &str = "";

/// A trigger of a registered workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredTrigger {
    /// The workflow.
    pub workflow: String,
    /// What it takes.
    pub definition: Trigger,
    /// The last time when something that it took started no run because of an error, and no run was started since.
    pub failure: Option<TriggerFailure>,
    /// It takes events with a higher number.
    pub(in crate::store) after_event_id: i64,
}

/// Why a trigger started no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerFailure {
    /// When that was, in milliseconds since the Unix epoch.
    pub at: i64,
    /// What it took: `event:5` or `run:12:1767225600000`.
    pub source: String,
    /// The reason, for people.
    pub error: String,
}

impl RegisteredTrigger {
    /// Its name for people: `alert/failed`.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}", self.workflow, self.definition.name)
    }
}

impl Registrations<'_> {
    /// The triggers of all registered workflows, by workflow and name.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn triggers(&self) -> Result<Vec<RegisteredTrigger>> {
        let store: &Store = self.store;
        store.read(|connection| {
            all(
                connection,
                "SELECT workflow, definition, failed_at, failed_source, last_error, after_event_id
                 FROM triggers ORDER BY workflow, name",
                &[],
                read,
            )
        })
    }
}

/// Reads a trigger. A definition that can't be read is an error: this version may be older than the row.
fn read(row: &dyn Row) -> Result<RegisteredTrigger> {
    let workflow = row.text(0)?;
    let definition = serde_json::from_str(&row.text(1)?)
        .map_err(|error| Error::internal("read a trigger", format!("that of `{workflow}`: {error}")))?;
    let failure = match (row.optional_integer(2)?, row.lossy_text(3)?, row.lossy_text(4)?) {
        (Some(at), source, error) => {
            Some(TriggerFailure { at, source: source.unwrap_or_default(), error: error.unwrap_or_default() })
        }
        (None, _, _) => None,
    };
    Ok(RegisteredTrigger { workflow, definition, failure, after_event_id: row.integer(5)? })
}

/// The triggers that take events of a name, or ends of runs ([`RUN_ENDS`]). Those of paused workflows take nothing.
pub(in crate::store) fn triggers_of(
    connection: &mut dyn Connection,
    event_name: &str,
) -> Result<Vec<RegisteredTrigger>> {
    all(
        connection,
        "SELECT triggers.workflow, triggers.definition, triggers.failed_at, triggers.failed_source, triggers.last_error,
                triggers.after_event_id
         FROM triggers JOIN registrations ON registrations.name = triggers.workflow
         WHERE triggers.event_name = $1 AND registrations.paused_at IS NULL
         ORDER BY triggers.workflow, triggers.name",
        &[event_name.into()],
        read,
    )
}

/// Makes the triggers of a workflow match its definition. A trigger that does not change keeps its row.
pub(in crate::store) fn sync_triggers(
    connection: &mut dyn Connection,
    workflow: &str,
    definitions: &[Trigger],
    now_ms: i64,
) -> Result<()> {
    let stored = all(
        connection,
        "SELECT name, definition FROM triggers WHERE workflow = $1",
        &[workflow.into()],
        |row| Ok((row.text(0)?, row.text(1)?)),
    )?;
    let mut wanted = Vec::with_capacity(definitions.len());
    for trigger in definitions {
        let json = serde_json::to_string(trigger)
            .map_err(|error| Error::internal("register a trigger", error.to_string()))?;
        wanted.push((trigger, json));
    }
    for (name, _definition) in
        stored.iter().filter(|(name, _)| wanted.iter().all(|(trigger, _)| trigger.name != *name))
    {
        connection.execute(
            "DELETE FROM triggers WHERE workflow = $1 AND name = $2",
            &[workflow.into(), name.into()],
        )?;
    }
    for (trigger, json) in &wanted {
        if stored.iter().any(|(name, definition)| trigger.name == *name && json == definition) {
            continue;
        }
        let event_name = match &trigger.source {
            TriggerSource::Event { event, key: _ } => event.as_str(),
            TriggerSource::RunEnd { .. } => RUN_ENDS,
        };
        connection.execute(
            "INSERT INTO triggers (workflow, name, definition, event_name, after_event_id, created_at)
             VALUES ($1, $2, $3, $4, coalesce((SELECT last FROM event_counter WHERE id = 1), 0), $5)
             ON CONFLICT (workflow, name) DO UPDATE
             SET definition = excluded.definition, event_name = excluded.event_name,
                 failed_at = NULL, failed_source = NULL, last_error = NULL",
            &[workflow.into(), (&trigger.name).into(), json.into(), event_name.into(), now_ms.into()],
        )?;
        connection.wake(WakeUps::DUE);
    }
    Ok(())
}
