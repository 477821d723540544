//! Reading jobs.

use crate::decide::for_each::GROUP_KIND;
use crate::status::{JobStatus, RunStatus, WaitsFor};
use crate::store::claim::job::parts_of_item;
use crate::store::{Jobs, json_list};
use crate::values::JobValues;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all, first, one};
use windlass_workflow::model::RunHandler;

/// The columns of `jobs` that [`read_job`] reads, in its order.
pub(crate) const JOB_COLUMNS: Fragment = Fragment {
    name: "job_columns",
    sql: "id, run_id, name, kind, queue, status, priority, execute_after, payload, attempt,
                    max_attempts, failures, interruptions, max_interruptions, allow_failure, last_error,
                    output, blocked_by, worker_id, cancel_requested_at, created_at, updated_at,
                    started_at, finished_at, requires, code_version, concurrency_key, concurrency_limit,
                    waits_for, upstream_failed, phase, handles, exit_code, deadline_at, group_id, item,
                    max_parallel, root_run_id,
                    CASE WHEN status = 'PENDING' THEN updated_at ELSE ready_at END",
};

pub(in crate::store) mod approvals;
pub(in crate::store) mod around;
pub(in crate::store) mod attempts;
pub(in crate::store) mod broken;
pub(in crate::store) mod change;
pub(in crate::store) mod dead_letters;
pub(in crate::store) mod enqueue;
pub(in crate::store) mod list;
pub(in crate::store) mod needs;
pub(in crate::store) mod of_run;
pub(in crate::store) mod open_approvals;
pub(in crate::store) mod rounds;
pub(in crate::store) mod why;

/// A job, as it is now. Instants are milliseconds since the Unix epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: i64,
    /// Its run. `None` if it was enqueued alone.
    pub run_id: Option<i64>,
    /// Its name in the run.
    pub name: Option<String>,
    /// What executes it.
    pub kind: String,
    /// The queue it waits in.
    pub queue: String,
    /// Its state.
    pub status: JobStatus,
    /// Higher is claimed first.
    pub priority: i64,
    /// Not claimed before this instant.
    pub execute_after: i64,
    /// Its payload, as JSON.
    pub payload: String,
    /// Claims so far.
    pub attempt: i64,
    /// Failures that are allowed.
    pub max_attempts: i64,
    /// Failures so far.
    pub failures: i64,
    /// Interruptions so far.
    pub interruptions: i64,
    /// Interruptions that are allowed.
    pub max_interruptions: i64,
    /// Its failure does not matter to its run.
    pub allow_failure: bool,
    /// Why the last attempt did not succeed, or why it was skipped.
    pub last_error: Option<String>,
    /// Its output, as JSON.
    pub output: Option<String>,
    /// Parents that are not finished.
    pub blocked_by: i64,
    /// The worker that executes or executed it.
    pub worker_id: Option<i64>,
    /// When it was asked to stop.
    pub cancel_requested_at: Option<i64>,
    /// When it was accepted.
    pub created_at: i64,
    /// When it last changed.
    pub updated_at: i64,
    /// When it became claimable for its last attempt, or for its next one if it is PENDING.
    pub ready_at: Option<i64>,
    /// When its last attempt was claimed.
    pub started_at: Option<i64>,
    /// When it finished.
    pub finished_at: Option<i64>,
    /// Capabilities that a worker must have to claim it, as a JSON list.
    pub requires: String,
    /// The lowest version of the code on a worker that may execute it.
    pub code_version: i64,
    /// Its concurrency key.
    pub concurrency_key: Option<String>,
    /// How many jobs with this key may run at a time.
    pub concurrency_limit: Option<i64>,
    /// While it is WAITING: what it waits for.
    pub waits_for: Option<WaitsFor>,
    /// If it was skipped: whether a job before it failed or was cancelled.
    pub upstream_failed: bool,
    /// The table of its workflow that it comes from, if it runs at the end of the run.
    pub handler: Option<RunHandler>,
    /// The exit code of its last attempt, if no signal ended it.
    pub exit_code: Option<i64>,
    /// When it must be over.
    pub deadline_at: Option<i64>,
    /// The job with `for_each` of which it is an item.
    pub group_id: Option<i64>,
    /// Its place among the items.
    pub item_index: Option<i64>,
    /// Its item, as JSON.
    pub item: Option<String>,
    /// If it has `for_each`: how many items may run at a time.
    pub max_parallel: Option<i64>,
    /// The run at the top of all calls, if a job started its run.
    pub root_run_id: Option<i64>,
}

impl Job {
    /// Its name for people: `3/fetch` or `j42`.
    #[must_use]
    pub fn label(&self) -> String {
        label(self.id, self.run_id, self.name.as_deref())
    }
}

/// What a WAITING job waits for. In other states the column means nothing.
fn read_waits_for(row: &dyn Row) -> Result<Option<WaitsFor>> {
    match row.parsed(5, JobStatus::parse)? {
        JobStatus::Waiting => row.parsed(28, WaitsFor::parse).map(Some),
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Successful
        | JobStatus::Failed
        | JobStatus::Skipped
        | JobStatus::Cancelled => Ok(None),
    }
}

/// The table of its workflow that a job comes from, by its phase and the outcome that it handles.
fn read_handler(row: &dyn Row) -> Result<Option<RunHandler>> {
    if row.integer(30)? == 0 {
        return Ok(None);
    }
    let handles = row.lossy_text(31)?;
    Ok(Some(match handles.as_deref().and_then(RunStatus::parse) {
        Some(RunStatus::Successful) => RunHandler::OnSuccess,
        Some(RunStatus::Failed) => RunHandler::OnFailure,
        Some(RunStatus::Cancelled) => RunHandler::OnCancel,
        Some(RunStatus::Pending | RunStatus::Running) | None => RunHandler::Finally,
    }))
}

/// Texts that are not valid UTF-8 are replaced, so that one invalid row does not hide all others.
fn read_job(row: &dyn Row) -> Result<Job> {
    let item = row.lossy_text(35)?;
    let item = item.as_deref().and_then(parts_of_item);
    Ok(Job {
        id: row.integer(0)?,
        run_id: row.optional_integer(1)?,
        name: row.lossy_text(2)?,
        kind: row.lossy_text(3)?.unwrap_or_default(),
        queue: row.lossy_text(4)?.unwrap_or_default(),
        status: row.parsed(5, JobStatus::parse)?,
        priority: row.integer(6)?,
        execute_after: row.integer(7)?,
        payload: row.lossy_text(8)?.unwrap_or_default(),
        attempt: row.integer(9)?,
        max_attempts: row.integer(10)?,
        failures: row.integer(11)?,
        interruptions: row.integer(12)?,
        max_interruptions: row.integer(13)?,
        allow_failure: row.integer(14)? != 0,
        last_error: row.lossy_text(15)?,
        output: row.lossy_text(16)?,
        blocked_by: row.integer(17)?,
        worker_id: row.optional_integer(18)?,
        cancel_requested_at: row.optional_integer(19)?,
        created_at: row.integer(20)?,
        updated_at: row.integer(21)?,
        started_at: row.optional_integer(22)?,
        finished_at: row.optional_integer(23)?,
        requires: row.lossy_text(24)?.unwrap_or_default(),
        code_version: row.integer(25)?,
        concurrency_key: row.lossy_text(26)?,
        concurrency_limit: row.optional_integer(27)?,
        waits_for: read_waits_for(row)?,
        upstream_failed: row.integer(29)? != 0,
        handler: read_handler(row)?,
        exit_code: row.optional_integer(32)?,
        deadline_at: row.optional_integer(33)?,
        group_id: row.optional_integer(34)?,
        item_index: item.map(|(index, _value)| index),
        item: item.map(|(_index, value)| value.to_owned()),
        max_parallel: row.optional_integer(36)?,
        root_run_id: row.optional_integer(37)?,
        ready_at: row.optional_integer(38)?,
    })
}

impl Jobs<'_> {
    /// A job.
    ///
    /// # Errors
    /// [`Error::NotFound`] and the database's.
    pub fn get(&self, job_id: i64) -> Result<Job> {
        self.find(job_id)?.ok_or_else(|| Error::not_found(format!("job j{job_id}")))
    }

    /// A job, if there is one of that id.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn find(&self, job_id: i64) -> Result<Option<Job>> {
        self.store.read(|connection| {
            first(connection, "SELECT {job_columns} FROM jobs WHERE id = $1", &[job_id.into()], read_job)
        })
    }

    /// The job of a run that has that name, if there is one.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn find_by_name(&self, run_id: i64, name: &str) -> Result<Option<Job>> {
        self.store.read(|connection| {
            first(
                connection,
                "SELECT {job_columns} FROM jobs WHERE run_id = $1 AND name = $2",
                &[run_id.into(), name.into()],
                read_job,
            )
        })
    }

    /// Every job of a run, in the order of its definition.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn of_run(&self, run_id: i64) -> Result<Vec<Job>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {job_columns} FROM jobs WHERE run_id = $1 ORDER BY id",
                &[run_id.into()],
                read_job,
            )
        })
    }

    /// The jobs of a run that changed at an instant or later, in the order of change.
    ///
    /// Reads every job of the run: half a second for 250,000. An index on the time of change would slow
    /// each transition of each job down, and the run's own row does not change with the claims and retries of its
    /// jobs.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn changed(&self, run_id: i64, since_ms: i64) -> Result<Vec<Job>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {job_columns} FROM jobs WHERE run_id = $1 AND updated_at >= $2
                 ORDER BY updated_at, id",
                &[run_id.into(), since_ms.into()],
                read_job,
            )
        })
    }

    /// Every job of the runs below a run that changed at an instant or later.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn changed_below(&self, run_id: i64, since_ms: i64) -> Result<Vec<Job>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {job_columns} FROM jobs
                 WHERE run_id {in SELECT id FROM runs WHERE root_run_id IS NOT NULL AND root_run_id = $1}
                   AND updated_at >= $2
                 ORDER BY updated_at, id",
                &[run_id.into(), since_ms.into()],
                read_job,
            )
        })
    }

    /// The edges of a run: (parent, child) by job id.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn dependencies(&self, run_id: i64) -> Result<Vec<(i64, i64)>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT edges.parent_id, edges.child_id FROM jobs
                 JOIN job_dependencies AS edges ON {by edges.child_id = jobs.id}
                 WHERE jobs.run_id = $1 ORDER BY edges.child_id, edges.parent_id",
                &[run_id.into()],
                |row| Ok((row.integer(0)?, row.integer(1)?)),
            )
        })
    }

    /// The parents of a job.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn parents(&self, job_id: i64) -> Result<Vec<Job>> {
        self.store.read(|connection| {
            all(
                connection,
                "SELECT {job_columns} FROM jobs WHERE id {in SELECT parent_id FROM job_dependencies WHERE child_id = $1} ORDER BY id",
                &[job_id.into()],
                read_job,
            )
        })
    }

    /// What templates and expressions can read of some jobs of a run.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn values(&self, run_id: i64, names: &[String]) -> Result<Vec<JobValues>> {
        self.store.read(|connection| read_values(connection, run_id, names))
    }

    /// Fills in the outputs of jobs with `for_each`: the list of the outputs of their items. A list that is too large is left
    /// out.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn collect_outputs(&self, jobs: &mut [Job]) -> Result<()> {
        self.store.read(|connection| {
            for job in jobs.iter_mut().filter(|job| job.kind == GROUP_KIND && job.status.is_terminal()) {
                let name = job.name.clone().unwrap_or_default();
                job.output = group_output(connection, job.id, &name, job.status)?.unwrap_or_default();
            }
            Ok(())
        })
    }

    /// How many jobs wait or run: PENDING, SCHEDULED, RUNNING.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn count_active(&self) -> Result<i64> {
        self.store.read(|connection| {
            one(
                connection,
                "SELECT (SELECT count(*) FROM jobs WHERE status = 'PENDING' AND kind > '')
                      + (SELECT count(*) FROM jobs WHERE status = 'SCHEDULED')
                      + (SELECT count(*) FROM jobs WHERE worker_id IS NOT NULL AND status = 'RUNNING')",
                &[],
                |row| row.integer(0),
            )
        })
    }
}

/// Reads what templates and expressions can read of some jobs of a run.
pub(in crate::store) fn read_values(
    connection: &mut dyn Connection,
    run_id: i64,
    names: &[String],
) -> Result<Vec<JobValues>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let mut groups = Vec::new();
    let mut values = all(
        connection,
        "SELECT name, status, output, last_error, exit_code, failures, id, kind FROM jobs
         WHERE run_id = $1 AND name IN (SELECT value FROM {texts $2} AS names)",
        &[run_id.into(), (&json_list("read the values of jobs", names)?).into()],
        |row| {
            groups.push((row.lossy_text(7)?.as_deref() == Some(GROUP_KIND)).then_some(row.integer(6)?));
            Ok(JobValues {
                name: row.text(0)?,
                status: row.parsed(1, JobStatus::parse)?,
                output: row.optional_text(2)?,
                refused: None,
                error: row.lossy_text(3)?,
                exit_code: row.optional_integer(4)?,
                failures: row.integer(5)?,
            })
        },
    )?;
    for (job, group_id) in values.iter_mut().zip(groups) {
        let Some(group_id) = group_id.filter(|_id| job.status.is_terminal()) else { continue };
        match group_output(connection, group_id, &job.name, job.status)? {
            Ok(list) => job.output = list,
            Err(reason) => job.refused = Some(reason),
        }
    }
    Ok(values)
}

/// The largest size of the outputs of all items of a job, in bytes.
const COLLECTED_BYTES_MAX: i64 = 16 * 1024 * 1024;

/// The outputs of the items of a group that has ended, in order, as a JSON list. An item without an output counts as null.
/// `None` if the group failed or was skipped before it had items. The error is for people: the list would be too large.
fn group_output(
    connection: &mut dyn Connection,
    group_id: i64,
    name: &str,
    status: JobStatus,
) -> Result<std::result::Result<Option<String>, String>> {
    let (items, bytes) = one(
        connection,
        "SELECT count(*), coalesce(sum(length(output)), 0) FROM jobs WHERE group_id IS NOT NULL AND group_id = $1",
        &[group_id.into()],
        |row| Ok((row.integer(0)?, row.integer(1)?)),
    )?;
    if items == 0 {
        return Ok(Ok((status == JobStatus::Successful).then(|| "[]".to_owned())));
    }
    if bytes > COLLECTED_BYTES_MAX {
        let (bytes, most) = (bytes / 1024 / 1024, COLLECTED_BYTES_MAX / 1024 / 1024);
        return Ok(Err(format!(
            "the outputs of the items of `{name}` have {bytes} MiB together, at most {most} MiB; write them to files, \
             and let the outputs name the files"
        )));
    }
    let mut list = String::from("[");
    connection.query(
        "SELECT output FROM jobs WHERE group_id IS NOT NULL AND group_id = $1 ORDER BY id",
        &[group_id.into()],
        &mut |row| {
            if list.len() > 1 {
                list.push(',');
            }
            list.push_str(row.optional_text(0)?.as_deref().unwrap_or("null"));
            Ok(())
        },
    )?;
    list.push(']');
    Ok(Ok(Some(list)))
}

/// The name of a job for people: `3/fetch` or `j42`.
#[must_use]
pub(in crate::store) fn label(id: i64, run_id: Option<i64>, name: Option<&str>) -> String {
    match (run_id, name) {
        (Some(run_id), Some(name)) => format!("{run_id}/{name}"),
        (Some(_), None) | (None, _) => format!("j{id}"),
    }
}
