//! Runs and jobs as text: names, states and their colours, times, output.

use anstyle::Style;
use windlass_engine::store::{Job, JobCounts, Run};
use windlass_engine::{JobStatus, RunStatus, StopReason};
use windlass_workflow::draw;

use crate::text::style::{CYAN, DIM, GREEN, PLAIN, RED, YELLOW, paint, printable};
use crate::text::{time, values};

/// The colour of a job's state.
pub(crate) fn job_style(status: JobStatus) -> Style {
    match status {
        JobStatus::Running => CYAN,
        JobStatus::Successful => GREEN,
        JobStatus::Failed => RED,
        JobStatus::Cancelled | JobStatus::Waiting => YELLOW,
        JobStatus::Blocked | JobStatus::Skipped => DIM,
        JobStatus::Scheduled | JobStatus::Pending => PLAIN,
    }
}

/// The mark before a job that failed, and its colour.
pub(crate) fn failure_mark(allow_failure: bool) -> (Style, &'static str) {
    if allow_failure { (YELLOW, "!") } else { (RED, "✗") }
}

/// A number of failures that do not matter to their run.
pub(crate) fn allowed_failures(count: i64) -> String {
    values::counted(count, "allowed failure", "allowed failures")
}

/// The colour of a run's state.
pub(crate) fn run_style(status: RunStatus) -> Style {
    match status {
        RunStatus::Pending => PLAIN,
        RunStatus::Running => CYAN,
        RunStatus::Successful => GREEN,
        RunStatus::Failed => RED,
        RunStatus::Cancelled => YELLOW,
    }
}

/// The state of a run, and in brackets why it ended or stopped.
pub(crate) fn run_state(run: &Run, interrupted: bool) -> String {
    let state = paint(run_style(run.status), run.status);
    let remark = match (run.stop_reason, run.status.is_terminal()) {
        (Some(StopReason::TimedOut), true) => "timed out",
        (Some(StopReason::TimedOut), false) => "timed out, stopping",
        (Some(StopReason::Skipped), true) => "skipped",
        (Some(StopReason::Cancelled | StopReason::Skipped), false) => "stopping",
        (None, false) if run.waits_for.is_some() => "waits for a slot",
        // No job has begun, so no job was interrupted.
        (None, false) if interrupted && run.status == RunStatus::Pending => "no worker",
        (None, false) if interrupted => "interrupted",
        (Some(StopReason::Cancelled) | None, _) => return state,
    };
    format!("{state} {}", paint(YELLOW, format!("({remark})")))
}

/// The state of a job.
pub(crate) fn job_state(job: &Job) -> String {
    if job.status == JobStatus::Failed && job.allow_failure {
        return paint(YELLOW, draw::ALLOWED_FAILURE);
    }
    let state = paint(job_style(job.status), job.status);
    if job.status == JobStatus::Running && job.cancel_requested_at.is_some() {
        return format!("{state} {}", paint(YELLOW, "(stopping)"));
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

/// The number of jobs in each state, without the zeros: `3 successful, 1 failed`.
pub(crate) fn job_counts(counts: &JobCounts) -> String {
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
    let allowed = counts.allowed_failures();
    let mut parts = Vec::new();
    for status in order {
        let is_failed = status == JobStatus::Failed;
        let count = counts.of(status) - if is_failed { allowed } else { 0 };
        if count > 0 {
            let word = status.as_str().to_lowercase();
            parts.push(paint(job_style(status), format!("{count} {word}")));
        }
        if is_failed && allowed > 0 {
            parts.push(paint(YELLOW, allowed_failures(allowed)));
        }
    }
    match parts.is_empty() {
        true => "no jobs".to_owned(),
        false => parts.join(", "),
    }
}

/// The time that a run took, or has taken so far. The time between its end and a retry does not count.
pub(crate) fn run_span(run: &Run, now_ms: i64) -> String {
    span(run.started_at.map(|started_at| started_at - run.ran_before_ms), run.finished_at, now_ms)
}

/// The time from start to end, or from start to now.
pub(crate) fn span(started_at: Option<i64>, finished_at: Option<i64>, now_ms: i64) -> String {
    match (started_at, finished_at) {
        (Some(started_at), Some(finished_at)) => time::duration(finished_at - started_at),
        (Some(started_at), None) => format!("{}…", time::elapsed(now_ms - started_at)),
        (None, Some(_) | None) => String::new(),
    }
}

/// The time that the last attempt of a job took, or has taken so far.
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

/// How many columns of a line of output are shown beside other things. `windlass logs` shows all.
const TAIL_COLUMNS: usize = 500;

/// The beginnings of lines that a job wrote, each behind a bar.
pub(crate) fn output_tail<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let behind_bar = |line: &str| {
        let line = printable(line);
        let beginning = console::truncate_str(&line, TAIL_COLUMNS, "…");
        format!("    {}\n", paint(DIM, format!("| {beginning}")))
    };
    lines.into_iter().map(behind_bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_line_the_beginning_is_shown() {
        let text = console::strip_ansi_codes(&output_tail(["short", &"x".repeat(16_000)])).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "    | short");
        assert_eq!(lines[1], format!("    | {}…", "x".repeat(TAIL_COLUMNS - 1)));
    }

    #[test]
    fn spans() {
        assert_eq!(span(Some(1_000), Some(2_500), 9_000), "1.5s");
        assert_eq!(span(Some(1_000), None, 9_000), "8s…");
        assert_eq!(span(None, None, 9_000), "");
    }
}
