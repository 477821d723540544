//! The events of a job as text, one line each.

use anstyle::Style;

use super::tracker::{Change, Event, JobState};
use crate::text::style::{CYAN, DIM, GREEN, YELLOW, headline, paint, printable};
use crate::text::{runs_and_jobs, time};

/// How many columns a reason may take.
const REASON_COLUMNS: usize = 120;

/// A plain line for a pipe or a log: `12:03:04 fetch successful in 1.2s`.
pub(super) fn plain(event: &Event) -> String {
    let name = printable(&event.job.name);
    let clock = time::clock(event.at_ms);
    format!("{clock} {name} {}", words(event, event.job.last_error.as_deref()))
}

/// A line for a terminal: `✓ fetch 1.2s`. The name is padded to a width.
pub(super) fn marked(event: &Event, name_width: usize) -> String {
    let name = printable(&event.job.name);
    let name = console::pad_str(&name, name_width, console::Alignment::Left, None);
    let (style, mark) = mark(event);
    let mark = paint(style, mark);
    match event.change {
        Change::Successful => {
            let took = paint(DIM, took(&event.job));
            format!("{mark} {name}  {took}")
        }
        Change::Started
        | Change::Failed
        | Change::Retrying
        | Change::Interrupted
        | Change::Skipped
        | Change::Cancelled => {
            let words = paint(style, words(event, event.job.last_error.as_deref()));
            format!("{mark} {name}  {words}")
        }
    }
}

fn mark(event: &Event) -> (Style, &'static str) {
    match event.change {
        Change::Started => (CYAN, "›"),
        Change::Successful => (GREEN, "✓"),
        Change::Failed => runs_and_jobs::failure_mark(event.job.allow_failure),
        Change::Retrying | Change::Interrupted => (YELLOW, "↻"),
        Change::Skipped => (DIM, "-"),
        Change::Cancelled => (YELLOW, "■"),
    }
}

fn words(event: &Event, error: Option<&str>) -> String {
    let job = &event.job;
    let reason = error.map(|error| headline(error, REASON_COLUMNS));
    let reason = reason.filter(|reason| !reason.is_empty());
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match event.change {
        Change::Started if job.attempt > 1 => format!("started, attempt {}", job.attempt),
        Change::Started => "started".to_owned(),
        Change::Successful => format!("successful in {}", took(job)),
        Change::Failed => {
            let allowed = if job.allow_failure { ", which is allowed" } else { "" };
            format!("failed after {}{}{allowed}{because}", took(job), tries(job))
        }
        Change::Retrying => {
            let wait_ms = job.execute_after_ms - event.at_ms;
            let again = match wait_ms {
                ..=0 => "retrying now".to_owned(),
                1.. => format!("retrying in {}", time::duration(wait_ms)),
            };
            let (failures, max) = (job.failures, job.max_attempts);
            format!("failed ({failures} of {max}){because}; {again}")
        }
        Change::Interrupted => "interrupted; it will run again".to_owned(),
        // The error names the needed job that did not succeed.
        Change::Skipped => headline(error.unwrap_or("skipped"), REASON_COLUMNS),
        Change::Cancelled => "cancelled".to_owned(),
    }
}

/// The time of the last attempt.
fn took(job: &JobState) -> String {
    match (job.started_at_ms, job.finished_at_ms) {
        (Some(started_at_ms), Some(finished_at_ms)) => time::duration(finished_at_ms - started_at_ms),
        (Some(_), None) | (None, Some(_) | None) => "no time".to_owned(),
    }
}

/// The number of failures, if there was more than one.
fn tries(job: &JobState) -> String {
    match job.failures {
        ..=1 => String::new(),
        failures => format!(" ({failures} of {})", job.max_attempts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::examples::job;
    use anstream::adapter::strip_str;
    use windlass_engine::JobStatus;

    fn event(change: Change, job: JobState) -> Event {
        Event { at_ms: 2_000, job, change }
    }

    fn ended(status: JobStatus) -> JobState {
        JobState { attempt: 1, started_at_ms: Some(1_000), finished_at_ms: Some(2_200), ..job(1, status) }
    }

    #[test]
    fn each_event_is_one_line() {
        let failed =
            JobState { last_error: Some("exit code 1\nmore".to_owned()), ..ended(JobStatus::Failed) };
        let last = JobState { failures: 3, max_attempts: 3, ..failed.clone() };
        let again = JobState { failures: 1, max_attempts: 3, execute_after_ms: 4_500, ..failed.clone() };
        let allowed = JobState { allow_failure: true, ..failed.clone() };
        let second = JobState { attempt: 2, ..ended(JobStatus::Running) };
        let cases = [
            (Change::Started, ended(JobStatus::Running), "started"),
            (Change::Started, second, "started, attempt 2"),
            (Change::Successful, ended(JobStatus::Successful), "successful in 1.2s"),
            (Change::Failed, failed, "failed after 1.2s: exit code 1"),
            (Change::Failed, allowed, "failed after 1.2s, which is allowed: exit code 1"),
            (Change::Failed, last, "failed after 1.2s (3 of 3): exit code 1"),
            (Change::Retrying, again, "failed (1 of 3): exit code 1; retrying in 2.5s"),
            (Change::Cancelled, ended(JobStatus::Cancelled), "cancelled"),
        ];
        for (change, job, expected) in cases {
            let line = plain(&event(change, job));
            let (clock, rest) = line.split_at(8);
            assert!(clock.bytes().filter(|byte| *byte == b':').count() == 2, "{line}");
            assert_eq!(rest, format!(" job1 {expected}"));
        }
    }

    #[test]
    fn marks_on_a_terminal() {
        let line = marked(&event(Change::Successful, ended(JobStatus::Successful)), 6);
        assert_eq!(strip_str(&line).to_string(), "✓ job1    1.2s");
        let failed = JobState { allow_failure: true, ..ended(JobStatus::Failed) };
        let line = marked(&event(Change::Failed, failed), 4);
        assert_eq!(strip_str(&line).to_string(), "! job1  failed after 1.2s, which is allowed");
    }

    #[test]
    fn a_name_cannot_repaint_the_screen() {
        let job = JobState { name: "\u{1b}[2Jx".to_owned(), ..ended(JobStatus::Successful) };
        let line = plain(&event(Change::Started, job));
        assert!(!line.contains('\u{1b}'), "{line:?}");
    }
}
