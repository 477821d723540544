//! Reports: ends of jobs that workers in other languages wrote.
//!
//! Such a worker changes only the job's state, guarded by its claim. It knows nothing of retries, children, counters
//! or limits. A reported row has no `finished_at` yet. Here the same functions apply the consequences as for
//! Windlass's own workers: the job becomes RUNNING again for a moment, and then it is finished.

use crate::status::JobStatus;
use crate::store::claim::job::read_retry_state;
use crate::store::evidence::Evidence;
use crate::store::finish::locks::lock_runs_of;
use crate::store::finish::{Finish, finish};
use crate::store::{ForScheduler, json_ids};
use crate::transition::{Outcome, Repeat, RetryState, after_attempt};
use windlass_db::error::{Error, Result};
use windlass_db::{Connection, Row, all};

/// How many reports one transaction applies.
const REPORTS_MAX: i64 = 500;
/// The worker id for a reported row that has none. No worker has this id.
const NOBODY: i64 = 0;

struct ReportedEnd {
    job_id: i64,
    run_id: Option<i64>,
    worker_id: Option<i64>,
    retry_state: RetryState,
    outcome: Outcome,
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
                 WHERE finished_at IS NULL AND (status = 'SUCCESSFUL' OR status = 'FAILED' OR status = 'CANCELLED')
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
                attempt, failures, max_attempts, interruptions, max_interruptions, on_interrupt, retry, run_id
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
    let finishes: Vec<Finish> = reports
        .into_iter()
        .map(|ReportedEnd { job_id, run_id, worker_id, retry_state, outcome }| Finish {
            job_id,
            run_id,
            attempt: retry_state.attempt,
            worker_id: worker_id.unwrap_or(NOBODY),
            transition: after_attempt(&retry_state, outcome, chance()),
            exit_code: None,
            logs: Vec::new(),
        })
        .collect();
    finish(connection, &finishes, now_ms)?;
    Ok(finishes.len() as i64)
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
        outcome,
    })
}

/// Outputs must be JSON, because templates read them. Anything else is taken as a text.
fn as_json(output: String) -> String {
    match serde_json::from_str::<serde::de::IgnoredAny>(&output) {
        Ok(_valid) => output,
        Err(_no_json) => serde_json::Value::String(output).to_string(),
    }
}
