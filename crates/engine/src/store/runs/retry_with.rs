//! Retrying a finished run with another definition: what changed and all after it is executed again, and the rest as it is
//! written now. One transaction replaces the definition, writes the rows anew and resets jobs.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};
use windlass_workflow::Workflow;
use windlass_workflow::params::{self, Supplied};

use super::calls::{has_unresolved_calls, resolve_calls};
use super::definitions::{
    DefinitionFile, DefinitionVerb, NewDefinition, insert_definition, insert_first_definition,
};
use super::next_rows::{JobWriter, delete_jobs, write_run};
use super::prepared::PreparedRun;
use super::retry::{
    RetrySelection, Root, broken_jobs, continue_run, lock_finished, named_job, refuse_child, roots_of,
};
use super::retry_items::with_descendants;
use super::submit::{NewRun, store_definition};
use crate::decide::next_definition::{DefinitionChanges, JobRow, continuation};
use crate::decide::retry_preview::{EndedRow, PreviewedJob, preview};
use crate::status::JobStatus;
use crate::store::Runs;
use crate::store::evidence::Evidence;
use crate::store::registrations::versions::definition;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, all, first, one};

/// The definition with which a run goes on.
#[derive(Debug, Clone)]
pub struct NextDefinition {
    /// The definition. It has the name of the run's workflow.
    pub workflow: Workflow,
    /// The file from which it came, if it came from one.
    pub file: Option<DefinitionFile>,
}

/// What a retry with another definition did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continued {
    /// How many jobs were reset.
    pub jobs: i64,
    /// How the definitions differ. If they do not, the run keeps the one that it has.
    pub changes: DefinitionChanges,
    /// The number of the definition that the run has now.
    pub definition: i64,
}

/// The definition that a run has.
struct PinnedDefinition {
    number: i64,
    workflow_id: i64,
    workflow: Workflow,
    params: Map<String, Json>,
    dir: Option<String>,
}

impl Runs<'_> {
    /// How a definition differs from the one that a run has. Registered workflows that it calls become a part of it.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's, or [`Error::Internal`] if another program wrote an invalid definition.
    pub fn changes(&self, run_id: i64, workflow: &mut Workflow) -> Result<DefinitionChanges> {
        self.store.read(|connection| {
            if has_unresolved_calls(workflow) {
                resolve_calls(connection, workflow)?;
            }
            let pinned = pinned_definition(connection, run_id)?;
            Ok(DefinitionChanges::between(&pinned.workflow, workflow))
        })
    }

    /// Retries a finished run with another definition. Jobs that have not succeeded are executed again, and so are jobs that
    /// do something else now, with all that depends on them. The definition becomes the last one of the run. If nothing
    /// differs, this is [`Runs::retry`].
    ///
    /// # Errors
    /// Those of [`Runs::retry`]; [`Error::Invalid`] if the definition is invalid, or if the run has no value for one of its
    /// parameters; and [`Error::Conflict`] if it is a definition of another workflow, or if a job is missing in it that has
    /// succeeded or started runs.
    pub fn retry_with(
        &self,
        run_id: i64,
        selection: RetrySelection,
        next: NextDefinition,
    ) -> Result<Continued> {
        let NextDefinition { mut workflow, file } = next;
        let operation = format!("retry run {run_id}");
        let pinned = self.store.read(|connection| {
            if has_unresolved_calls(&workflow) {
                resolve_calls(connection, &mut workflow)?;
            }
            pinned_definition(connection, run_id)
        })?;
        if workflow.name != pinned.workflow.name {
            let reason = format!(
                "the new definition is one of workflow `{}`, and the run is one of `{}`",
                workflow.name, pinned.workflow.name
            );
            return Err(Error::conflict(operation, reason));
        }
        let changes = DefinitionChanges::between(&pinned.workflow, &workflow);
        if changes.is_empty() {
            let jobs = self.retry(run_id, selection)?;
            return Ok(Continued { jobs, changes, definition: pinned.number });
        }
        self.store.check_files(&operation, &workflow)?;
        let params = bind_again(&workflow, &pinned, &operation)?;
        let dir = pinned.dir.clone();
        let run = NewRun { workflow, params, dir, run_key: None, occasion: None };
        let prepared = PreparedRun::of(&run, &self.store.random)?;
        let now_ms = self.store.clock.now_ms();
        let (found, number) = (changes.clone(), pinned.number + 1);
        let next = PreparedRetry { run_id, selection, run, prepared, changes, pinned, file };
        let jobs =
            self.store.write("retry a run with another definition", Evidence::Token, move |connection| {
                retry_with(connection, &next, now_ms)
            })?;
        Ok(Continued { jobs, changes: found, definition: number })
    }
}

/// What a retry would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPreview {
    /// How the next definition differs from the one that the run has.
    pub changes: DefinitionChanges,
    /// The jobs that would be executed again.
    pub jobs: Vec<PreviewedJob>,
}

impl Runs<'_> {
    /// What [`Runs::retry`], or [`Runs::retry_with`] with another definition, would do. Writes nothing.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's; [`Error::Conflict`] if the definition does not fit the run.
    pub fn preview_retry(
        &self,
        run_id: i64,
        selection: &RetrySelection,
        next: Option<&Workflow>,
    ) -> Result<RetryPreview> {
        let conflict = |reason: String| Error::conflict(format!("retry run {run_id}"), reason);
        self.store.read(|connection| {
            let pinned = pinned_definition(connection, run_id)?.workflow;
            let mut after = next.cloned().unwrap_or_else(|| pinned.clone());
            if has_unresolved_calls(&after) {
                resolve_calls(connection, &mut after)?;
            }
            let changes = DefinitionChanges::between(&pinned, &after);
            continuation(&changes, &after, &job_rows(connection, run_id)?).map_err(conflict)?;
            let named = match selection {
                RetrySelection::Failed => None,
                RetrySelection::From(name) => Some(name.as_str()),
            };
            let jobs = preview(&after, &changes, &ended_rows(connection, run_id)?, named);
            Ok(RetryPreview { changes, jobs })
        })
    }
}

fn ended_rows(connection: &mut dyn Connection, run_id: i64) -> Result<Vec<EndedRow>> {
    all(
        connection,
        "SELECT jobs.name, jobs.status, jobs.allow_failure, groups.name FROM jobs
         LEFT JOIN jobs AS groups ON {by groups.id = jobs.group_id}
         WHERE jobs.run_id = $1 ORDER BY jobs.id",
        &[run_id.into()],
        |row| {
            Ok(EndedRow {
                name: row.lossy_text(0)?.unwrap_or_default(),
                status: row.parsed(1, JobStatus::parse)?,
                allow_failure: row.integer(2)? != 0,
                group: row.lossy_text(3)?,
            })
        },
    )
}

/// What can be computed before the write lock is taken.
struct PreparedRetry {
    run_id: i64,
    selection: RetrySelection,
    run: NewRun,
    prepared: PreparedRun,
    changes: DefinitionChanges,
    pinned: PinnedDefinition,
    file: Option<DefinitionFile>,
}

fn pinned_definition(connection: &mut dyn Connection, run_id: i64) -> Result<PinnedDefinition> {
    let found = first(
        connection,
        "SELECT definition, coalesce(workflow_id, 0), params, dir FROM runs WHERE id = $1",
        &[run_id.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?, row.text(2)?, row.optional_text(3)?)),
    )?;
    let (number, workflow_id, params, dir) =
        found.ok_or_else(|| Error::not_found(format!("run {run_id}")))?;
    let workflow = definition(connection, workflow_id)?;
    let params = serde_json::from_str(&params).unwrap_or_default();
    Ok(PinnedDefinition { number, workflow_id, workflow, params, dir })
}

/// The values of the run for the parameters of the next definition. A parameter that is gone loses its value, and a new one
/// has its default.
fn bind_again(workflow: &Workflow, pinned: &PinnedDefinition, operation: &str) -> Result<Map<String, Json>> {
    let is_declared = |name: &str| workflow.params.iter().any(|param| param.name == name);
    // A parameter without a value is null in the run.
    let kept = pinned.params.iter().filter(|(name, value)| !value.is_null() && is_declared(name));
    let supplied = kept.map(|(name, value)| (name.clone(), Supplied::Json(value.clone()))).collect();
    params::bind(&workflow.params, supplied).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Error::invalid(operation, format!("its params do not fit the new definition: {}", errors.join("; ")))
    })
}

fn retry_with(connection: &mut dyn Connection, next: &PreparedRetry, now_ms: i64) -> Result<i64> {
    let PreparedRetry { run_id, selection, run, prepared, changes, pinned, file } = next;
    let (run_id, conflict) =
        (*run_id, |reason: String| Error::conflict(format!("retry run {run_id}"), reason));
    refuse_child(connection, run_id)?;
    lock_finished(connection, run_id, now_ms)?;
    let is_as_read = one(
        connection,
        "SELECT count(*) FROM runs WHERE id = $1 AND workflow_id = $2 AND definition = $3",
        &[run_id.into(), pinned.workflow_id.into(), pinned.number.into()],
        |row| row.integer(0),
    )?;
    if is_as_read == 0 {
        return Err(conflict("its definition was replaced meanwhile; try again".to_owned()));
    }
    // By the rows as they ended: a job that failed is executed again, even if it may fail now.
    let mut broken = broken_roots(connection, run_id, selection)?;
    let continuation =
        continuation(changes, &run.workflow, &job_rows(connection, run_id)?).map_err(conflict)?;

    insert_first_definition(connection, run_id)?;
    let workflow_id = store_definition(connection, &run.workflow.name, &prepared.definition, now_ms)?;
    let (number, verb) = (pinned.number + 1, DefinitionVerb::Retry);
    let file = file.as_ref();
    insert_definition(
        connection,
        &NewDefinition { run_id, number, workflow_id, verb, pinned_at: now_ms, file },
    )?;
    delete_jobs(connection, &continuation.deleted)?;
    let writer = JobWriter { run_id, run, prepared, now_ms };
    let inserted = writer.write(connection, &continuation)?;
    write_run(connection, &writer, workflow_id)?;

    // By the rows as they are now: so is a job that may not fail any more.
    broken.extend(broken_roots(connection, run_id, selection)?);
    let anew: Vec<i64> = continuation.changed.iter().chain(&inserted).copied().collect();
    let named = match selection {
        RetrySelection::Failed => None,
        RetrySelection::From(name) => Some(named_job(connection, run_id, name)?),
    };
    let roots = all_roots(connection, broken, named, &anew)?;
    // Without the jobs that failed, the run may end at once.
    if roots.is_empty() && continuation.deleted.is_empty() {
        return Err(conflict("none of its jobs failed, was cancelled or differs".to_owned()));
    }
    let calls = calls_in_place(connection, selection, &roots, &anew)?;
    continue_run(connection, run_id, &roots, &calls, now_ms)
}

fn broken_roots(
    connection: &mut dyn Connection,
    run_id: i64,
    selection: &RetrySelection,
) -> Result<Vec<Root>> {
    match selection {
        RetrySelection::Failed => broken_jobs(connection, run_id),
        RetrySelection::From(_) => Ok(Vec::new()),
    }
}

/// The jobs of a run that are no items.
fn job_rows(connection: &mut dyn Connection, run_id: i64) -> Result<Vec<JobRow>> {
    let callers: HashSet<i64> = all(
        connection,
        "SELECT DISTINCT coalesce(callers.group_id, callers.id) FROM runs
         JOIN jobs AS callers ON {by callers.id = runs.parent_job_id}
         WHERE runs.root_run_id IS NOT NULL AND runs.root_run_id = $1",
        &[run_id.into()],
        |row| row.integer(0),
    )?
    .into_iter()
    .collect();
    all(
        connection,
        "SELECT id, name, status, phase FROM jobs WHERE run_id = $1 AND {guard group_id IS NULL} ORDER BY id",
        &[run_id.into()],
        |row| {
            let id = row.integer(0)?;
            Ok(JobRow {
                id,
                name: row.lossy_text(1)?.unwrap_or_default(),
                status: row.parsed(2, JobStatus::parse)?,
                is_handler: row.integer(3)? > 0,
                has_started_runs: callers.contains(&id),
            })
        },
    )
}

/// The jobs that are reset with all that depends on them. Items of a group that is decided anew are not among them.
fn all_roots(
    connection: &mut dyn Connection,
    broken: Vec<Root>,
    named: Option<Root>,
    anew: &[i64],
) -> Result<Vec<Root>> {
    let ids: Vec<i64> = broken.iter().chain(&named).map(|root| root.id).chain(anew.iter().copied()).collect();
    let is_of_old_group = |root: &Root| root.group_id.is_some_and(|group_id| anew.contains(&group_id));
    Ok(roots_of(connection, &ids)?.into_iter().filter(|root| !is_of_old_group(root)).collect())
}

/// The calls that failed and go on with the runs that they have started: nothing before them is executed again.
fn calls_in_place(
    connection: &mut dyn Connection,
    selection: &RetrySelection,
    roots: &[Root],
    anew: &[i64],
) -> Result<Vec<i64>> {
    let calls: Vec<&Root> = match selection {
        RetrySelection::Failed => roots.iter().filter(|root| root.phase == 0 && root.is_call).collect(),
        RetrySelection::From(_) => Vec::new(),
    };
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let again: HashSet<i64> = with_descendants(connection, anew, &[])?.into_iter().collect();
    let is_anew = |root: &Root| {
        again.contains(&root.id) || root.group_id.is_some_and(|group_id| again.contains(&group_id))
    };
    Ok(calls.into_iter().filter(|root| !is_anew(root)).map(|root| root.id).collect())
}
