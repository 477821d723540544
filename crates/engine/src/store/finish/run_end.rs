//! The end of a run: counting its unfinished jobs down, its phases, and its state.
//!
//! A run with handlers has three phases: its jobs, the handlers of its outcome, and those that run always. When the last
//! job of a phase ends, the same transaction begins the next one.

use std::collections::{BTreeMap, HashSet};

use crate::status::RunStatus;
use crate::store::finish::phases::begin_next_phases;
use crate::store::json_ids;
use crate::store::notifications::mark::mark_run_ends;
use windlass_db::error::Result;
use windlass_db::{Connection, Row, UpdateReturning, Value, all_updated};
use windlass_system::wake_ups::WakeUps;

/// The phases of a run.
const PHASES: usize = 3;

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

#[derive(Default, Clone, Copy)]
pub(in crate::store) struct RunDelta {
    pub(in crate::store) finished: i64,
    pub(in crate::store) failed: i64,
}

impl RunDelta {
    pub(in crate::store) fn add(&mut self, other: RunDelta) {
        self.finished += other.finished;
        self.failed += other.failed;
    }
}

/// Subtracts finished jobs from the unfinished jobs of their runs.
pub(in crate::store) static COUNT_DOWN: UpdateReturning = UpdateReturning {
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

pub(in crate::store) fn news_of(counts: &BTreeMap<i64, RunDelta>) -> Vec<[Value<'static>; 3]> {
    counts
        .iter()
        .map(|(run_id, delta)| [(*run_id).into(), delta.finished.into(), delta.failed.into()])
        .collect()
}

/// Collects the runs without unfinished jobs.
pub(in crate::store) fn read_over(row: &dyn Row, over: &mut Vec<i64>) -> Result<()> {
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
    end_runs(connection, over, now_ms)
}

/// Ends runs. This is a statement of its own because the status is in the condition of several
/// indexes: if counting set it, each end of a job would write these indexes.
static END_RUNS: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[
        (
            "status",
            "CASE WHEN stop_reason IN ('cancelled', 'skipped') THEN 'CANCELLED'
                  WHEN stop_reason = 'timed_out' THEN 'FAILED'
                  -- Handlers do not make up for what the jobs of the run came to.
                  WHEN outcome <> 'SUCCESSFUL' THEN outcome
                  WHEN failed_jobs > 0 THEN 'FAILED'
                  ELSE 'SUCCESSFUL' END",
        ),
        ("finished_at", "$2"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status IN ('PENDING', 'RUNNING')} AND (has_handlers = 0 OR phase = 2)",
    returning: &[
        "id",
        "status",
        "coalesce(schedule_id, parent_job_id, concurrency_limit)",
        "workflow",
        "$2 - started_at",
        // Read by the statement that ends the run, so that a run without such triggers needs no other.
        "CASE WHEN parent_job_id IS NULL THEN (SELECT 1 FROM triggers WHERE event_name = '' LIMIT 1) END",
        // The same for targets of notifications. The sum says which ends they want: see `wants_end`.
        "CASE WHEN parent_job_id IS NULL
              THEN (SELECT sum(DISTINCT CASE value WHEN 'run_failed' THEN 1 WHEN 'run_cancelled' THEN 2 ELSE 4 END)
                    FROM notification_filters
                    WHERE sort = 'event' AND value IN ('run_failed', 'run_cancelled', 'run_successful')) END",
    ],
};

/// Ends runs whose last job is finished, or begins their next phase.
pub(in crate::store) fn end_runs(
    connection: &mut dyn Connection,
    mut over: Vec<i64>,
    now_ms: i64,
) -> Result<Vec<EndedRun>> {
    let mut ended = Vec::new();
    // A phase without a job is over at once.
    for _phase in 0..PHASES {
        if over.is_empty() {
            break;
        }
        let ended_now = end_runs_in_last_phase(connection, &over, now_ms)?;
        let ids: HashSet<i64> = ended_now.iter().map(|run| run.run_id).collect();
        ended.extend(ended_now);
        over.retain(|run_id| !ids.contains(run_id));
        if !over.is_empty() {
            over = begin_next_phases(connection, &over, now_ms)?;
        }
    }
    Ok(ended)
}

fn end_runs_in_last_phase(
    connection: &mut dyn Connection,
    run_ids: &[i64],
    now_ms: i64,
) -> Result<Vec<EndedRun>> {
    let (mut is_awaited, mut for_triggers, mut for_notifications) = (false, Vec::new(), Vec::new());
    let ended = all_updated(connection, &END_RUNS, &[(&json_ids(run_ids)).into(), now_ms.into()], |row| {
        is_awaited |= row.optional_integer(2)?.is_some();
        if row.optional_integer(5)?.is_some() {
            for_triggers.push(row.integer(0)?);
        }
        let status = row.parsed(1, RunStatus::parse)?;
        if wants_end(row.optional_integer(6)?, status) {
            for_notifications.push(row.integer(0)?);
        }
        Ok(EndedRun {
            run_id: row.integer(0)?,
            status,
            workflow: row.lossy_text(3)?.unwrap_or_default(),
            took_ms: row.optional_integer(4)?,
        })
    })?;
    if is_awaited {
        // An occurrence of its schedule may wait for the end of this run, the job that called it, or a run with its key.
        connection.wake(WakeUps::DUE);
    }
    for run_id in for_triggers {
        write_end(connection, run_id)?;
    }
    if !for_notifications.is_empty() {
        mark_run_ends(connection, &for_notifications, now_ms)?;
    }
    Ok(ended)
}

/// Whether a target wants a run that ended so. `wanted` is the sum of 1 for failed runs, 2 for cancelled, 4 for successful ones.
fn wants_end(wanted: Option<i64>, status: RunStatus) -> bool {
    let bit = match status {
        RunStatus::Failed => 1,
        RunStatus::Cancelled => 2,
        RunStatus::Successful => 4,
        RunStatus::Pending | RunStatus::Running => 0,
    };
    wanted.unwrap_or(0) & bit != 0
}

/// Writes the end of a run for the triggers that take ends of runs.
fn write_end(connection: &mut dyn Connection, run_id: i64) -> Result<()> {
    connection.execute(
        "INSERT INTO run_ends (finished_at, run_id, workflow, status)
         SELECT finished_at, id, workflow, status FROM runs WHERE id = $1
         ON CONFLICT (finished_at, run_id) DO NOTHING",
        &[run_id.into()],
    )?;
    connection.wake(WakeUps::DUE);
    Ok(())
}
