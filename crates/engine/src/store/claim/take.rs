//! The statement that claims jobs, and the rows that it returns.

use crate::status::JobStatus;
use crate::store::claim::job::{ClaimedJob, read_conditions, read_item, read_retry_state};
use crate::store::claim::request::ClaimRequest;
use crate::store::json_ids;
use crate::transition::RetryState;
use std::collections::{HashMap, HashSet};
use windlass_db::error::Result;
use windlass_db::{Connection, Row, UpdateReturning, Value, all_updated};
use windlass_system::wake_ups::WakeUps;

/// A claimed row.
pub(in crate::store) struct TakenJob {
    pub(in crate::store) id: i64,
    pub(in crate::store) run_id: Option<i64>,
    /// The job's run, if this is the run's first job to start.
    pub(in crate::store) new_run_id: Option<i64>,
    pub(in crate::store) retry_state: RetryState,
    /// The job, or what is wrong with the row.
    pub(in crate::store) job: std::result::Result<ClaimedJob, String>,
}

/// A claimed job whose row can't be executed.
pub(in crate::store) struct UnreadableJob {
    pub(in crate::store) id: i64,
    pub(in crate::store) run_id: Option<i64>,
    pub(in crate::store) retry_state: RetryState,
    /// What is wrong with the row.
    pub(in crate::store) error: String,
}

/// The jobs that a claim selected.
pub(in crate::store) struct ChosenJobs<'c> {
    /// The most urgent first.
    pub(in crate::store) ids: &'c [i64],
    /// Those of `ids` that are still BLOCKED, because they became ready in this transaction.
    pub(in crate::store) blocked: &'c HashSet<i64>,
    /// Those of `ids` in queues with a rate.
    pub(in crate::store) rated: &'c HashSet<i64>,
}

/// Makes the selected jobs RUNNING under the request's worker. `read_taken` refuses the largest attempt, because no number
/// follows it. The run of a BLOCKED job has started already, with one of the job's parents.
static TAKE: UpdateReturning = UpdateReturning {
    table: "jobs",
    set: &[
        ("status", "'RUNNING'"),
        ("worker_id", "$2"),
        ("blocked_by", "0"),
        (
            "attempt",
            "CASE WHEN jobs.attempt < 9223372036854775807 THEN jobs.attempt + 1 ELSE jobs.attempt END",
        ),
        // The last change of a PENDING job made it PENDING, or a person made it. A BLOCKED one became ready just now.
        ("ready_at", "CASE WHEN chosen.status = 'PENDING' THEN jobs.updated_at ELSE $3 END"),
        ("started_at", "$3"),
        ("updated_at", "$3"),
    ],
    from: Some("{rows $1: id integer, status text, at_once integer} AS chosen"),
    condition: "{by jobs.id = chosen.id} AND jobs.status = chosen.status
                AND (jobs.on_interrupt = 'rerun' OR chosen.at_once = 1)",
    returning: &[
        "jobs.id",
        "jobs.run_id",
        "jobs.name",
        "jobs.kind",
        "jobs.payload",
        "jobs.timeout_ms",
        "jobs.attempt",
        "jobs.failures",
        "jobs.max_attempts",
        "jobs.interruptions",
        "jobs.max_interruptions",
        "jobs.on_interrupt",
        "jobs.retry",
        "CASE WHEN chosen.status = 'PENDING'
              THEN (SELECT runs.id FROM runs
                    WHERE runs.id = jobs.run_id AND {guard runs.status = 'PENDING'}) END",
        "jobs.created_at",
        "jobs.token",
        "jobs.phase",
        "jobs.item",
        "jobs.definition",
        "jobs.queue",
        "jobs.ready_at",
    ],
};

pub(in crate::store) fn take(
    connection: &mut dyn Connection,
    ChosenJobs { ids, blocked, rated }: &ChosenJobs<'_>,
    request: &ClaimRequest,
    now_ms: i64,
) -> Result<Vec<TakenJob>> {
    let status_of = |id| if blocked.contains(id) { JobStatus::Blocked } else { JobStatus::Pending };
    let chosen: Vec<[Value<'_>; 3]> = ids
        .iter()
        .enumerate()
        .filter(|(position, id)| *position < request.idle_threads || !rated.contains(id))
        .map(|(position, id)| {
            [(*id).into(), status_of(id).as_str().into(), i64::from(position < request.idle_threads).into()]
        })
        .collect();
    all_updated(
        connection,
        &TAKE,
        &[Value::rows(&chosen), request.worker_id.into(), now_ms.into()],
        read_taken,
    )
}

fn read_taken(row: &dyn Row) -> Result<TakenJob> {
    let (id, run_id, timeout_ms) = (row.integer(0)?, row.optional_integer(1)?, row.optional_integer(5)?);
    let (retry_state, new_run_id) = (read_retry_state(row, 6)?, row.optional_integer(13)?);
    let (created_at, token, phase) = (row.integer(14)?, row.integer(15)?, row.integer(16)?);
    let definition = row.integer(18)?;
    let ready_at = row.integer(20)?;
    let text = |column: usize, what: &str| {
        row.optional_text(column)
            .map_err(|_no_text| format!("the row can't be read: its {what} is not UTF-8 text"))
    };
    let job = || {
        if retry_state.attempt == i64::MAX {
            return Err(format!(
                "the row can't be claimed: its attempt is {}, and no number is left",
                i64::MAX
            ));
        }
        Ok(ClaimedJob {
            id,
            created_at,
            token,
            phase,
            definition,
            item: read_item(row, 17)?,
            run_id,
            queue: row.lossy_text(19).ok().flatten().unwrap_or_default(),
            ready_at,
            name: text(2, "name")?,
            kind: text(3, "kind")?.unwrap_or_default(),
            payload: text(4, "payload")?.unwrap_or_default(),
            timeout_ms,
            started_run: None,
            has_overtaken: false,
            retry_state: retry_state.clone(),
            conditions: read_conditions(row, 12)
                .map_err(|error| format!("the row can't be read: {error}"))?,
        })
    };
    let job = job();
    Ok(TakenJob { id, run_id, new_run_id, retry_state, job })
}

/// Starts runs, and their time limits.
static START_RUNS: UpdateReturning = UpdateReturning {
    table: "runs",
    set: &[
        ("status", "'RUNNING'"),
        ("started_at", "coalesce(started_at, $2)"),
        ("updated_at", "$2"),
        ("deadline_at", "CASE WHEN phase = 0 THEN $2 + timeout_ms END"),
    ],
    from: None,
    condition: "id {in $1} AND {guard status = 'PENDING'}",
    returning: &["id", "workflow", "deadline_at"],
};

/// Starts the runs of which the first job was claimed. Returns each run that started with the name of its workflow.
pub(in crate::store) fn start_runs(
    connection: &mut dyn Connection,
    mut run_ids: Vec<i64>,
    now_ms: i64,
) -> Result<HashMap<i64, String>> {
    run_ids.sort_unstable();
    run_ids.dedup();
    let mut started = HashMap::new();
    if run_ids.is_empty() {
        return Ok(started);
    }
    let mut has_deadline = false;
    connection.update_returning(&START_RUNS, &[(&json_ids(&run_ids)).into(), now_ms.into()], &mut |row| {
        started.insert(row.integer(0)?, row.lossy_text(1)?.unwrap_or_default());
        has_deadline |= row.optional_integer(2)?.is_some();
        Ok(())
    })?;
    if has_deadline {
        connection.wake(WakeUps::DUE);
    }
    Ok(started)
}
