//! Jobs that call workflows: starting their runs.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value as Json;
use windlass_workflow::Workflow;

use super::WaitingJob;
use crate::decide::call::Call;
use crate::decide::{Control, EndWithoutAttempt, Then};
use crate::store::finish::locks::lock_runs;
use crate::store::json_ids;
use crate::store::registrations::versions::definition;
use crate::store::runs::prepared::PreparedRun;
use crate::store::runs::read_context;
use crate::store::runs::retry::{RetrySelection, retry_locked};
use crate::store::runs::submit::{NewRun, ParentJob, insert};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, UpdateReturning, Value, Writers, all, all_updated, first, one};
use windlass_system::random::Random;

/// How many child runs a run may have, over all depths, if no `limit` of a `for_each` says more.
pub(super) const CHILDREN_MAX: i64 = 10_000;
/// After it has prepared runs with so many jobs, a transaction leaves the other jobs to the next one.
const TRANSACTION_JOBS_MAX: usize = 5_000;

/// What is read of a job that may call a workflow.
pub(super) struct Caller {
    pub(super) attempt: i64,
    pub(super) timeout_ms: Option<i64>,
    pub(super) root_run_id: Option<i64>,
}

/// A run that a job starts.
pub(super) struct NewChild {
    run: NewRun,
    prepared: PreparedRun,
    parent: ParentJob,
}

/// The workflows that the jobs of one transaction call. Each definition is read once.
pub(super) struct CalledWorkflows<'r> {
    random: &'r Random,
    /// The definitions of the callers' runs.
    definitions: HashMap<i64, (i64, Rc<Workflow>)>,
    called: HashMap<(i64, usize), Option<Workflow>>,
    /// How many child runs each run at the top has, with those that this transaction starts.
    children: HashMap<i64, i64>,
    jobs: usize,
}

impl CalledWorkflows<'_> {
    pub(super) fn new(random: &Random) -> CalledWorkflows<'_> {
        CalledWorkflows {
            random,
            definitions: HashMap::new(),
            called: HashMap::new(),
            children: HashMap::new(),
            jobs: 0,
        }
    }

    /// Whether the transaction starts enough runs.
    pub(super) fn is_full(&self) -> bool {
        self.jobs >= TRANSACTION_JOBS_MAX
    }

    /// Prepares the run that a job starts, or says how the job ends without one.
    pub(super) fn prepare(
        &mut self,
        connection: &mut dyn Connection,
        job: &WaitingJob,
        run_id: i64,
        call: &Call,
        values: &Json,
    ) -> Result<std::result::Result<NewChild, EndWithoutAttempt>> {
        let failed =
            |reason: String| Ok(Err(EndWithoutAttempt::failed(format!("no run was started: {reason}"))));
        let root_run_id = job.caller.root_run_id.unwrap_or(run_id);
        let children = self.children_of(connection, root_run_id)?;
        if children >= CHILDREN_MAX && children >= children_max(connection, job)? {
            return failed(format!("run {root_run_id} has {children} child runs, which is the limit"));
        }
        let Some(workflow) = self.workflow(connection, run_id, call.workflow)? else {
            return failed("the definition of its run does not have the workflow".to_owned());
        };
        let params = match call.params(&workflow.params, values) {
            Ok(params) => params,
            Err(end) => return Ok(Err(end)),
        };
        let workflow = workflow.clone();
        let dir = call.dir(read_context(connection, run_id)?.dir.as_deref());
        let run = NewRun { workflow, params, dir, run_key: None, occasion: None };
        let prepared = match PreparedRun::of(&run, self.random) {
            Ok(prepared) => prepared,
            Err(Error::Invalid { reason, .. }) => return failed(reason),
            Err(error) => return Err(error),
        };
        self.jobs += run.workflow.jobs.len();
        *self.children.entry(root_run_id).or_default() += 1;
        let parent = ParentJob {
            job_id: job.id,
            attempt: job.caller.attempt.saturating_add(1),
            root_run_id,
            timeout_ms: job.caller.timeout_ms,
        };
        Ok(Ok(NewChild { run, prepared, parent }))
    }

    fn children_of(&mut self, connection: &mut dyn Connection, root_run_id: i64) -> Result<i64> {
        if let Some(children) = self.children.get(&root_run_id) {
            return Ok(*children);
        }
        let children = one(
            connection,
            "SELECT count(*) FROM runs WHERE root_run_id IS NOT NULL AND root_run_id = $1",
            &[root_run_id.into()],
            |row| row.integer(0),
        )?;
        self.children.insert(root_run_id, children);
        Ok(children)
    }

    /// The called workflow, from the definition of the caller's run.
    fn workflow(
        &mut self,
        connection: &mut dyn Connection,
        run_id: i64,
        index: usize,
    ) -> Result<Option<&Workflow>> {
        if !self.definitions.contains_key(&run_id) {
            let workflow_id = one(
                connection,
                "SELECT coalesce(workflow_id, 0) FROM runs WHERE id = $1",
                &[run_id.into()],
                |row| row.integer(0),
            )?;
            let known = self.definitions.values().find(|(id, _workflow)| *id == workflow_id).cloned();
            let read = match known {
                Some(known) => known,
                None => (workflow_id, Rc::new(definition(connection, workflow_id)?)),
            };
            self.definitions.insert(run_id, read);
        }
        let Some((workflow_id, caller)) = self.definitions.get(&run_id) else { return Ok(None) };
        let called = self.called.entry((*workflow_id, index)).or_insert_with(|| caller.called(index));
        Ok(called.as_ref())
    }
}

/// How many child runs there may be: an item may raise it by the `limit` of its `for_each`.
fn children_max(connection: &mut dyn Connection, job: &WaitingJob) -> Result<i64> {
    let control = first(
        connection,
        "SELECT groups.control FROM jobs
         JOIN jobs AS groups ON {by groups.id = jobs.group_id}
         WHERE jobs.id = $1 AND jobs.group_id IS NOT NULL",
        &[job.id.into()],
        |row| row.lossy_text(0),
    )?;
    let control = control.flatten().and_then(|control| serde_json::from_str::<Control>(&control).ok());
    Ok(match control.and_then(|control| control.then) {
        Some(Then::ForEach(group)) => CHILDREN_MAX.max(group.for_each.limit),
        Some(Then::Call(_) | Then::Sleep(_) | Then::WaitFor(_) | Then::Approval(_) | Then::Signal(_))
        | None => CHILDREN_MAX,
    })
}

/// Lets jobs wait for the runs that they start.
static START_CALLS: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'WAITING'"),
        ("waits_for", "'run'"),
        ("attempt", "news.attempt"),
        ("started_at", "$2"),
        ("updated_at", "$2"),
    ],
    from: Some("{rows $1: id integer, attempt integer} AS news"),
    condition: "{by jobs.id = news.id} AND {guard jobs.status = 'WAITING'} AND jobs.waits_for = 'decision'",
    returning: &["jobs.id"],
};

/// Starts the runs of jobs.
pub(super) fn start_calls(
    connection: &mut dyn Connection,
    children: &[&NewChild],
    now_ms: i64,
) -> Result<()> {
    if children.is_empty() {
        return Ok(());
    }
    let news: Vec<[Value<'_>; 2]> =
        children.iter().map(|child| [child.parent.job_id.into(), child.parent.attempt.into()]).collect();
    let started =
        all_updated(connection, &START_CALLS, &[Value::rows(&news), now_ms.into()], |row| row.integer(0))?;
    for child in children.iter().filter(|child| started.contains(&child.parent.job_id)) {
        insert(connection, &child.run, &child.prepared, Some(&child.parent), now_ms)?;
    }
    Ok(())
}

/// Locks the runs of these jobs, and those that they retry, in the order of ids.
pub(super) fn lock_runs_of_callers(connection: &mut dyn Connection, job_ids: &[i64]) -> Result<()> {
    if connection.capabilities().writers == Writers::OneAtATime {
        return Ok(());
    }
    let run_ids = all(
        connection,
        "SELECT run_id FROM jobs WHERE id {in $1}
         UNION
         SELECT runs.id FROM jobs
         JOIN runs ON {by runs.parent_job_id = jobs.id} AND {by runs.parent_attempt = jobs.attempt}
         WHERE jobs.id {in $1} AND runs.parent_job_id IS NOT NULL AND {guard runs.call_open = 2}",
        &[(&json_ids(job_ids)).into()],
        |row| row.optional_integer(0),
    )?;
    lock_runs(connection, run_ids.into_iter().flatten().collect())
}

/// The last run of a job, if a retry has chosen it. Without its workspace it can't go on, and the job starts another run.
pub(super) fn run_to_retry(connection: &mut dyn Connection, job: &WaitingJob) -> Result<Option<i64>> {
    first(
        connection,
        "SELECT id FROM runs
         WHERE parent_job_id IS NOT NULL AND parent_job_id = $1 AND parent_attempt = $2 AND call_open = 2
           AND NOT EXISTS (SELECT 1 FROM workspaces WHERE workspaces.run_id = runs.id AND workspaces.state = 'removed')",
        &[job.id.into(), job.caller.attempt.into()],
        |row| row.integer(0),
    )
}

/// Retries what failed in the last run of a job, which waits for the end of that run again.
pub(super) fn retry_in_place(
    connection: &mut dyn Connection,
    job_id: i64,
    child_id: i64,
    now_ms: i64,
) -> Result<()> {
    let waits = connection.execute(
        "UPDATE jobs SET waits_for = 'run', started_at = $2, updated_at = $2
         WHERE id = $1 AND {guard status = 'WAITING'} AND waits_for = 'decision'",
        &[job_id.into(), now_ms.into()],
    )?;
    if waits == 1 {
        retry_locked(connection, child_id, &RetrySelection::Failed, now_ms)?;
        connection.execute("UPDATE runs SET call_open = 1 WHERE id = $1", &[child_id.into()])?;
    }
    Ok(())
}
