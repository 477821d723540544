//! Firing by hand: starting a run of a schedule now. Also binds the parameters of a schedule's runs.

use crate::store::Schedules;
use serde_json::{Map, Value as Json};
use windlass_workflow::Workflow;
use windlass_workflow::model::Schedule as Definition;
use windlass_workflow::params::{self, Supplied};
use windlass_workflow::schedule::render_params;

use super::find;
use crate::status::RunSource;
use crate::store::registrations::registered_workflow;
use crate::store::runs::calls::resolve_calls;
use crate::store::runs::prepared::PreparedRun;
use crate::store::runs::submit::{NewRun, Occasion, Submitted, run_evidence, submit};
use windlass_db::error::{Error, Result};

impl Schedules<'_> {
    /// Starts a run of a schedule now, regardless of its rule, its pauses and its other runs.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the schedule or its registered workflow does not exist; [`Error::Invalid`] if its
    /// parameters do not fit the workflow; and the database's.
    pub fn fire(&self, schedule_id: i64) -> Result<Submitted> {
        self.fire_with_key(schedule_id, None)
    }

    /// The same with a key for the run: a second call with the key starts nothing.
    ///
    /// # Errors
    /// As of [`Schedules::fire`].
    pub fn fire_with_key(&self, schedule_id: i64, run_key: Option<String>) -> Result<Submitted> {
        let now_ms = self.store.clock.now_ms();
        let (schedule, registered) = self.store.read(|connection| {
            let schedule = find(connection, schedule_id)?
                .filter(|schedule| schedule.removed_at.is_none())
                .ok_or_else(|| Error::not_found(format!("schedule {schedule_id}")))?;
            let mut registered = registered_workflow(connection, &schedule.workflow)?;
            if let Some((_registration, workflow)) = &mut registered {
                resolve_calls(connection, workflow)?;
            }
            Ok((schedule, registered))
        })?;
        let (registration, workflow) = registered
            .ok_or_else(|| Error::not_found(format!("registered workflow `{}`", schedule.workflow)))?;
        let params = bind(&workflow, &schedule.definition, now_ms)
            .map_err(|reason| Error::invalid(format!("fire schedule {}", schedule.key()), reason))?;
        let occasion =
            Occasion { schedule_id: Some(schedule_id), scheduled_for: None, source: RunSource::Manual };
        let dir = registration.dir;
        let run = NewRun { workflow, params, dir, run_key, occasion: Some(occasion) };
        let prepared = PreparedRun::of(&run, &self.store.random)?.started_by(self.store.change.as_deref());
        let evidence = run_evidence(&prepared);
        self.store
            .write("fire a schedule", evidence, move |connection| submit(connection, &run, &prepared, now_ms))
    }
}

/// Returns the parameters of the run for a nominal time, or why they can't be used.
pub(super) fn bind(
    workflow: &Workflow,
    definition: &Definition,
    scheduled_for: i64,
) -> std::result::Result<Map<String, Json>, String> {
    let rendered = render_params(definition, scheduled_for).map_err(|error| error.to_string())?;
    let supplied = rendered.into_iter().map(|(name, value)| match value {
        // A template always gives text, whatever the type of the parameter.
        Json::String(text) => (name, Supplied::Text(text)),
        value @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            (name, Supplied::Json(value))
        }
    });
    params::bind(&workflow.params, supplied.collect()).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        texts.join("; ")
    })
}
