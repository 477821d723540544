//! Runs and jobs in words and colours, for all verbs that show them.

use serde_json::Value;
use windlass::store::{self, Job, JobCounts, Run};
use windlass::workflow::Workflow;
use windlass::workflow::model::{Rule, Schedule};
use windlass::{JobStatus, RunStatus, StopReason};

use crate::status::{job_style, run_style};
use crate::style::{DIM, YELLOW, headline, paint, printable};
use crate::time;

/// Columns that a value may take in a line of retry state.
const VALUE_COLUMNS: usize = 400;

/// So many of something, in the words for one and for several: `1 job is due`, `2 jobs are due`.
pub(crate) fn counted(count: i64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// The state of a run, with what makes it special.
pub(crate) fn run_state(run: &Run, interrupted: bool) -> String {
    let state = paint(run_style(run.status), run.status);
    let remark = match (run.stop_reason, run.status.is_terminal()) {
        (Some(StopReason::TimedOut), true) => "timed out",
        (Some(StopReason::TimedOut), false) => "timed out, stopping",
        (Some(StopReason::Cancelled), false) => "stopping",
        // Nothing of it began, so nothing was interrupted.
        (None, false) if interrupted && run.status == RunStatus::Pending => "no worker",
        (None, false) if interrupted => "interrupted",
        (Some(StopReason::Cancelled) | None, _) => return state,
    };
    format!("{state} {}", paint(YELLOW, format!("({remark})")))
}

/// The state of a job.
pub(crate) fn job_state(job: &Job) -> String {
    let state = paint(job_style(job.status), job.status);
    if job.status == JobStatus::Running && job.cancel_requested_at.is_some() {
        return format!("{state} {}", paint(YELLOW, "(stopping)"));
    }
    if job.status == JobStatus::Failed && job.allow_failure {
        return format!("{state} {}", paint(DIM, "(allowed)"));
    }
    state
}

/// The name of a job in its run, or its id.
pub(crate) fn job_name(job: &Job) -> String {
    match &job.name {
        Some(name) => printable(name).into_owned(),
        None => format!("j{}", job.id),
    }
}

/// How many jobs are in each state that any is in: `3 successful, 1 failed`.
pub(crate) fn counts(counts: &JobCounts) -> String {
    let order = [
        JobStatus::Successful,
        JobStatus::Failed,
        JobStatus::Skipped,
        JobStatus::Cancelled,
        JobStatus::Running,
        JobStatus::Waiting,
        JobStatus::Pending,
        JobStatus::Scheduled,
        JobStatus::Blocked,
    ];
    let parts: Vec<String> = order
        .into_iter()
        .filter(|status| counts.of(*status) > 0)
        .map(|status| {
            let word = status.as_str().to_lowercase();
            paint(job_style(status), format!("{} {word}", counts.of(status)))
        })
        .collect();
    match parts.is_empty() {
        true => "no jobs".to_owned(),
        false => parts.join(", "),
    }
}

/// The schedules of a workflow, as `default: 0 3 * * * Europe/Berlin`.
pub(crate) fn schedules(workflow: &Workflow) -> String {
    workflow.schedules.iter().map(schedule).collect::<Vec<_>>().join("; ")
}

/// The schedule that occurs next, of those that may fire, and when.
pub(crate) fn next_occurrence<'s>(
    schedules: impl IntoIterator<Item = &'s store::Schedule>,
) -> Option<(&'s store::Schedule, i64)> {
    let active = schedules.into_iter().filter(|schedule| schedule.is_active());
    let due = active.filter_map(|schedule| Some((schedule, schedule.next_at?)));
    due.min_by_key(|(_schedule, at_ms)| *at_ms)
}

/// A schedule by its name and when it occurs.
pub(crate) fn schedule(schedule: &Schedule) -> String {
    match &schedule.rule {
        Rule::Cron(cron) => format!("{}: {cron} {}", schedule.name, schedule.timezone),
        Rule::EveryMs(every_ms) => {
            format!("{}: every {}", schedule.name, windlass::workflow::duration::to_text(*every_ms))
        }
    }
}

/// Parameters as `day=2026-11-20 dry=true`.
pub(crate) fn params(json: &str) -> String {
    let parts: Vec<String> = match serde_json::from_str(json) {
        Ok(Value::Object(params)) => params
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{name}={}", plain_value(value)))
            .collect(),
        Ok(_) | Err(_) => vec![json.to_owned()],
    };
    headline(&parts.join(" "), VALUE_COLUMNS)
}

/// A JSON value in one line; text without its quotes.
pub(crate) fn value(json: &str, columns: usize) -> String {
    match serde_json::from_str(json) {
        Ok(value) => headline(&plain_value(&value), columns),
        Err(_) => headline(json, columns),
    }
}

/// A JSON value as text; text without its quotes.
pub(crate) fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// How long something took, or how long it has been going on.
pub(crate) fn span(started_at: Option<i64>, finished_at: Option<i64>, now_ms: i64) -> String {
    match (started_at, finished_at) {
        (Some(started_at), Some(finished_at)) => time::duration(finished_at - started_at),
        (Some(started_at), None) => format!("{}…", time::elapsed(now_ms - started_at)),
        (None, Some(_) | None) => String::new(),
    }
}

/// How long the last attempt of a job took, or has been going on.
pub(crate) fn job_span(job: &Job, now_ms: i64) -> String {
    match job.status {
        JobStatus::Running | JobStatus::Successful | JobStatus::Failed | JobStatus::Cancelled => {
            span(job.started_at, job.finished_at, now_ms)
        }
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Waiting
        | JobStatus::Skipped => String::new(),
    }
}

/// An instant with its distance to now: `2026-11-20 12:03:04 (5m ago)`.
pub(crate) fn instant(at_ms: i64, now_ms: i64) -> String {
    format!("{} {}", time::day_and_clock(at_ms), paint(DIM, format!("({})", time::relative(at_ms, now_ms))))
}

/// Labelled retry state, one a line, the values aligned; those without a value are left out.
pub(crate) fn retry_state(retry_state: &[(&str, Option<String>)]) -> String {
    let width = retry_state.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let line = |label: &str, value: &str| format!("  {}  {value}\n", paint(DIM, format!("{label:width$}")));
    retry_state.iter().filter_map(|(label, value)| Some(line(label, value.as_ref()?))).collect()
}

/// Lines of output, each marked as such.
pub(crate) fn tail<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    lines.into_iter().map(|line| format!("    {}\n", paint(DIM, format!("| {}", printable(line))))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anstream::adapter::strip_str;

    #[test]
    fn parameters_in_a_line() {
        let json = r#"{"day":"2026-11-20","count":3,"dry":false,"none":null,"list":[1]}"#;
        assert_eq!(params(json), "day=2026-11-20 count=3 dry=false list=[1]");
        assert_eq!(params("{}"), "");
    }

    #[test]
    fn facts_are_aligned_and_only_those_there_are() {
        let text = retry_state(&[("a", Some("1".into())), ("long", Some("2".into())), ("none", None)]);
        assert_eq!(strip_str(&text).to_string(), "  a     1\n  long  2\n");
    }

    #[test]
    fn spans() {
        assert_eq!(span(Some(1_000), Some(2_500), 9_000), "1.5s");
        assert_eq!(span(Some(1_000), None, 9_000), "8s…");
        assert_eq!(span(None, None, 9_000), "");
    }
}
