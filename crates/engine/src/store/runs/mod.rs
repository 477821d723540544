//! Reading runs.

use std::collections::BTreeMap;

use crate::status::{JobStatus, RunSource, RunStatus, StopReason, WaitsFor};
use crate::store::registrations::versions::definition;
use crate::store::round_trip::{PlainQuery, rows_of_each};
use crate::store::{Job, Runs};
use crate::trace::{RowKey, RunTrace, TraceParent};
use crate::values::RunEnd;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all, first, one};
use windlass_workflow::Workflow;

/// The columns of `runs` that [`read_run`] reads, in its order.
pub(crate) const RUN_COLUMNS: Fragment = Fragment {
    name: "run_columns",
    sql: "id, workflow, status, stop_reason, params, dir, run_key, total_jobs,
                    -- The counter of a run with handlers counts its present phase.
                    CASE WHEN has_handlers = 0 THEN unfinished_jobs
                         ELSE (SELECT count(*) FROM jobs WHERE jobs.run_id = runs.id AND jobs.finished_at IS NULL) END,
                    failed_jobs, deadline_at, created_at, started_at, finished_at, schedule_id,
                    scheduled_for, source, outcome, parent_job_id, root_run_id,
                    (SELECT tags FROM workflows WHERE workflows.id = runs.workflow_id), ran_before_ms,
                    concurrency_key, concurrency_limit, CASE WHEN waits_for IS NULL THEN 0 ELSE 1 END,
                    started_by",
};

pub(in crate::store) mod calls;
mod cancelled_by;
pub(in crate::store) mod children;
mod counts;
pub(in crate::store) mod definitions;
pub(in crate::store) mod failures;
pub(in crate::store) mod focus;
mod focus_large;
pub(in crate::store) mod histogram;
pub(in crate::store) mod list;
mod newest;
mod next_rows;
mod of_many;
pub(in crate::store) mod prepared;
pub(in crate::store) mod retry;
mod retry_items;
pub(in crate::store) mod retry_with;
pub(in crate::store) mod submit;
pub(in crate::store) mod traced;
pub(in crate::store) mod triggered;
mod usual;
pub(in crate::store) mod workspaces;

/// How many runs that have a slot of a concurrency key are named.
const HOLDERS_MAX: i64 = 5;

/// A run, as it is now. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// Why it was stopped before its jobs had finished.
    pub stop_reason: Option<StopReason>,
    /// The values of its parameters, as a JSON object.
    pub params: String,
    /// The folder against which its jobs resolve relative paths.
    pub dir: Option<String>,
    /// The caller's key.
    pub run_key: Option<String>,
    /// How many jobs it has.
    pub total_jobs: i64,
    /// How many of its jobs are unfinished.
    pub unfinished_jobs: i64,
    /// How many of its jobs failed without `allow_failure`, or were cancelled.
    pub failed_jobs: i64,
    /// When its timeout ends.
    pub deadline_at: Option<i64>,
    /// When it was accepted.
    pub created_at: i64,
    /// When its first job was claimed, after the last retry.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
    /// How long it took before its last retry, without the time between.
    pub ran_before_ms: i64,
    /// The schedule that started it.
    pub schedule_id: Option<i64>,
    /// The nominal time of its occurrence, if a schedule started it.
    pub scheduled_for: Option<i64>,
    /// Why a schedule started it. `None` if it was submitted.
    pub source: Option<RunSource>,
    /// The caller that submitted it or fired its schedule by hand, by its name in the audit. `None` if no caller is known.
    pub started_by: Option<String>,
    /// The state in which its jobs ended it, before its handlers ran; `None` without handlers, or before that.
    pub outcome: Option<RunStatus>,
    /// The job that called its workflow.
    pub parent_job_id: Option<i64>,
    /// The run at the top of all calls, if a job called its workflow.
    pub root_run_id: Option<i64>,
    /// The tags of its definition, sorted.
    pub tags: Vec<String>,
    /// The concurrency key that it shares with other runs, and how many of them may be active at a time.
    pub concurrency: Option<(String, i64)>,
    /// What it waits for before its jobs may start: a slot of its concurrency key.
    pub waits_for: Option<WaitsFor>,
}

/// How many jobs of a run are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounts {
    counts: [i64; JobStatus::ALL.len()],
    allowed_failures: i64,
}

impl JobCounts {
    /// Jobs in a state.
    #[must_use]
    pub fn of(&self, status: JobStatus) -> i64 {
        self.counts[status as usize]
    }

    /// Jobs in all.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// FAILED jobs whose failure does not matter to the run.
    #[must_use]
    pub fn allowed_failures(&self) -> i64 {
        self.allowed_failures
    }

    /// Counts a job.
    pub fn add_job(&mut self, job: &Job) {
        self.add(job.status, 1);
        self.add_allowed_failures(i64::from(job.status == JobStatus::Failed && job.allow_failure));
    }

    /// Notes how many of the FAILED jobs that were counted do not matter to the run.
    fn add_allowed_failures(&mut self, count: i64) {
        self.allowed_failures += count;
    }

    /// Counts jobs in a state.
    pub fn add(&mut self, status: JobStatus, count: i64) {
        self.counts[status as usize] += count;
    }
}

/// What a job's execution needs to know of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunContext {
    /// Its id.
    pub id: i64,
    /// The number of its definition, to which the rest belongs.
    pub definition: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// The values of its parameters, as a JSON object.
    pub params: String,
    /// Environment of every job, as a JSON object of templates.
    pub env: String,
    /// The folder against which its jobs resolve relative paths.
    pub dir: Option<String>,
    /// The caller's key.
    pub run_key: Option<String>,
    /// When it was accepted.
    pub created_at: i64,
    /// Its workspace.
    pub workspace: RunFolder,
    /// Its trace, which is that of the run at the top of its calls.
    pub trace: RunTrace,
    /// The newest definition that has secrets, of all workflows. See [`crate::store::SecretVariables`].
    pub newest_with_secrets: Option<i64>,
}

/// Where the workspace of a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFolder {
    /// The run has none.
    None,
    /// At this path. It may not be made yet.
    At(String),
    /// The run has one, and this process does not know the folder for files.
    Unknown,
}

fn read_run(row: &dyn Row) -> Result<Run> {
    Ok(Run {
        id: row.integer(0)?,
        workflow: row.text(1)?,
        status: row.parsed(2, RunStatus::parse)?,
        stop_reason: row.optional_text(3)?.as_deref().and_then(StopReason::parse),
        params: row.text(4)?,
        dir: row.optional_text(5)?,
        run_key: row.optional_text(6)?,
        total_jobs: row.integer(7)?,
        unfinished_jobs: row.integer(8)?,
        failed_jobs: row.integer(9)?,
        deadline_at: row.optional_integer(10)?,
        created_at: row.integer(11)?,
        started_at: row.optional_integer(12)?,
        finished_at: row.optional_integer(13)?,
        schedule_id: row.optional_integer(14)?,
        scheduled_for: row.optional_integer(15)?,
        source: row.optional_text(16)?.as_deref().and_then(RunSource::parse),
        outcome: row.optional_text(17)?.as_deref().and_then(RunStatus::parse),
        parent_job_id: row.optional_integer(18)?,
        root_run_id: row.optional_integer(19)?,
        tags: read_tags(row.optional_text(20)?),
        ran_before_ms: row.integer(21)?,
        concurrency: row.lossy_text(22)?.zip(row.optional_integer(23)?),
        waits_for: (row.integer(24)? != 0).then_some(WaitsFor::Slot),
        started_by: row.optional_text(25)?,
    })
}

/// Reads the column `tags` of a definition.
pub(in crate::store) fn read_tags(stored: Option<String>) -> Vec<String> {
    stored.and_then(|tags| serde_json::from_str(&tags).ok()).unwrap_or_default()
}

impl Runs<'_> {
    /// A run.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn get(&self, run_id: i64) -> Result<Run> {
        self.find(run_id)?.ok_or_else(|| Error::not_found(format!("run {run_id}")))
    }

    /// A run, if there is one of that id.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn find(&self, run_id: i64) -> Result<Option<Run>> {
        self.store.read(|connection| {
            first(connection, "SELECT {run_columns} FROM runs WHERE id = $1", &[run_id.into()], read_run)
        })
    }

    /// The runs that have slots of a concurrency key of runs, the oldest first, at most a few.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn slot_holders(&self, key: &str) -> Result<Vec<i64>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM runs
                 WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND waits_for IS NULL
                   AND status IN ('PENDING', 'RUNNING')
                 ORDER BY concurrency_key, id LIMIT $2",
                &[key.into(), HOLDERS_MAX.into()],
                |row| row.integer(0),
            )
        })
    }

    /// The ids of all unfinished runs that no job started, the oldest first.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn unfinished(&self) -> Result<Vec<i64>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM runs WHERE status IN ('PENDING', 'RUNNING') AND {guard parent_job_id IS NULL} ORDER BY id",
                &[],
                |row| row.integer(0),
            )
        })
    }

    /// How many jobs of a run are in each state.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn job_counts(&self, run_id: i64) -> Result<JobCounts> {
        self.store.read(|connection| {
            let mut counts = JobCounts::default();
            connection.query(
                "SELECT status, count(*), sum(CASE WHEN status = 'FAILED' AND allow_failure = 1 THEN 1 ELSE 0 END)
                 FROM jobs WHERE run_id = $1 GROUP BY status",
                &[run_id.into()],
                &mut |row| {
                    counts.add(row.parsed(0, JobStatus::parse)?, row.integer(1)?);
                    counts.add_allowed_failures(row.integer(2)?);
                    Ok(())
                },
            )?;
            Ok(counts)
        })
    }

    /// The runs that have slots of some concurrency keys of runs, the oldest first, at most a few of each.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn slot_holders_of(&self, keys: &[&str]) -> Result<BTreeMap<String, Vec<i64>>> {
        let sql = "SELECT id FROM runs
                   WHERE concurrency_key IS NOT NULL AND concurrency_key = $1 AND waits_for IS NULL
                     AND status IN ('PENDING', 'RUNNING')
                   ORDER BY concurrency_key, id LIMIT $2";
        let asked: Vec<PlainQuery<'_>> =
            keys.iter().map(|key| (sql, vec![(*key).into(), HOLDERS_MAX.into()])).collect();
        let holders = self.store.read(|connection| rows_of_each(connection, &asked, |row| row.integer(0)))?;
        Ok(keys.iter().map(|key| (*key).to_owned()).zip(holders).collect())
    }

    /// What a job's execution needs to know of its run.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn context(&self, run_id: i64) -> Result<RunContext> {
        let mut context = self.store.read(|connection| read_context(connection, run_id))?;
        if let (RunFolder::Unknown, Some(files)) = (&context.workspace, self.store.files()) {
            context.workspace = RunFolder::At(files.workspace(run_id).to_string_lossy().into_owned());
        }
        Ok(context)
    }

    /// What the jobs of a run came to, for its handlers; `None` before its jobs have ended.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn end(&self, run_id: i64) -> Result<Option<RunEnd>> {
        self.store.read(|connection| read_end(connection, run_id))
    }

    /// The definition of a run.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's, or [`Error::Internal`] if another program wrote an invalid definition.
    pub fn workflow(&self, run_id: i64) -> Result<Workflow> {
        self.store.read(|connection| {
            let sql = "SELECT workflow_id FROM runs WHERE id = $1";
            let workflow_id = first(connection, sql, &[run_id.into()], |row| row.optional_integer(0))?;
            let workflow_id = workflow_id
                .flatten()
                .ok_or_else(|| Error::not_found(format!("the definition of run {run_id}")))?;
            definition(connection, workflow_id)
        })
    }

    /// The first of all tags that runs have, in the order of the alphabet.
    ///
    /// # Errors
    /// The database's.
    pub fn tags(&self, limit: i64) -> Result<Vec<String>> {
        self.store.read(|connection| {
            // The next tag is looked up in the index each time: many runs have the same tag.
            all(
                connection,
                "WITH RECURSIVE tags (tag) AS (
                     SELECT (SELECT min(tag) FROM run_tags)
                     UNION ALL
                     SELECT (SELECT min(run_tags.tag) FROM run_tags WHERE run_tags.tag > tags.tag)
                     FROM tags WHERE tags.tag IS NOT NULL
                 )
                 SELECT tag FROM tags WHERE tag IS NOT NULL LIMIT $1",
                &[limit.into()],
                |row| row.text(0),
            )
        })
    }

    /// Whether a run is unfinished, and no live worker has one of its jobs or would claim them.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn is_interrupted(&self, run_id: i64) -> Result<bool> {
        self.store.read(|connection| {
            // Workers take the runs below those that they name, too.
            let root_run_id = one(
                connection,
                "SELECT max(coalesce(root_run_id, id)) FROM runs WHERE id = $1",
                &[run_id.into()],
                |row| row.optional_integer(0),
            )?;
            let cared_for = one(
                connection,
                "SELECT (SELECT status FROM runs WHERE id = $1) NOT IN ('PENDING', 'RUNNING')
                     OR EXISTS (SELECT 1 FROM workers
                                WHERE status IN ('ALIVE', 'DRAINING')
                                  AND (run_ids IS NULL OR $2 {in run_ids}))",
                &[run_id.into(), root_run_id.into()],
                |row| row.integer(0),
            )?;
            Ok(cared_for == 0)
        })
    }
}

/// Reads what a job's execution needs to know of its run.
pub(in crate::store) fn read_context(connection: &mut dyn Connection, run_id: i64) -> Result<RunContext> {
    one(
        connection,
        "SELECT runs.id, runs.workflow, runs.params, runs.env, runs.dir, runs.run_key, runs.created_at,
                (SELECT max(workflows.id) FROM workflows WHERE secret_variables IS NOT NULL),
                (SELECT 1 FROM workspaces WHERE workspaces.run_id = runs.id), runs.definition,
                root.created_at, root.token, root.traceparent
         FROM runs JOIN runs AS root ON {by root.id = coalesce(runs.root_run_id, runs.id)}
         WHERE runs.id = $1",
        &[run_id.into()],
        |row| {
            Ok(RunContext {
                id: row.integer(0)?,
                definition: row.integer(9)?,
                workflow: row.text(1)?,
                params: row.text(2)?,
                env: row.text(3)?,
                dir: row.optional_text(4)?,
                run_key: row.optional_text(5)?,
                created_at: row.integer(6)?,
                trace: read_trace(row, 10)?,
                newest_with_secrets: row.optional_integer(7)?,
                workspace: match row.optional_integer(8)? {
                    None => RunFolder::None,
                    Some(_) => RunFolder::Unknown,
                },
            })
        },
    )
}

/// Reads the trace of a run at the top from consecutive columns: created_at, token, traceparent.
fn read_trace(row: &dyn Row, from: usize) -> Result<RunTrace> {
    let key = RowKey { created_at: row.integer(from)?, token: row.integer(from + 1)? };
    let caller = row.lossy_text(from + 2)?;
    Ok(RunTrace::of_top(key, caller.as_deref().and_then(TraceParent::parse)))
}

/// Reads what the jobs of a run came to; `None` before its jobs have ended.
pub(in crate::store) fn read_end(connection: &mut dyn Connection, run_id: i64) -> Result<Option<RunEnd>> {
    let outcome = first(
        connection,
        "SELECT outcome FROM runs WHERE id = $1 AND outcome IS NOT NULL",
        &[run_id.into()],
        |row| row.parsed(0, RunStatus::parse),
    )?;
    let Some(outcome) = outcome else { return Ok(None) };
    let failed = all(
        connection,
        "SELECT name FROM jobs
         WHERE run_id = $1 AND phase = 0 AND status = 'FAILED' AND {counts_as_failed} ORDER BY id",
        &[run_id.into()],
        |row| row.text(0),
    )?;
    Ok(Some(RunEnd { outcome, failed }))
}
