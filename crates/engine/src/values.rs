//! The values that templates and expressions can name: those of a run, and those of its jobs. See
//! `docs/guide/templates.md`.

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value as Json, json};

use crate::status::{JobStatus, RunStatus};
use crate::store::{RunContext, RunFolder};

/// What is known of a job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobValues {
    /// Its name in the run.
    pub name: String,
    /// How it ended.
    pub status: JobStatus,
    /// Its output, as JSON.
    pub output: Option<String>,
    /// Why its output can't be read, for people.
    pub refused: Option<String>,
    /// Why its last attempt did not succeed, or why it was skipped.
    pub error: Option<String>,
    /// The exit code of its last attempt.
    pub exit_code: Option<i64>,
    /// How many of its attempts failed.
    pub failures: i64,
}

/// One of the items for which a job is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its place, from 0.
    pub index: i64,
    /// Its value.
    pub value: Json,
}

/// What the jobs of a run came to, for its handlers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    /// The state in which its jobs ended it.
    pub outcome: RunStatus,
    /// The names of the jobs that failed, without those that may fail.
    pub failed: Vec<String>,
}

/// The values that templates and expressions can name, as one object.
///
/// # Errors
/// A text that must be JSON is none.
pub fn values(
    run: &RunContext,
    end: Option<&RunEnd>,
    jobs: Vec<JobValues>,
    item: Option<&Item>,
    variables: Map<String, Json>,
) -> Result<Json, String> {
    let params: Map<String, Json> = serde_json::from_str(&run.params)
        .map_err(|error| format!("the run's params are no JSON object: {error}"))?;
    let jobs: Map<String, Json> = jobs
        .into_iter()
        .map(|job| Ok((job.name.clone(), job_values(job)?)))
        .collect::<Result<_, String>>()?;
    let mut values =
        json!({ "params": params, "run": run_values(run, end), "jobs": jobs, "variables": variables });
    if let Some(Item { index, value }) = item {
        values["item"] = value.clone();
        values["index"] = json!(index);
    }
    Ok(values)
}

fn run_values(run: &RunContext, end: Option<&RunEnd>) -> Json {
    let created_at = instant_text(run.created_at);
    let mut values =
        json!({ "id": run.id, "workflow": run.workflow, "created_at": created_at, "key": run.run_key });
    if let RunFolder::At(path) = &run.workspace {
        values["workspace"] = json!(path);
    }
    if let Some(RunEnd { outcome, failed }) = end {
        values["outcome"] = json!(outcome.as_str());
        values["failed"] = json!(failed);
    }
    values
}

/// An instant as text, for values that templates read. `None` if no calendar has it.
pub(crate) fn instant_text(at_ms: i64) -> Option<String> {
    DateTime::<Utc>::from_timestamp_millis(at_ms)
        .map(|instant| instant.to_rfc3339_opts(SecondsFormat::Millis, true))
}

fn job_values(job: JobValues) -> Result<Json, String> {
    let JobValues { name, status, output, refused, error, exit_code, failures } = job;
    if let Some(reason) = refused {
        return Err(reason);
    }
    let output: Option<Json> = output
        .map(|output| serde_json::from_str(&output))
        .transpose()
        .map_err(|error| format!("the output of job `{name}` is no JSON: {error}"))?;
    Ok(json!({
        "output": output, "status": status.as_str(), "error": error, "exit_code": exit_code, "failures": failures,
    }))
}
