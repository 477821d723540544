//! Propagation: the ends of jobs promote or skip their children, and count down and end their runs. All of it is in the
//! transaction of these ends.

use crate::status::{JobStatus, RunStatus};
use crate::store::claim::request::ClaimRequest;
use crate::store::claim::snapshot::ClaimSnapshot;
use crate::store::finish::promotion::{CHILDREN, Children, Promoted, promote};
use crate::store::json_ids;
use std::collections::BTreeMap;
use windlass_db::error::Result;
use windlass_db::{Connection, Query, Row, Statement, UpdateReturning, Value, all, all_updated};
use windlass_system::wake_ups::WakeUps;

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// Its id.
    pub run_id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// How it ended.
    pub status: RunStatus,
    /// The time since the first claim of one of its jobs, in milliseconds.
    pub took_ms: Option<i64>,
}

/// What followed from the ends of jobs.
pub(in crate::store) struct Propagated {
    pub(in crate::store) ended_runs: Vec<EndedRun>,
    /// The caller hands the ready jobs to a claim, or releases them.
    pub(in crate::store) promoted: Promoted,
    /// The snapshot for the claim that follows, if there is one and it could be read together with something else.
    pub(in crate::store) snapshot: Option<ClaimSnapshot>,
}

/// A job that left RUNNING, or ended without running.
pub(in crate::store) struct Ended {
    pub(in crate::store) job_id: i64,
    pub(in crate::store) run_id: Option<i64>,
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) status: JobStatus,
    pub(in crate::store) allow_failure: bool,
}

/// Propagates the ends of jobs to their children and runs. `request` is the claim that follows in the same transaction.
pub(in crate::store) fn propagate(
    connection: &mut dyn Connection,
    ended: &[Ended],
    request: Option<&ClaimRequest>,
    now_ms: i64,
) -> Result<Propagated> {
    let mut satisfied = Vec::new();
    let mut counts: BTreeMap<i64, RunDelta> = BTreeMap::new();
    for job in ended {
        let Some(run_id) = job.run_id else { continue };
        let delta = match effect(job.status, job.allow_failure) {
            Effect::None => continue,
            Effect::Satisfies => {
                satisfied.push(job.job_id);
                RunDelta { finished: 1, failed: 0 }
            }
            Effect::Breaks => {
                let cause = job.name.as_deref().unwrap_or("a parent");
                let skipped = skip_descendants(connection, job.job_id, cause, job.status, now_ms)?;
                RunDelta { finished: 1 + skipped, failed: 1 }
            }
            Effect::Skips => {
                let cause = job.name.as_deref().unwrap_or("a parent");
                let skipped = skip_descendants(connection, job.job_id, cause, job.status, now_ms)?;
                RunDelta { finished: 1 + skipped, failed: 0 }
            }
        };
        counts.entry(run_id).or_default().add(delta);
    }
    let (mut children, mut over) = (Children::default(), Vec::new());
    let parents: Vec<[Value<'_>; 1]> = satisfied.iter().map(|job_id| [(*job_id).into()]).collect();
    let news = news_of(&counts);
    let find = Query {
        statement: Statement::Plain(CHILDREN),
        parameters: &[Value::rows(&parents)],
        on_row: &mut |row| children.read(row),
    };
    let count = Query {
        statement: Statement::UpdateReturning(&COUNT_DOWN),
        parameters: &[Value::rows(&news), now_ms.into()],
        on_row: &mut |row| read_over(row, &mut over),
    };
    // Each job that satisfies children is counted, so `find` never comes without `count`.
    let snapshot = if !satisfied.is_empty() {
        ask(connection, request, &mut [find, count])?
    } else if !counts.is_empty() {
        ask(connection, request, &mut [count])?
    } else {
        None
    };
    let ended_runs = decide_runs(connection, &over, now_ms)?;
    Ok(Propagated { ended_runs, promoted: promote(connection, children, now_ms)?, snapshot })
}

/// Runs statements, together with the snapshot of the claim that follows, if there is one.
fn ask(
    connection: &mut dyn Connection,
    request: Option<&ClaimRequest>,
    questions: &mut [Query<'_>],
) -> Result<Option<ClaimSnapshot>> {
    match request {
        Some(request) => ClaimSnapshot::after(connection, request, questions).map(Some),
        None => connection.query_all(questions).map(|()| None),
    }
}

/// What the end of a job means for its children.
enum Effect {
    /// The job has not ended.
    None,
    /// The children wait for one parent less.
    Satisfies,
    /// The children can never run, because the job failed or was cancelled.
    Breaks,
    /// The children can never run, because the job was skipped. It does not count as failed.
    Skips,
}

fn effect(status: JobStatus, allow_failure: bool) -> Effect {
    match status {
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Waiting => Effect::None,
        JobStatus::Successful => Effect::Satisfies,
        JobStatus::Failed if allow_failure => Effect::Satisfies,
        JobStatus::Failed | JobStatus::Cancelled => Effect::Breaks,
        JobStatus::Skipped => Effect::Skips,
    }
}

#[derive(Default, Clone, Copy)]
pub(in crate::store) struct RunDelta {
    pub(in crate::store) finished: i64,
    pub(in crate::store) failed: i64,
}

impl RunDelta {
    fn add(&mut self, other: RunDelta) {
        self.finished += other.finished;
        self.failed += other.failed;
    }
}

/// Skips all BLOCKED descendants of a job with two statements, whatever the depth of the graph is. It stops at jobs that
/// are not BLOCKED, so repeated calls never visit a job twice.
pub(in crate::store) fn skip_descendants(
    connection: &mut dyn Connection,
    parent_id: i64,
    parent_name: &str,
    parent_status: JobStatus,
    now_ms: i64,
) -> Result<i64> {
    let doomed = all(
        connection,
        "WITH RECURSIVE doomed (id) AS (
             SELECT edges.child_id FROM job_dependencies AS edges
             JOIN jobs AS child ON {by child.id = edges.child_id}
             WHERE edges.parent_id = $1 AND child.status = 'BLOCKED'
             UNION
             SELECT edges.child_id FROM doomed
             JOIN job_dependencies AS edges ON {by edges.parent_id = doomed.id}
             JOIN jobs AS child ON {by child.id = edges.child_id}
             WHERE child.status = 'BLOCKED'
         )
         SELECT id FROM doomed",
        &[parent_id.into()],
        |row| row.integer(0),
    )?;
    if doomed.is_empty() {
        return Ok(0);
    }
    let reason = format!("skipped: `{parent_name}` is {parent_status}");
    let skipped = connection.execute(
        "UPDATE jobs
         SET status = 'SKIPPED', last_error = $2, updated_at = $3, finished_at = $3
         WHERE id {in $1} AND {guard status = 'BLOCKED'}",
        &[(&json_ids(&doomed)).into(), (&reason).into(), now_ms.into()],
    )?;
    Ok(i64::try_from(skipped).unwrap_or(i64::MAX))
}

/// Subtracts finished jobs from the unfinished jobs of their runs.
static COUNT_DOWN: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[
        (
            "unfinished_jobs",
            "CASE WHEN runs.unfinished_jobs > news.finished
                  THEN runs.unfinished_jobs - news.finished ELSE 0 END",
        ),
        ("failed_jobs", "runs.failed_jobs + news.failed"),
        ("updated_at", "$2"),
    ],
    from: Some("{rows $1: id integer, finished integer, failed integer} AS news"),
    condition: "{by runs.id = news.id} AND {guard runs.status IN ('PENDING', 'RUNNING')}",
    returning: &["runs.id", "runs.unfinished_jobs"],
};

fn news_of(counts: &BTreeMap<i64, RunDelta>) -> Vec<[Value<'static>; 3]> {
    counts
        .iter()
        .map(|(run_id, delta)| [(*run_id).into(), delta.finished.into(), delta.failed.into()])
        .collect()
}

/// Collects the runs without unfinished jobs.
fn read_over(row: &dyn Row, over: &mut Vec<i64>) -> Result<()> {
    if row.integer(1)? == 0 {
        over.push(row.integer(0)?);
    }
    Ok(())
}

/// Subtracts finished jobs from their runs, and ends the runs whose last job is finished.
pub(in crate::store) fn count_down(
    connection: &mut dyn Connection,
    counts: &BTreeMap<i64, RunDelta>,
    now_ms: i64,
) -> Result<Vec<EndedRun>> {
    if counts.is_empty() {
        return Ok(Vec::new());
    }
    let (news, mut over) = (news_of(counts), Vec::new());
    connection.update_returning(&COUNT_DOWN, &[Value::rows(&news), now_ms.into()], &mut |row| {
        read_over(row, &mut over)
    })?;
    decide_runs(connection, &over, now_ms)
}

/// Ends runs whose last job is finished. This is a statement of its own because the status is in the condition of several
/// indexes: if counting set it, each end of a job would write these indexes.
static DECIDE_RUNS: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[
        (
            "status",
            "CASE WHEN stop_reason = 'cancelled' THEN 'CANCELLED'
                  WHEN stop_reason = 'timed_out' THEN 'FAILED'
                  WHEN failed_jobs > 0 THEN 'FAILED'
                  ELSE 'SUCCESSFUL' END",
        ),
        ("finished_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status IN ('PENDING', 'RUNNING')}",
    returning: &["id", "status", "schedule_id", "workflow", "$2 - started_at"],
};

fn decide_runs(connection: &mut dyn Connection, run_ids: &[i64], now_ms: i64) -> Result<Vec<EndedRun>> {
    if run_ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut has_schedule = false;
    let ended =
        all_updated(connection, &DECIDE_RUNS, &[(&json_ids(run_ids)).into(), now_ms.into()], |row| {
            has_schedule |= row.optional_integer(2)?.is_some();
            Ok(EndedRun {
                run_id: row.integer(0)?,
                status: row.parsed(1, RunStatus::parse)?,
                workflow: row.lossy_text(3)?.unwrap_or_default(),
                took_ms: row.optional_integer(4)?,
            })
        })?;
    if has_schedule {
        // An occurrence of the schedule may wait for the end of this run.
        connection.wake(WakeUps::DUE);
    }
    Ok(ended)
}
