//! Reports: ends of jobs that workers in other languages wrote.
//!
//! Such a worker changes only the job's state, guarded by its claim. It knows nothing of retries, children, counters
//! or limits. A reported row has no `finished_at` yet. Here the same functions apply the consequences as for
//! Windlass's own workers: the job becomes RUNNING again for a moment, and then it is finished.

use crate::attempt_end::{AttemptResult, EndConditions};
use crate::set_variables::SetVariable;
use crate::status::JobStatus;
use crate::store::claim::job::{read_conditions, read_item, read_retry_state};
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::{Finish, finish};
use crate::store::jobs::read_values;
use crate::store::runs::{read_context, read_end};
use crate::store::variables::{names_of, read_variables, refused};
use crate::store::{ForScheduler, json_ids};
use crate::transition::{Outcome, Repeat, RetryState, after_attempt};
use crate::values::{Item, values};
use std::sync::Arc;
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Fragment, Row, all};

/// Whether the end of a job was reported, and is not applied yet. The first two conditions on the state follow from the
/// others: they are the condition of the index.
pub(crate) const IS_REPORTED: Fragment = Fragment {
    name: "is_reported",
    sql: "finished_at IS NULL AND status <> 'PENDING' AND status <> 'RUNNING'
          AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED')",
};

/// How many reports one transaction applies.
const REPORTS_MAX: i64 = 500;
/// The worker id for a reported row that has none. No worker has this id.
const NOBODY: i64 = 0;

struct ReportedEnd {
    job_id: i64,
    run_id: Option<i64>,
    worker_id: Option<i64>,
    is_handler: bool,
    item: Option<Item>,
    retry_state: RetryState,
    outcome: Outcome,
    /// The conditions that are asked at the end of an attempt, or why they can't be read.
    conditions: std::result::Result<Option<Arc<EndConditions>>, String>,
}

impl ForScheduler<'_> {
    /// Applies the consequences of a batch of reported ends. Returns how many. Call it again until it returns 0.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn apply_reports(&self) -> Result<i64> {
        let reported = self.store.read(|connection| {
            all(
                connection,
                "SELECT id FROM jobs
                 WHERE {is_reported}
                 ORDER BY id LIMIT $1",
                &[REPORTS_MAX.into()],
                |row| row.integer(0),
            )
        })?;
        if reported.is_empty() {
            return Ok(0);
        }
        match self.apply_batch(reported.clone()) {
            // One of the reports can't be applied. The others must not wait for it.
            Err(error) if reported.len() > 1 && !matches!(error, Error::Unavailable { .. }) => {
                self.apply_one_by_one(reported)
            }
            applied => applied,
        }
    }

    fn apply_batch(&self, reported: Vec<i64>) -> Result<i64> {
        let now_ms = self.store.clock.now_ms();
        let random = self.store.random.clone();
        self.store.write("apply reported ends", Evidence::Repeat, move |connection| {
            apply_reports(connection, &reported, now_ms, &mut || random.fraction())
        })
    }

    /// Returns an error only if no report could be applied.
    fn apply_one_by_one(&self, reported: Vec<i64>) -> Result<i64> {
        let (mut applied, mut refused) = (0, None);
        for job_id in reported {
            match self.apply_batch(vec![job_id]) {
                Ok(count) => applied += count,
                Err(error @ Error::Unavailable { .. }) => return Err(error),
                Err(error) => refused = Some(error),
            }
        }
        match refused {
            Some(error) if applied == 0 => Err(error),
            Some(_) | None => Ok(applied),
        }
    }
}

fn apply_reports(
    connection: &mut dyn Connection,
    job_ids: &[i64],
    now_ms: i64,
    chance: &mut dyn FnMut() -> f64,
) -> Result<i64> {
    lock_runs_of(connection, job_ids)?;
    let reports = all(
        connection,
        "SELECT id, worker_id, status, output, last_error,
                attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt, retry, run_id, phase,
                item
         FROM jobs
         WHERE id {in $1} AND {guard finished_at IS NULL AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED')}
         ORDER BY id {lock}",
        &[(&json_ids(job_ids)).into()],
        read_report,
    )?;
    let ids: Vec<i64> = reports.iter().map(|report| report.job_id).collect();
    connection.execute(
        "UPDATE jobs SET status = 'RUNNING', worker_id = coalesce(worker_id, $2) WHERE id {in $1}",
        &[(&json_ids(&ids)).into(), NOBODY.into()],
    )?;
    let mut finishes = Vec::with_capacity(reports.len());
    for report in reports {
        let (outcome, variables) = judge(connection, &report)?;
        finishes.push(Finish {
            job_id: report.job_id,
            run_id: report.run_id,
            attempt: report.retry_state.attempt,
            worker_id: report.worker_id.unwrap_or(NOBODY),
            transition: after_attempt(&report.retry_state, outcome, chance()),
            exit_code: None,
            logs: Vec::new(),
            artifacts: Vec::new(),
            variables,
        });
    }
    finish(connection, &finishes, now_ms)?;
    Ok(finishes.len() as i64)
}

/// What the conditions of the job make of a reported end, and the variables that it sets. A worker in another language reports
/// no exit code.
fn judge(connection: &mut dyn Connection, report: &ReportedEnd) -> Result<(Outcome, Vec<SetVariable>)> {
    let ReportedEnd { run_id, is_handler, retry_state, outcome, .. } = report;
    let for_good = |error: String| (Outcome::Failed { error, repeat: Repeat::Pointless }, Vec::new());
    let conditions = match &report.conditions {
        Ok(Some(conditions)) if conditions.are_asked(retry_state, outcome, true) => conditions,
        Ok(_) => return Ok((outcome.clone(), Vec::new())),
        Err(error) => return Ok(for_good(format!("the row can't be read: {error}"))),
    };
    let Some(run_id) = *run_id else { return Ok((outcome.clone(), Vec::new())) };
    let jobs = read_values(connection, run_id, &conditions.jobs_read())?;
    let variables = read_variables(connection, &conditions.variables_read())?;
    let run = read_context(connection, run_id)?;
    let end = if *is_handler { read_end(connection, run_id)? } else { None };
    let output = match outcome {
        Outcome::Successful { output } => output.clone(),
        Outcome::Failed { .. }
        | Outcome::Skipped { .. }
        | Outcome::Again { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted
        | Outcome::OutOfResources { .. } => None,
    };
    let result = AttemptResult { output: Ok(output), ..AttemptResult::default() };
    let (outcome, set) = match values(&run, end.as_ref(), jobs, report.item.as_ref(), variables) {
        Ok(values) => conditions.conclude(retry_state, outcome.clone(), Some(&result), values),
        Err(error) => return Ok(for_good(error)),
    };
    if set.is_empty() {
        return Ok((outcome, set));
    }
    Ok(match refused(connection, names_of(&set))? {
        Some(reason) => for_good(reason),
        None => (outcome, set),
    })
}

fn read_report(row: &dyn Row) -> Result<ReportedEnd> {
    let error = |without: &str| -> Result<String> {
        Ok(row.lossy_text(4)?.filter(|error| !error.is_empty()).unwrap_or_else(|| without.to_owned()))
    };
    let outcome = match row.parsed(2, JobStatus::parse)? {
        JobStatus::Failed => {
            let error = error("it failed, and its worker reported no reason")?;
            Outcome::Failed { error, repeat: Repeat::Allowed }
        }
        JobStatus::Cancelled => Outcome::Cancelled { error: error("it was cancelled")? },
        // The query selects no other states.
        JobStatus::Successful
        | JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Waiting
        | JobStatus::Skipped => Outcome::Successful { output: row.lossy_text(3)?.map(as_json) },
    };
    Ok(ReportedEnd {
        job_id: row.integer(0)?,
        worker_id: row.optional_integer(1)?,
        retry_state: read_retry_state(row, 5)?,
        run_id: row.optional_integer(12)?,
        is_handler: row.integer(13)? > 0,
        // A condition that reads an item that can't be read fails the job.
        item: read_item(row, 14).unwrap_or_default(),
        outcome,
        conditions: read_conditions(row, 11),
    })
}

/// Outputs must be JSON, because templates read them. Anything else is taken as a text.
fn as_json(output: String) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(&output) {
        Ok(_valid) => output,
        Err(_no_json) => serde_json::Value::String(output).to_string(),
    }
}
