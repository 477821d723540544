//! What a job did, in the order of time: its attempts, and the times between.

use windlass_engine::JobStatus;
use windlass_engine::decide::for_each::GROUP_KIND;
use windlass_engine::store::{Attempt, JobOfRun};

use crate::pages::times::duration;

/// What a job did from one instant to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifePart {
    /// `successful`, `failed`, `failed_allowed`, `cancelled` and `running` for attempts; `ready` for the time before a worker
    /// took it, `waiting` for the time before it was ready, `backoff` for the time until the next attempt, and `ended` for the time
    /// until somebody retried its run.
    pub sort: &'static str,
    /// Its beginning.
    pub from_ms: i64,
    /// Its end; `None` if it goes on.
    pub until_ms: Option<i64>,
}

/// What a job did, in the order of time.
#[must_use]
pub fn life_of(job: &JobOfRun, attempts: &[Attempt]) -> Vec<LifePart> {
    // What goes on ends at no instant that a clock shows.
    let now_ms = i64::MAX;
    life(job, attempts, now_ms)
        .into_iter()
        .map(|span| LifePart {
            sort: span.sort.name(),
            from_ms: span.from_ms,
            until_ms: (span.until_ms != now_ms).then_some(span.until_ms),
        })
        .collect()
}

/// A part of the life of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) sort: SpanSort,
    pub(super) from_ms: i64,
    pub(super) until_ms: i64,
    pub(super) title: String,
}

/// What a job did in a part of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanSort {
    Successful,
    Failed,
    FailedAllowed,
    Cancelled,
    Running,
    /// Ready, and no worker had taken it.
    Ready,
    /// All jobs before it were over, and it could not be taken yet.
    Waiting,
    /// Until it was ready for the next attempt.
    Backoff,
    /// It was over, until its run was retried.
    Ended,
    /// From the first of its items to the last.
    Items,
}

impl SpanSort {
    pub(super) fn class(self) -> &'static str {
        match self {
            SpanSort::Successful => "k",
            SpanSort::Failed => "f",
            SpanSort::FailedAllowed => "a",
            SpanSort::Cancelled => "c",
            SpanSort::Running => "r",
            SpanSort::Ready => "q",
            SpanSort::Waiting | SpanSort::Backoff => "w",
            SpanSort::Ended => "o",
            SpanSort::Items => "g",
        }
    }

    fn name(self) -> &'static str {
        match self {
            SpanSort::Successful => "successful",
            SpanSort::Failed => "failed",
            SpanSort::FailedAllowed => "failed_allowed",
            SpanSort::Cancelled => "cancelled",
            SpanSort::Running => "running",
            SpanSort::Ready => "ready",
            SpanSort::Waiting => "waiting",
            SpanSort::Backoff => "backoff",
            SpanSort::Ended => "ended",
            SpanSort::Items => "items",
        }
    }

    pub(super) fn is_attempt(self) -> bool {
        match self {
            SpanSort::Successful
            | SpanSort::Failed
            | SpanSort::FailedAllowed
            | SpanSort::Cancelled
            | SpanSort::Running => true,
            SpanSort::Ready | SpanSort::Waiting | SpanSort::Backoff | SpanSort::Ended | SpanSort::Items => {
                false
            }
        }
    }
}

/// The time in which the items of a job with `for_each` ran, as far as they are known; else the time from which it could begin.
pub(super) fn items_span(job: &JobOfRun, jobs: &[&JobOfRun], now_ms: i64) -> Option<Span> {
    if job.kind != GROUP_KIND {
        return None;
    }
    let began = match job.status {
        JobStatus::Waiting | JobStatus::Successful | JobStatus::Failed | JobStatus::Cancelled => true,
        JobStatus::Blocked
        | JobStatus::Scheduled
        | JobStatus::Pending
        | JobStatus::Running
        | JobStatus::Skipped => false,
    };
    let items = jobs.iter().filter(|item| item.group_id == Some(job.id));
    let first = items.filter_map(|item| item.started_at).min();
    let from_ms = first.or(job.needed_until).unwrap_or(job.created_at);
    let until_ms = job.finished_at.unwrap_or(now_ms);
    let is_known = began && from_ms < until_ms;
    let title = format!("all items, {}", duration(until_ms.saturating_sub(from_ms)));
    is_known.then_some(Span { sort: SpanSort::Items, from_ms, until_ms, title })
}

/// The parts of the life of a job, in the order of time.
pub(super) fn life(job: &JobOfRun, attempts: &[Attempt], now_ms: i64) -> Vec<Span> {
    let mut life: Vec<Span> = Vec::new();
    let needed_until = job.needed_until.unwrap_or(job.created_at).max(job.created_at);
    for attempt in attempts {
        let Some(started_at) = attempt.started_at else { continue };
        push_waits(&mut life, job, needed_until, attempt.ready_at, started_at);
        let sort = match attempt.outcome.as_str() {
            "cancelled" => SpanSort::Cancelled,
            "successful" => SpanSort::Successful,
            _ if job.status == JobStatus::Failed && job.allow_failure => SpanSort::FailedAllowed,
            _ => SpanSort::Failed,
        };
        let took = duration(attempt.finished_at - started_at);
        let error = attempt.error.as_deref().map_or("", windlass_engine::store::first_line);
        let title =
            format!("attempt {}, {took}: {} {error}", attempt.attempt, attempt.outcome.replace('_', " "));
        life.push(Span {
            sort,
            from_ms: started_at,
            until_ms: attempt.finished_at,
            title: title.trim_end().to_owned(),
        });
        if let Some(retried_at) = attempt.retried_at.filter(|at| *at >= attempt.finished_at) {
            let lasted = duration(retried_at - attempt.finished_at);
            let title = format!("over for {lasted}, then retried");
            let from_ms = attempt.finished_at;
            life.push(Span { sort: SpanSort::Ended, from_ms, until_ms: retried_at, title });
        }
    }
    let last = match (job.status, job.started_at, job.finished_at) {
        (JobStatus::Running, Some(from), _) => Some((SpanSort::Running, from, now_ms)),
        (JobStatus::Successful, Some(from), Some(until)) => Some((SpanSort::Successful, from, until)),
        (
            JobStatus::Blocked
            | JobStatus::Scheduled
            | JobStatus::Pending
            | JobStatus::Waiting
            | JobStatus::Failed
            | JobStatus::Skipped
            | JobStatus::Cancelled
            | JobStatus::Running
            | JobStatus::Successful,
            ..,
        ) => None,
    };
    if let Some((sort, from_ms, until_ms)) = last {
        push_waits(&mut life, job, needed_until, job.ready_at, from_ms);
        let title = format!("attempt {}, {}", job.attempt, duration(until_ms.saturating_sub(from_ms)));
        life.push(Span { sort, from_ms, until_ms, title });
    } else {
        push_present_waits(&mut life, job, needed_until, now_ms);
    }
    life
}

/// The time before an attempt: until the job was ready, and from then until a worker took it.
fn push_waits(life: &mut Vec<Span>, job: &JobOfRun, needed_until: i64, ready_at: Option<i64>, until_ms: i64) {
    let (sort, from_ms) = match life.last() {
        Some(span) if span.sort == SpanSort::Ended => (SpanSort::Waiting, needed_until.max(span.until_ms)),
        Some(span) => (SpanSort::Backoff, span.until_ms),
        // It may have slept first, and only the last attempt says until when.
        None if job.attempt <= 1 => (SpanSort::Waiting, needed_until.max(job.execute_after)),
        None => (SpanSort::Waiting, needed_until),
    };
    // A clock that was set back has made times that do not follow each other.
    let ready_at = match (ready_at, sort) {
        (Some(ready_at), _) => ready_at.clamp(from_ms.min(until_ms), until_ms),
        // A worker in another language may not have written it.
        (None, SpanSort::Backoff) => until_ms,
        (None, _) => from_ms,
    };
    push_wait(life, sort, from_ms, ready_at);
    push_wait(life, SpanSort::Ready, ready_at, until_ms);
}

/// The time until now of a job that waits.
fn push_present_waits(life: &mut Vec<Span>, job: &JobOfRun, needed_until: i64, now_ms: i64) {
    match (job.status, life.last()) {
        (JobStatus::Pending, _) => push_waits(life, job, needed_until, job.ready_at, now_ms),
        (JobStatus::Waiting, _) | (JobStatus::Scheduled, Some(_)) => {
            push_waits(life, job, needed_until, Some(now_ms), now_ms);
        }
        (
            JobStatus::Scheduled
            | JobStatus::Blocked
            | JobStatus::Running
            | JobStatus::Successful
            | JobStatus::Failed
            | JobStatus::Skipped
            | JobStatus::Cancelled,
            _,
        ) => {}
    }
}

fn push_wait(life: &mut Vec<Span>, sort: SpanSort, from_ms: i64, until_ms: i64) {
    if from_ms >= until_ms {
        return;
    }
    let lasted = duration(until_ms.saturating_sub(from_ms));
    let title = match sort {
        SpanSort::Ready => format!("ready for {lasted}"),
        SpanSort::Backoff => format!("{lasted} until the next attempt"),
        SpanSort::Waiting
        | SpanSort::Successful
        | SpanSort::Failed
        | SpanSort::FailedAllowed
        | SpanSort::Cancelled
        | SpanSort::Ended
        | SpanSort::Items
        | SpanSort::Running => format!("waited for {lasted}"),
    };
    life.push(Span { sort, from_ms, until_ms, title });
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::pages::run) fn job(
        status: JobStatus,
        started_at: Option<i64>,
        finished_at: Option<i64>,
    ) -> JobOfRun {
        JobOfRun {
            id: 1,
            name: "load".to_owned(),
            kind: "shell".to_owned(),
            queue: "default".to_owned(),
            status,
            waits_for: None,
            attempt: 1,
            max_attempts: 3,
            allow_failure: false,
            upstream_failed: false,
            exit_code: None,
            error: None,
            execute_after: 0,
            created_at: 0,
            started_at,
            finished_at,
            needed_until: Some(10_000),
            ready_at: Some(10_000),
            group_id: None,
        }
    }

    fn failed(attempt: i64, started_at: i64, finished_at: i64) -> Attempt {
        Attempt {
            attempt,
            worker_id: Some(1),
            outcome: "failed".to_owned(),
            error: Some("exit code 1\nmore".to_owned()),
            ready_at: None,
            started_at: Some(started_at),
            finished_at,
            retried_at: None,
        }
    }

    fn spans(job: &JobOfRun, attempts: &[Attempt], now_ms: i64) -> Vec<(&'static str, i64, i64)> {
        let life = life(job, attempts, now_ms);
        life.iter().map(|span| (span.sort.class(), span.from_ms, span.until_ms)).collect()
    }

    #[test]
    fn a_retried_job_has_a_bar_for_each_attempt_and_for_the_times_between() {
        let retried = JobOfRun {
            attempt: 2,
            ready_at: Some(40_000),
            ..job(JobStatus::Successful, Some(40_000), Some(60_000))
        };
        assert_eq!(
            spans(&retried, &[failed(1, 12_000, 20_000)], 90_000),
            [("q", 10_000, 12_000), ("f", 12_000, 20_000), ("w", 20_000, 40_000), ("k", 40_000, 60_000)]
        );
    }

    #[test]
    fn the_time_before_an_attempt_is_split_where_the_job_was_ready() {
        // It waited for a slot until 14 s, failed, and was ready again at 30 s.
        let first = Attempt { ready_at: Some(14_000), ..failed(1, 15_000, 20_000) };
        let job = JobOfRun {
            attempt: 2,
            ready_at: Some(30_000),
            ..job(JobStatus::Successful, Some(40_000), Some(60_000))
        };
        let expected = [
            ("w", 10_000, 14_000),
            ("q", 14_000, 15_000),
            ("f", 15_000, 20_000),
            ("w", 20_000, 30_000),
            ("q", 30_000, 40_000),
            ("k", 40_000, 60_000),
        ];
        assert_eq!(spans(&job, &[first], 90_000), expected);
        let pending = JobOfRun { status: JobStatus::Pending, ..job.clone() };
        assert_eq!(
            spans(&pending, &[failed(1, 10_000, 20_000)], 90_000)[1..],
            [("w", 20_000, 30_000), ("q", 30_000, 90_000)]
        );
        let waiting = JobOfRun { status: JobStatus::Waiting, ready_at: None, ..job };
        assert_eq!(spans(&waiting, &[], 20_000), [("w", 10_000, 20_000)]);
    }

    #[test]
    fn a_row_without_its_ready_time_and_a_clock_that_was_set_back_are_drawn() {
        let unknown = JobOfRun { ready_at: None, ..job(JobStatus::Successful, Some(40_000), Some(60_000)) };
        assert_eq!(spans(&unknown, &[], 90_000), [("q", 10_000, 40_000), ("k", 40_000, 60_000)]);
        let late = JobOfRun { ready_at: Some(50_000), ..unknown.clone() };
        assert_eq!(spans(&late, &[], 90_000), [("w", 10_000, 40_000), ("k", 40_000, 60_000)]);
        let early = JobOfRun { ready_at: Some(5_000), ..unknown };
        assert_eq!(spans(&early, &[], 90_000), [("q", 10_000, 40_000), ("k", 40_000, 60_000)]);
    }

    #[test]
    fn a_failed_job_ends_with_its_last_attempt() {
        let job = JobOfRun {
            attempt: 2,
            ready_at: Some(40_000),
            ..job(JobStatus::Failed, Some(40_000), Some(41_000))
        };
        let found = spans(&job, &[failed(1, 10_000, 20_000), failed(2, 40_000, 41_000)], 90_000);
        assert_eq!(found, [("f", 10_000, 20_000), ("w", 20_000, 40_000), ("f", 40_000, 41_000)]);
    }

    #[test]
    fn the_time_until_a_person_retried_the_run_is_no_backoff() {
        let again = JobOfRun { attempt: 2, ..job(JobStatus::Successful, Some(81_000), Some(90_000)) };
        let before = Attempt { retried_at: Some(80_000), ..failed(1, 12_000, 20_000) };
        let expected = [
            ("q", 10_000, 12_000),
            ("f", 12_000, 20_000),
            ("o", 20_000, 80_000),
            ("q", 80_000, 81_000),
            ("k", 81_000, 90_000),
        ];
        assert_eq!(spans(&again, std::slice::from_ref(&before), 95_000), expected);
        let succeeded = Attempt { outcome: "successful".to_owned(), error: None, ..before };
        let kept = spans(&again, std::slice::from_ref(&succeeded), 95_000);
        assert_eq!(kept[1..3], [("k", 12_000, 20_000), ("o", 20_000, 80_000)]);
        let kinds: Vec<&str> = life_of(&again, &[succeeded]).iter().map(|part| part.sort).collect();
        assert_eq!(kinds, ["ready", "successful", "ended", "ready", "successful"]);
    }

    #[test]
    fn unfinished_jobs_go_on_until_now() {
        assert_eq!(
            spans(&job(JobStatus::Running, Some(15_000), None), &[], 20_000),
            [("q", 10_000, 15_000), ("r", 15_000, 20_000)]
        );
        assert_eq!(spans(&job(JobStatus::Pending, None, None), &[], 20_000), [("q", 10_000, 20_000)]);
        let next = spans(&job(JobStatus::Scheduled, Some(1), None), &[failed(1, 11_000, 12_000)], 20_000);
        assert_eq!(next.last(), Some(&("w", 12_000, 20_000)));
        assert_eq!(spans(&job(JobStatus::Blocked, None, None), &[], 20_000), []);
    }
}
