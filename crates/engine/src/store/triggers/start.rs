//! Starting the runs of triggers. What an event or the end of a run starts is decided and prepared before the write lock is
//! taken; one transaction inserts the runs and notes that the event was dispatched.

use super::{RUN_ENDS, RegisteredTrigger, triggers_of};
use crate::status::{RunSource, RunStatus};
use crate::store::Store;
use crate::store::registrations::{Registration, registered_workflow};
use crate::store::runs::calls::resolve_calls;
use crate::store::runs::prepared::PreparedRun;
use crate::store::runs::submit::{NewRun, Occasion, submit};
use crate::values::instant_text;
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use windlass_db::Connection;
use windlass_db::error::{Error, Result};
use windlass_workflow::Workflow;
use windlass_workflow::trigger::EndStatus;

/// How many runs may start each other along a chain of triggers.
pub const TRIGGER_DEPTH_MAX: i64 = 16;
/// How many jobs the prepared runs may have together, unless one event starts more.
const JOBS_MAX: usize = 10_000;

/// What a trigger may take.
#[derive(Debug, Clone)]
pub(in crate::store) enum TriggerInput {
    /// `depth` is how many runs of triggers stand in the chain that ends with the run whose job has sent it.
    Event {
        id: i64,
        name: String,
        key: String,
        payload: String,
        event_id: Option<String>,
        received_at: i64,
        depth: i64,
    },
    /// `depth` is how many runs of triggers stand in the chain that ends with this run.
    RunEnd { run_id: i64, workflow: String, status: RunStatus, finished_at: i64, depth: i64 },
}

impl TriggerInput {
    /// Its name in the key of a run, so that it starts one run for each trigger.
    pub(in crate::store) fn key(&self) -> String {
        match self {
            TriggerInput::Event { id, .. } => format!("event:{id}"),
            TriggerInput::RunEnd { run_id, finished_at, .. } => format!("run:{run_id}:{finished_at}"),
        }
    }

    fn event_name(&self) -> &str {
        match self {
            TriggerInput::Event { name, .. } => name,
            TriggerInput::RunEnd { .. } => RUN_ENDS,
        }
    }

    /// The place in its chain of a run that it starts.
    fn depth_of_run(&self) -> i64 {
        match self {
            TriggerInput::Event { depth, .. } | TriggerInput::RunEnd { depth, .. } => depth.saturating_add(1),
        }
    }

    fn is_taken_by(&self, trigger: &RegisteredTrigger) -> bool {
        match self {
            TriggerInput::Event { id, name, key, .. } => {
                *id > trigger.after_event_id && trigger.definition.takes_event(name, key)
            }
            TriggerInput::RunEnd { workflow, status, .. } => end_status(*status)
                .is_some_and(|status| trigger.definition.takes_end(&trigger.workflow, workflow, status)),
        }
    }

    /// What the condition and the templates of a trigger read.
    fn values(&self) -> Json {
        let event = match self {
            TriggerInput::Event { name, key, payload, event_id, received_at, id: _, depth: _ } => json!({
                "name": name,
                "key": key,
                "payload": serde_json::from_str::<Json>(payload).unwrap_or_default(),
                "id": event_id,
                "received_at": instant_text(*received_at),
            }),
            TriggerInput::RunEnd { run_id, workflow, status, finished_at, depth: _ } => json!({ "run": {
                "id": run_id,
                "workflow": workflow,
                "status": status.as_str(),
                "finished_at": instant_text(*finished_at),
            }}),
        };
        json!({ "event": event })
    }
}

fn end_status(status: RunStatus) -> Option<EndStatus> {
    match status {
        RunStatus::Successful => Some(EndStatus::Successful),
        RunStatus::Failed => Some(EndStatus::Failed),
        RunStatus::Cancelled => Some(EndStatus::Cancelled),
        RunStatus::Pending | RunStatus::Running => None,
    }
}

/// A run that a trigger starts, or why it starts none.
struct Start {
    trigger: RegisteredTrigger,
    depth: i64,
    run: std::result::Result<(NewRun, PreparedRun), String>,
}

/// A run that a trigger has started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggeredRun {
    /// Its id.
    pub run_id: i64,
    /// The trigger, as `WORKFLOW/NAME`.
    pub trigger: String,
    /// The event or the end of a run: `event:5`, or `run:12:1767225600000`.
    pub started_by: String,
}

/// What dispatching one batch of events or ends did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dispatched {
    /// Whether it did anything. Otherwise nothing is left.
    pub has_dispatched: bool,
    /// The runs that it started.
    pub started: Vec<TriggeredRun>,
}

/// The runs that some inputs start.
#[derive(Default)]
pub(in crate::store) struct PreparedStarts {
    by_input: HashMap<String, Vec<Start>>,
}

impl PreparedStarts {
    /// Whether it was decided what an input starts.
    pub(in crate::store) fn has(&self, key: &str) -> bool {
        self.by_input.contains_key(key)
    }

    /// Decides what inputs start, and prepares it, in their order. At least one is decided; the others are left out once there
    /// is much to insert.
    pub(in crate::store) fn prepare(store: &Store, inputs: &[TriggerInput]) -> Result<PreparedStarts> {
        let mut preparing = Preparing { store, triggers: HashMap::new(), workflows: HashMap::new() };
        let (mut prepared, mut jobs) = (PreparedStarts::default(), 0);
        for input in inputs {
            let starts = preparing.starts_of(input)?;
            jobs += starts
                .iter()
                .filter_map(|start| start.run.as_ref().ok())
                .map(|(run, _)| run.workflow.jobs.len())
                .sum::<usize>();
            if jobs > JOBS_MAX && !prepared.by_input.is_empty() {
                break;
            }
            prepared.by_input.insert(input.key(), starts);
        }
        Ok(prepared)
    }

    /// Inserts the runs that an input starts. A run that exists already is left as it is, so this may be done again.
    pub(in crate::store) fn start(
        &self,
        connection: &mut dyn Connection,
        key: &str,
        now_ms: i64,
    ) -> Result<Vec<TriggeredRun>> {
        let mut started = Vec::new();
        for Start { trigger, depth, run } in self.by_input.get(key).into_iter().flatten() {
            let (workflow, name) = (&trigger.workflow, &trigger.definition.name);
            match run {
                Ok((run, prepared)) => {
                    let submitted = submit(connection, run, prepared, now_ms)?;
                    if submitted.created {
                        insert_triggered(connection, submitted.run_id, name, key, *depth)?;
                        let (trigger, started_by) = (trigger.key(), key.to_owned());
                        started.push(TriggeredRun { run_id: submitted.run_id, trigger, started_by });
                    }
                    if trigger.failure.is_some() {
                        note(connection, (workflow, name), None, now_ms)?;
                    }
                }
                Err(reason) => note(connection, (workflow, name), Some((key, reason)), now_ms)?,
            }
        }
        Ok(started)
    }
}

/// What preparing has read.
struct Preparing<'s> {
    store: &'s Store,
    /// By the name of the event.
    triggers: HashMap<String, Vec<RegisteredTrigger>>,
    workflows: HashMap<String, Option<(Registration, Workflow)>>,
}

impl Preparing<'_> {
    fn starts_of(&mut self, input: &TriggerInput) -> Result<Vec<Start>> {
        let name = input.event_name();
        if !self.triggers.contains_key(name) {
            let found = self.store.read(|connection| triggers_of(connection, name))?;
            self.triggers.insert(name.to_owned(), found);
        }
        let taking: Vec<RegisteredTrigger> =
            self.triggers[name].iter().filter(|trigger| input.is_taken_by(trigger)).cloned().collect();
        let mut starts = Vec::with_capacity(taking.len());
        for trigger in taking {
            let depth = input.depth_of_run();
            let run = match self.run_of(&trigger, input, depth) {
                Ok(None) => continue,
                Ok(Some(run)) => Ok(run),
                Err(Refusal::Because(reason)) => Err(reason),
                Err(Refusal::Database(error)) => return Err(error),
            };
            starts.push(Start { trigger, depth, run });
        }
        Ok(starts)
    }

    /// The run that a trigger starts; `None` if its condition does not hold, or its workflow was removed.
    fn run_of(
        &mut self,
        trigger: &RegisteredTrigger,
        input: &TriggerInput,
        depth: i64,
    ) -> std::result::Result<Option<(NewRun, PreparedRun)>, Refusal> {
        let Some((registration, workflow)) = self.workflow(&trigger.workflow)? else { return Ok(None) };
        let Some(params) = trigger.definition.params_of_run(&workflow.params, &input.values())? else {
            return Ok(None);
        };
        if depth > TRIGGER_DEPTH_MAX {
            return Err(Refusal::Because(format!(
                "{TRIGGER_DEPTH_MAX} runs have started each other; does a workflow start itself again through others?"
            )));
        }
        let run = NewRun {
            workflow,
            params,
            dir: registration.dir,
            run_key: Some(format!("trigger:{}:{}", trigger.key(), input.key())),
            occasion: Some(Occasion { schedule_id: None, scheduled_for: None, source: RunSource::Event }),
        };
        let prepared = PreparedRun::of(&run, &self.store.random)?;
        Ok(Some((run, prepared)))
    }

    fn workflow(&mut self, name: &str) -> Result<Option<(Registration, Workflow)>> {
        if !self.workflows.contains_key(name) {
            let found = self.store.read(|connection| {
                let mut found = registered_workflow(connection, name)?;
                if let Some((_registration, workflow)) = &mut found {
                    resolve_calls(connection, workflow)?;
                }
                Ok(found)
            })?;
            self.workflows.insert(name.to_owned(), found);
        }
        Ok(self.workflows[name].clone())
    }
}

/// Why no run starts.
enum Refusal {
    /// What the trigger or its workflow says can't be done.
    Because(String),
    Database(Error),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Refusal {
        Refusal::Because(reason)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match error {
            Error::Invalid { reason, .. } => Refusal::Because(reason),
            error @ (Error::NotFound { .. }
            | Error::Conflict { .. }
            | Error::Internal { .. }
            | Error::Unavailable { .. }) => Refusal::Database(error),
        }
    }
}

fn insert_triggered(
    connection: &mut dyn Connection,
    run_id: i64,
    trigger: &str,
    input: &str,
    depth: i64,
) -> Result<()> {
    connection.execute(
        "INSERT INTO triggered_runs (run_id, trigger_name, started_by, depth) VALUES ($1, $2, $3, $4)",
        &[run_id.into(), trigger.into(), input.into(), depth.into()],
    )?;
    Ok(())
}

/// Notes why a trigger started no run, or that it started one again.
fn note(
    connection: &mut dyn Connection,
    (workflow, name): (&str, &str),
    failure: Option<(&str, &str)>,
    now_ms: i64,
) -> Result<()> {
    let (source, error) = failure.unzip();
    connection.execute(
        "UPDATE triggers SET failed_at = $3, failed_source = $4, last_error = $5 WHERE workflow = $1 AND name = $2",
        &[
            workflow.into(),
            name.into(),
            failure.map(|_failure| now_ms).into(),
            source.into(),
            error.into(),
        ],
    )?;
    Ok(())
}
