//! Submitting a run: its definition, the run, its jobs and its dependencies are inserted in one transaction.

use super::definitions::{DefinitionFile, DefinitionVerb, NewDefinition, insert_definition};
use super::prepared::{PreparedJob, PreparedRun, RunConcurrency, StoredDefinition, to_json};
use super::workspaces;
use crate::decide::for_each::GROUP_KIND;
use crate::join_rule::JoinRule;
use crate::status::{RunSource, RunStatus};
use crate::store::Runs;
use crate::store::evidence::{Evidence, run_was_inserted};
use crate::store::finish::slots::admit;
use crate::store::runs::calls::{has_unresolved_calls, resolve_calls};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::Value as Json;
use windlass_db::error::{Error, Result};
use windlass_db::{CommitOutcome, Connection, Value, first, one};
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::model::{RunHandler, When};
use windlass_workflow::{Job, OnInterrupt, Workflow};

/// Rows in one statement.
const CHUNK: usize = 2_000;

/// A run to submit.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What to run.
    pub workflow: Workflow,
    /// The values of its parameters, bound and complete.
    pub params: Map<String, Json>,
    /// The folder against which its jobs resolve relative paths.
    pub dir: Option<String>,
    /// Submitting the same key again returns the run that exists.
    pub run_key: Option<String>,
    /// The schedule or the trigger that starts it, unless a person submits it.
    pub occasion: Option<Occasion>,
}

/// What starts a run, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion {
    /// The schedule; `None` if a trigger starts the run.
    pub schedule_id: Option<i64>,
    /// The nominal time, in milliseconds since the Unix epoch. A schedule has one run for each. `None` for a run that
    /// was triggered, or that a trigger starts.
    pub scheduled_for: Option<i64>,
    /// Why it is started.
    pub source: RunSource,
}

/// What a submission did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The run.
    pub run_id: i64,
    /// Whether the run was created now. Otherwise a run with the same key, or for the same occurrence, existed
    /// already.
    pub created: bool,
}

impl Runs<'_> {
    /// Submits a run. Once this returns, the run survives any crash.
    ///
    /// # Errors
    /// Returns the database's error, or [`Error::Invalid`] with the place of the error if the workflow is invalid: see
    /// [`Workflow::check`].
    pub fn submit(&self, run: NewRun) -> Result<Submitted> {
        self.submit_from(run, None)
    }

    /// Submits a run, and stores from which file its definition came, and what a person called.
    ///
    /// # Errors
    /// As of [`Runs::submit`].
    pub fn submit_from(
        &self,
        run: NewRun,
        file: Option<(DefinitionVerb, DefinitionFile)>,
    ) -> Result<Submitted> {
        let now_ms = self.store.clock.now_ms();
        let mut run = run;
        if has_unresolved_calls(&run.workflow) {
            self.store.read(|connection| resolve_calls(connection, &mut run.workflow))?;
        }
        self.store.check_files(&format!("submit workflow `{}`", run.workflow.name), &run.workflow)?;
        let prepared = PreparedRun::of(&run, &self.store.random)?.started_by(self.store.change.as_deref());
        let evidence = run_evidence(&prepared);
        self.store.write("submit a run", evidence, move |connection| {
            let submitted = submit(connection, &run, &prepared, now_ms)?;
            if let Some((verb, file)) = file.as_ref().filter(|_| submitted.created) {
                insert_definition_of(connection, submitted.run_id, *verb, file, now_ms)?;
            }
            Ok(submitted)
        })
    }
}

/// Stores from which file the first definition of a run came.
fn insert_definition_of(
    connection: &mut dyn Connection,
    run_id: i64,
    verb: DefinitionVerb,
    file: &DefinitionFile,
    now_ms: i64,
) -> Result<()> {
    let sql = "SELECT workflow_id FROM runs WHERE id = $1";
    let workflow_id = one(connection, sql, &[run_id.into()], |row| row.integer(0))?;
    let (number, pinned_at, file) = (1, now_ms, Some(file));
    insert_definition(connection, &NewDefinition { run_id, number, workflow_id, verb, pinned_at, file })
}

/// The token in the run's row proves that the run was inserted.
pub(in crate::store) fn run_evidence(prepared: &PreparedRun) -> Evidence<Submitted> {
    let token = prepared.token;
    Evidence::rows(move |connection, submitted: &Submitted| {
        if submitted.created {
            run_was_inserted(connection, submitted.run_id, token)
        } else {
            Ok(CommitOutcome::NotKept)
        }
    })
}

/// Inserts a run in the caller's transaction.
pub(in crate::store) fn submit(
    connection: &mut dyn Connection,
    run: &NewRun,
    prepared: &PreparedRun,
    now_ms: i64,
) -> Result<Submitted> {
    if let Some(run_id) = known_run(connection, run)? {
        return Ok(Submitted { run_id, created: false });
    }
    if let Some(run_id) = insert(connection, run, prepared, None, now_ms)? {
        return Ok(Submitted { run_id, created: true });
    }
    // Another transaction was faster.
    let known = known_run(connection, run)?;
    let run_id =
        known.ok_or_else(|| Error::internal("submit a run", "the run with the same key was not found"))?;
    Ok(Submitted { run_id, created: false })
}

/// The job that starts a run.
pub(in crate::store) struct ParentJob {
    pub(in crate::store) job_id: i64,
    pub(in crate::store) attempt: i64,
    /// The run at the top of all calls.
    pub(in crate::store) root_run_id: i64,
    /// How long the run may take at most, in milliseconds.
    pub(in crate::store) timeout_ms: Option<i64>,
}

/// Inserts a run with its jobs. Returns `None` if there is one with the same key, for the same occurrence, or for the same
/// attempt of its parent job.
pub(in crate::store) fn insert(
    connection: &mut dyn Connection,
    run: &NewRun,
    prepared: &PreparedRun,
    parent: Option<&ParentJob>,
    now_ms: i64,
) -> Result<Option<i64>> {
    let workflow_id = store_definition(connection, &run.workflow.name, &prepared.definition, now_ms)?;
    let concurrency = match &prepared.concurrency {
        Some(own) if !is_below_holder(connection, parent, &own.key)? => Some(own),
        Some(_) | None => None,
    };
    let Some(run_id) = insert_run(connection, run, prepared, parent, (workflow_id, concurrency), now_ms)?
    else {
        return Ok(None);
    };
    if parent.is_none() {
        insert_tags(connection, run_id, &run.workflow.tags)?;
    }
    let start = if concurrency.is_some() { RunStart::WithSlot } else { RunStart::AtOnce };
    let ids = insert_jobs(connection, run_id, parent, &run.workflow, (prepared, start), now_ms)?;
    insert_edges(connection, &run.workflow, &ids)?;
    workspaces::insert(connection, run_id, run.workflow.workspace)?;
    if start == RunStart::AtOnce {
        admit(connection, &prepared.keys_to_admit, now_ms)?;
    }
    let is_decided = start == RunStart::WithSlot || prepared.jobs.iter().any(|job| job.control.is_some());
    let decisions = if is_decided { WakeUps::DUE } else { WakeUps::NONE };
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS | decisions);
    Ok(Some(run_id))
}

/// When the jobs of a new run may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunStart {
    /// At once, those that need no other.
    AtOnce,
    /// When the scheduler gives the run a slot of its concurrency key. Until then all are BLOCKED.
    WithSlot,
}

/// Whether a run above the new one has the same key. Then the new run needs no slot of its own, because the run above could
/// never end.
fn is_below_holder(connection: &mut dyn Connection, parent: Option<&ParentJob>, key: &str) -> Result<bool> {
    let Some(parent) = parent else { return Ok(false) };
    let holders = one(
        connection,
        "WITH RECURSIVE above (run_id) AS (
             SELECT run_id FROM jobs WHERE id = $1
             UNION ALL
             SELECT jobs.run_id FROM above
             JOIN runs ON {by runs.id = above.run_id}
             JOIN jobs ON {by jobs.id = runs.parent_job_id}
         )
         SELECT count(*) FROM above JOIN runs ON {by runs.id = above.run_id} WHERE {guard runs.concurrency_key = $2}",
        &[parent.job_id.into(), key.into()],
        |row| row.integer(0),
    )?;
    Ok(holders > 0)
}

/// Finds the run with the same key, or for the same occurrence.
fn known_run(connection: &mut dyn Connection, run: &NewRun) -> Result<Option<i64>> {
    if let Some(key) = &run.run_key {
        let sql = "SELECT id FROM runs WHERE run_key = $1";
        let known = first(connection, sql, &[key.into()], |row| row.integer(0))?;
        if known.is_some() {
            return Ok(known);
        }
    }
    let Some(Occasion { schedule_id: Some(schedule_id), scheduled_for: Some(at_ms), source: _ }) =
        run.occasion
    else {
        return Ok(None);
    };
    first(
        connection,
        "SELECT id FROM runs WHERE schedule_id = $1 AND scheduled_for = $2",
        &[schedule_id.into(), at_ms.into()],
        |row| row.integer(0),
    )
}

/// Inserts the definition unless the same content is stored already. Returns its id.
pub(in crate::store) fn store_definition(
    connection: &mut dyn Connection,
    name: &str,
    definition: &StoredDefinition,
    now_ms: i64,
) -> Result<i64> {
    connection.execute(
        "INSERT INTO workflows (name, hash, definition, created_at, secret_variables, tags)
         VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (name, hash) DO NOTHING",
        &[
            name.into(),
            (&definition.hash).into(),
            (&definition.json).into(),
            now_ms.into(),
            (&definition.secret_variables).into(),
            (&definition.tags).into(),
        ],
    )?;
    one(
        connection,
        "SELECT id FROM workflows WHERE name = $1 AND hash = $2",
        &[name.into(), (&definition.hash).into()],
        |row| row.integer(0),
    )
}

/// Inserts the run. Returns `None` if its key or its occurrence has a run already.
fn insert_run(
    connection: &mut dyn Connection,
    run: &NewRun,
    prepared: &PreparedRun,
    parent: Option<&ParentJob>,
    (workflow_id, concurrency): (i64, Option<&RunConcurrency>),
    now_ms: i64,
) -> Result<Option<i64>> {
    let params = to_json(&run.params)?;
    let env = to_json(&run.workflow.env)?;
    let total = run.workflow.jobs.len() as i64;
    let handlers = run.workflow.jobs.iter().filter(|job| job.handler.is_some()).count() as i64;
    let timeout_of_parent = parent.and_then(|parent| parent.timeout_ms);
    let ids = connection.insert_returning_ids(
        "INSERT INTO runs (workflow_id, workflow, params, env, dir, run_key, total_jobs, unfinished_jobs,
                           timeout_ms, created_at, updated_at, schedule_id, scheduled_for, source, token,
                           has_handlers, parent_job_id, parent_attempt, root_run_id, call_open,
                           concurrency_key, concurrency_limit, on_full, waits_for, started_by, traceparent,
                           first_event_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $14, $8, $9, $9, $10, $11, $12, $13, $15, $16, $17, $18, $19,
                 $20, $21, $22, $23, $24, $25,
                 coalesce((SELECT root.first_event_id FROM runs AS root WHERE root.id = $18),
                          (SELECT last FROM event_counter WHERE id = 1), 0))
         ON CONFLICT DO NOTHING",
        &[
            workflow_id.into(),
            (&run.workflow.name).into(),
            (&params).into(),
            (&env).into(),
            (&run.dir).into(),
            (&run.run_key).into(),
            total.into(),
            run.workflow.timeout_ms.into_iter().chain(timeout_of_parent).min().into(),
            now_ms.into(),
            run.occasion.and_then(|occasion| occasion.schedule_id).into(),
            run.occasion.and_then(|occasion| occasion.scheduled_for).into(),
            run.occasion.map(|occasion| occasion.source.as_str()).into(),
            prepared.token.into(),
            (total - handlers).into(),
            i64::from(handlers > 0).into(),
            parent.map(|parent| parent.job_id).into(),
            parent.map(|parent| parent.attempt).into(),
            parent.map(|parent| parent.root_run_id).into(),
            i64::from(parent.is_some()).into(),
            concurrency.map(|concurrency| concurrency.key.as_str()).into(),
            concurrency.map(|concurrency| concurrency.limit).into(),
            concurrency.map(|concurrency| concurrency.on_full).into(),
            concurrency.map(|_waits| "slot").into(),
            (&prepared.started_by).into(),
            (&prepared.traceparent).into(),
        ],
    )?;
    Ok(ids.first().copied())
}

/// Inserts the tags of a run, for lists of the runs with a tag.
pub(super) fn insert_tags(connection: &mut dyn Connection, run_id: i64, tags: &[String]) -> Result<()> {
    if tags.is_empty() {
        return Ok(());
    }
    connection.execute(
        "INSERT INTO run_tags (tag, run_id) SELECT value, $2 FROM {texts $1} AS tags",
        &[(&to_json(&tags)?).into(), run_id.into()],
    )?;
    Ok(())
}

fn insert_jobs(
    connection: &mut dyn Connection,
    run_id: i64,
    parent: Option<&ParentJob>,
    workflow: &Workflow,
    (prepared, start): (&PreparedRun, RunStart),
    now_ms: i64,
) -> Result<Vec<i64>> {
    let root_run_id = parent.map(|parent| parent.root_run_id);
    let jobs = workflow.jobs.iter().zip(&prepared.jobs);
    let rows: Vec<[Value<'_>; 23]> = jobs.map(|(job, prepared)| job_row(job, prepared, start)).collect();
    insert_job_rows(connection, run_id, root_run_id, &rows, now_ms)
}

/// Inserts jobs of a run. Returns their ids in the same order.
pub(super) fn insert_job_rows(
    connection: &mut dyn Connection,
    run_id: i64,
    root_run_id: Option<i64>,
    rows: &[[Value<'_>; 23]],
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(rows.len());
    for rows in rows.chunks(CHUNK) {
        ids.extend(connection.insert_returning_ids(
            "INSERT INTO jobs (run_id, kind, name, queue, priority, payload, max_attempts,
                               max_interruptions, on_interrupt, allow_failure, retry, timeout_ms,
                               blocked_by, status, execute_after, created_at, updated_at, requires,
                               code_version, concurrency_key, concurrency_limit, on_full, token, join_rule, control, phase, handles,
                               waits_for, root_run_id)
             SELECT $2, kind, name, queue,
                    {priority},
                    payload, max_attempts,
                    max_interruptions, on_interrupt, allow_failure, retry, timeout_ms,
                    blocked_by, status, $3, $3, $3, requires, code_version, concurrency_key,
                    concurrency_limit, on_full, token, join_rule, control, phase, handles,
                    CASE WHEN status = 'WAITING'
                         THEN CASE WHEN control IS NULL THEN 'slot' ELSE 'decision' END END,
                    CAST($4 AS {integer})
             FROM {rows $1: kind text, name text, queue text, priority integer, payload text, max_attempts integer,
                            max_interruptions integer, on_interrupt text, allow_failure integer,
                            retry text, timeout_ms integer, blocked_by integer, status text,
                            requires text, code_version integer, concurrency_key text,
                            concurrency_limit integer, on_full text, token integer, join_rule text,
                            control text, phase integer, handles text} AS news",
            &[Value::rows(rows), run_id.into(), now_ms.into(), root_run_id.into()],
        )?);
    }
    Ok(ids)
}

/// The values for a row of `jobs`, in the order of the columns in the statement.
pub(super) fn job_row<'a>(job: &'a Job, prepared: &'a PreparedJob, start: RunStart) -> [Value<'a>; 23] {
    let PreparedJob { payload, retry, requires, concurrency_key, control, token } = prepared;
    let phase = job.handler.map_or(0, RunHandler::phase);
    // A handler also waits for its phase.
    let blocked_by = job.needs.len() as i64 + i64::from(phase > 0);
    let status = if blocked_by > 0 || start == RunStart::WithSlot {
        "BLOCKED"
    } else if control.is_some() || concurrency_key.is_some() {
        "WAITING"
    } else {
        "PENDING"
    };
    let on_interrupt = match job.on_interrupt {
        OnInterrupt::Rerun => "rerun",
        OnInterrupt::Fail => "fail",
    };
    let concurrency = job.concurrency.as_ref();
    [
        if job.for_each.is_some() { GROUP_KIND } else { job.action.kind() }.into(),
        (&job.name).into(),
        (&job.queue).into(),
        job.priority.into(),
        payload.into(),
        job.retry.max_attempts.into(),
        job.max_interruptions.into(),
        on_interrupt.into(),
        i64::from(job.allow_failure).into(),
        retry.into(),
        job.timeout_ms.into(),
        blocked_by.into(),
        status.into(),
        requires.into(),
        job.code_version.into(),
        concurrency_key.into(),
        concurrency.map(|concurrency| concurrency.limit).into(),
        concurrency.map_or("wait", |concurrency| concurrency.on_full.as_str()).into(),
        (*token).into(),
        join_rule(job.when).map(JoinRule::as_str).into(),
        control.into(),
        phase.into(),
        job.handler.and_then(handles).map(RunStatus::as_str).into(),
    ]
}

/// The rule about the parents of a job; `None` for the default.
fn join_rule(when: When) -> Option<JoinRule> {
    match when {
        When::AllSuccessful => None,
        When::NoneFailed => Some(JoinRule::NoneFailed),
        When::AnySuccessful => Some(JoinRule::AnySuccessful),
        When::AnyFailed => Some(JoinRule::AnyFailed),
        When::AllFinished => Some(JoinRule::AllFinished),
    }
}

/// The outcome after which a handler runs; `None` for every outcome.
fn handles(handler: RunHandler) -> Option<RunStatus> {
    match handler {
        RunHandler::OnSuccess => Some(RunStatus::Successful),
        RunHandler::OnFailure => Some(RunStatus::Failed),
        RunHandler::OnCancel => Some(RunStatus::Cancelled),
        RunHandler::Finally => None,
    }
}

pub(super) fn insert_edges(connection: &mut dyn Connection, workflow: &Workflow, ids: &[i64]) -> Result<()> {
    let edges: Vec<[Value<'_>; 2]> = workflow
        .jobs
        .iter()
        .zip(ids)
        .flat_map(|(job, child_id)| job.needs.iter().map(|parent| [ids[*parent].into(), (*child_id).into()]))
        .collect();
    for chunk in edges.chunks(CHUNK) {
        connection.execute(
            "INSERT INTO job_dependencies (parent_id, child_id)
             SELECT parent_id, child_id FROM {rows $1: parent_id integer, child_id integer} AS news",
            &[Value::rows(chunk)],
        )?;
    }
    Ok(())
}
