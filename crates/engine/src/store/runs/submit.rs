//! Submitting a workflow: the definition's version, the run, its jobs and edges, in one transaction.

use crate::status::RunSource;
use crate::store::Runs;
use crate::store::evidence::{Evidence, run_made};
use crate::store::finish::slots::admit;
use crate::transition::Backoff;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value as Json;
use windlass_db::Connection;
use windlass_db::Fate;
use windlass_db::Value;
use windlass_db::error::Error;
use windlass_db::error::Result;
use windlass_db::first;
use windlass_db::one;
use windlass_system::random::Random;
use windlass_system::wake_ups::WakeUps;
use windlass_workflow::Job;
use windlass_workflow::OnInterrupt;
use windlass_workflow::Workflow;
use windlass_workflow::hash_of_stored;
use windlass_workflow::model::OnFull;

/// Rows in one statement.
const CHUNK: usize = 2_000;

/// A run to be made.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// What to run.
    pub workflow: Workflow,
    /// The values of its parameters, bound and complete.
    pub params: Map<String, Json>,
    /// The folder that relative paths start from.
    pub dir: Option<String>,
    /// The same key twice is the same run.
    pub run_key: Option<String>,
    /// The schedule that makes it, when none submits it by hand.
    pub occasion: Option<Occasion>,
}

/// Why a schedule makes a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occasion {
    /// The schedule.
    pub schedule_id: i64,
    /// The nominal time, in milliseconds since the Unix epoch: a schedule has one run for each. `None` for a
    /// run out of turn.
    pub scheduled_for: Option<i64>,
    /// What it comes from.
    pub source: RunSource,
}

/// What a submission came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    /// The run.
    pub run_id: i64,
    /// It was made now; else the key, or the occurrence, named a run that was there.
    pub created: bool,
}

impl Runs<'_> {
    /// Accepts a run. Once this returns, it survives whatever dies.
    ///
    /// # Errors
    /// The database's, or [`Error::Invalid`] with the place when the workflow can't be executed: see
    /// [`Workflow::check`].
    pub fn submit(&self, run: NewRun) -> Result<Submitted> {
        let now_ms = self.store.clock.now_ms();
        let prepared = Prepared::of(&run, &self.store.random)?;
        let evidence = evidence_of(&prepared);
        self.store
            .write("submit a run", evidence, move |connection| submit(connection, &run, &prepared, now_ms))
    }
}

/// What can be made of a workflow before the write lock is taken: of a large one that is most of the
/// work.
pub(in crate::store) struct Prepared {
    /// The run's own.
    pub(in crate::store) token: i64,
    content: Content,
    jobs: Vec<PreparedJob>,
    /// Concurrency keys of jobs that need no others.
    wanted_keys: Vec<String>,
}

/// The texts of a row of `jobs` that are made for it.
struct PreparedJob {
    payload: String,
    retry: String,
    requires: String,
    concurrency_key: Option<String>,
    token: i64,
}

/// A version of a definition.
pub(in crate::store) struct Content {
    hash: String,
    definition: String,
}

impl Content {
    pub(in crate::store) fn of(workflow: &Workflow) -> Content {
        let definition = workflow.to_json();
        Content { hash: hash_of_stored(&definition), definition }
    }
}

impl Prepared {
    pub(in crate::store) fn of(run: &NewRun, random: &Random) -> Result<Prepared> {
        let workflow = &run.workflow;
        // It may have been made by a program, or come from a table that anybody can write to.
        workflow.check().map_err(|error| {
            Error::invalid(format!("submit workflow `{}`", workflow.name), error.to_string())
        })?;
        let mut wanted_keys = Vec::new();
        let mut jobs = Vec::with_capacity(workflow.jobs.len());
        for job in &workflow.jobs {
            let concurrency_key = concurrency_key(run, job)?;
            wanted_keys.extend(concurrency_key.clone().filter(|_key| job.needs.is_empty()));
            jobs.push(PreparedJob {
                payload: payload(workflow, job),
                retry: to_json(&Backoff::from(&job.retry))?,
                requires: to_json(&job.requires)?,
                concurrency_key,
                token: random.token(),
            });
        }
        Ok(Prepared { token: random.token(), content: Content::of(workflow), jobs, wanted_keys })
    }
}

/// Whether a run was made is known by its token.
pub(in crate::store) fn evidence_of(prepared: &Prepared) -> Evidence<Submitted> {
    let token = prepared.token;
    Evidence::rows(move |connection, submitted: &Submitted| {
        if submitted.created { run_made(connection, submitted.run_id, token) } else { Ok(Fate::NotKept) }
    })
}

/// Makes a run inside the caller's transaction.
pub(in crate::store) fn submit(
    connection: &mut dyn Connection,
    run: &NewRun,
    prepared: &Prepared,
    now_ms: i64,
) -> Result<Submitted> {
    if let Some(run_id) = known_run(connection, run)? {
        return Ok(Submitted { run_id, created: false });
    }
    let workflow_id = keep_version(connection, &run.workflow.name, &prepared.content, now_ms)?;
    let Some(run_id) = insert_run(connection, run, prepared.token, workflow_id, now_ms)? else {
        // Where several write at once, another was faster.
        let known = known_run(connection, run)?;
        let run_id =
            known.ok_or_else(|| Error::internal("submit a run", "what it is known by is taken by no run"))?;
        return Ok(Submitted { run_id, created: false });
    };
    let ids = insert_jobs(connection, run_id, &run.workflow, prepared, now_ms)?;
    insert_edges(connection, &run.workflow, &ids)?;
    admit(connection, &prepared.wanted_keys, now_ms)?;
    connection.wake(WakeUps::PENDING | WakeUps::PROGRESS);
    Ok(Submitted { run_id, created: true })
}

/// The run that has the key, or is that of the occurrence, if there is one.
fn known_run(connection: &mut dyn Connection, run: &NewRun) -> Result<Option<i64>> {
    if let Some(key) = &run.run_key {
        let sql = "SELECT id FROM runs WHERE run_key = $1";
        let known = first(connection, sql, &[key.into()], |row| row.integer(0))?;
        if known.is_some() {
            return Ok(known);
        }
    }
    let Some(Occasion { schedule_id, scheduled_for: Some(at_ms), source: _ }) = run.occasion else {
        return Ok(None);
    };
    first(
        connection,
        "SELECT id FROM runs WHERE schedule_id = $1 AND scheduled_for = $2",
        &[schedule_id.into(), at_ms.into()],
        |row| row.integer(0),
    )
}

/// The version of the definition with this content, made if it is new.
pub(in crate::store) fn keep_version(
    connection: &mut dyn Connection,
    name: &str,
    content: &Content,
    now_ms: i64,
) -> Result<i64> {
    connection.execute(
        "INSERT INTO workflows (name, hash, definition, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (name, hash) DO NOTHING",
        &[name.into(), (&content.hash).into(), (&content.definition).into(), now_ms.into()],
    )?;
    one(
        connection,
        "SELECT id FROM workflows WHERE name = $1 AND hash = $2",
        &[name.into(), (&content.hash).into()],
        |row| row.integer(0),
    )
}

/// The id of the run, unless its key was taken or its occurrence has one.
fn insert_run(
    connection: &mut dyn Connection,
    run: &NewRun,
    token: i64,
    workflow_id: i64,
    now_ms: i64,
) -> Result<Option<i64>> {
    let params = to_json(&run.params)?;
    let env = to_json(&run.workflow.env)?;
    let total = run.workflow.jobs.len() as i64;
    let ids = connection.insert_returning_ids(
        "INSERT INTO runs (workflow_id, workflow, params, env, dir, run_key, total_jobs, unfinished_jobs,
                           timeout_ms, created_at, updated_at, schedule_id, scheduled_for, source, token)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8, $9, $9, $10, $11, $12, $13)
         ON CONFLICT DO NOTHING",
        &[
            workflow_id.into(),
            (&run.workflow.name).into(),
            (&params).into(),
            (&env).into(),
            (&run.dir).into(),
            (&run.run_key).into(),
            total.into(),
            run.workflow.timeout_ms.into(),
            now_ms.into(),
            run.occasion.map(|occasion| occasion.schedule_id).into(),
            run.occasion.and_then(|occasion| occasion.scheduled_for).into(),
            run.occasion.map(|occasion| occasion.source.as_str()).into(),
            token.into(),
        ],
    )?;
    Ok(ids.first().copied())
}

fn insert_jobs(
    connection: &mut dyn Connection,
    run_id: i64,
    workflow: &Workflow,
    prepared: &Prepared,
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut ids = Vec::with_capacity(workflow.jobs.len());
    let rows: Vec<[Value<'_>; 19]> =
        workflow.jobs.iter().zip(&prepared.jobs).map(|(job, prepared)| job_row(job, prepared)).collect();
    for rows in rows.chunks(CHUNK) {
        ids.extend(connection.insert_returning_ids(
            "INSERT INTO jobs (run_id, kind, name, queue, priority, payload, max_attempts,
                               max_interruptions, on_interrupt, allow_failure, retry, timeout_ms,
                               blocked_by, status, execute_after, created_at, updated_at, requires,
                               version, concurrency_key, concurrency_limit, on_full, token)
             SELECT $2, kind, name, queue,
                    {priority},
                    payload, max_attempts,
                    max_interruptions, on_interrupt, allow_failure, retry, timeout_ms,
                    blocked_by, status, $3, $3, $3, requires, version, concurrency_key,
                    concurrency_limit, on_full, token
             FROM {rows $1: kind text, name text, queue text, priority integer, payload text, max_attempts integer,
                            max_interruptions integer, on_interrupt text, allow_failure integer,
                            retry text, timeout_ms integer, blocked_by integer, status text,
                            requires text, version integer, concurrency_key text,
                            concurrency_limit integer, on_full text, token integer} AS news",
            &[Value::rows(rows), run_id.into(), now_ms.into()],
        )?);
    }
    Ok(ids)
}

/// The values of a row of `jobs`, in the order in which the statement names the columns.
fn job_row<'a>(job: &'a Job, prepared: &'a PreparedJob) -> [Value<'a>; 19] {
    let PreparedJob { payload, retry, requires, concurrency_key, token } = prepared;
    let status = if !job.needs.is_empty() {
        "BLOCKED"
    } else if concurrency_key.is_some() {
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
        job.action.kind().into(),
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
        (job.needs.len() as i64).into(),
        status.into(),
        requires.into(),
        job.version.into(),
        concurrency_key.into(),
        concurrency.map(|concurrency| concurrency.limit).into(),
        concurrency.map_or("wait", |concurrency| on_full(concurrency.on_full)).into(),
        (*token).into(),
    ]
}

/// The key with the values of the run's parameters.
fn concurrency_key(run: &NewRun, job: &Job) -> Result<Option<String>> {
    let Some(concurrency) = &job.concurrency else { return Ok(None) };
    concurrency.render(&run.params, &run.workflow.name).map(Some).map_err(|error| {
        let operation = format!("submit workflow `{}`", run.workflow.name);
        Error::invalid(operation, format!("`concurrency.key` of job `{}`: {error}", job.name))
    })
}

/// The word of the tables.
pub(in crate::store) fn on_full(on_full: OnFull) -> &'static str {
    match on_full {
        OnFull::Wait => "wait",
        OnFull::Skip => "skip",
        OnFull::CancelOldest => "cancel_oldest",
    }
}

/// What the worker is told to do.
fn payload(workflow: &Workflow, job: &Job) -> String {
    let uses: Vec<&str> = job.uses.iter().map(|index| workflow.jobs[*index].name.as_str()).collect();
    job.action.payload(&uses)
}

fn insert_edges(connection: &mut dyn Connection, workflow: &Workflow, ids: &[i64]) -> Result<()> {
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

fn to_json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::internal("submit a run", error.to_string()))
}
