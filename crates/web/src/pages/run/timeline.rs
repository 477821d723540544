//! The timeline: a row for each job, a bar for each attempt, and the times between.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::JobStatus;
use windlass_engine::decide::for_each::GROUP_KIND;
use windlass_engine::store::{Attempt, JobOfRun};

use super::axis::{Axis, Fold};
use crate::pages::look::{Failure, Look};
use crate::pages::times::{Times, duration};

/// Bars narrower than this part of the axis are drawn with this width.
const BAR_MIN: f64 = 0.004;
/// Half of the room that the length of a folded time needs, as a part of the axis of a small screen.
const LABEL_HALF: f64 = 0.07;
/// The part of the axis of a small screen that the text of the first tick needs, with half of the next one.
const NEAR_MAX: f64 = 0.26;
/// A wait for a worker is named if it took this part of the axis.
const NAMED_MIN: f64 = 0.03;

/// All rows, and what is the same in all.
pub(super) struct Timeline {
    pub(super) ticks: Vec<TickText>,
    pub(super) folds: Vec<FoldText>,
    /// How long the folded times are, in words.
    pub(super) folded: Option<Folded>,
    /// The classes of the bars that there are, with what they mean.
    pub(super) legend: Vec<(&'static str, &'static str)>,
    pub(super) rows: Vec<TimelineRow>,
}

/// A mark at the axis.
pub(super) struct TickText {
    pub(super) x: String,
    /// Whether its text would touch the first one on a small screen.
    pub(super) is_near: bool,
    pub(super) text: String,
}

/// A folded time.
pub(super) struct FoldText {
    pub(super) x: String,
    pub(super) width: String,
    pub(super) text: String,
    /// The middle, and the text that stands there if there is room.
    pub(super) label: Option<(String, String)>,
}

/// All folded times.
pub(super) struct Folded {
    pub(super) text: String,
    /// Whether the axis says all of them itself.
    pub(super) is_in_axis: bool,
}

/// A job.
pub(super) struct TimelineRow {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) look: Look,
    /// A few words behind the name.
    pub(super) note: String,
    pub(super) bars: Vec<Bar>,
    pub(super) texts: Vec<BarText>,
    pub(super) took: String,
    pub(super) label: String,
}

/// An attempt, or a time between attempts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) width: String,
    pub(super) title: String,
}

/// A text beside a bar.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BarText {
    pub(super) class: &'static str,
    pub(super) x: String,
    pub(super) text: String,
}

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
struct Span {
    sort: SpanSort,
    from_ms: i64,
    until_ms: i64,
    title: String,
}

/// What a job did in a part of its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanSort {
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
    fn class(self) -> &'static str {
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

    fn is_attempt(self) -> bool {
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

impl Timeline {
    pub(super) fn new(
        jobs: &[JobOfRun],
        attempts: &BTreeMap<i64, Vec<Attempt>>,
        created_at: i64,
        times: &Times,
    ) -> Timeline {
        let none = Vec::new();
        let jobs = with_items_below(jobs);
        let life = |job: &&JobOfRun| match items_span(job, &jobs, times.now_ms) {
            Some(span) => vec![span],
            None => life(job, attempts.get(&job.id).unwrap_or(&none), times.now_ms),
        };
        let lives: Vec<Vec<Span>> = jobs.iter().map(life).collect();
        let all = || lives.iter().flatten();
        let from_ms = all().map(|span| span.from_ms).min().unwrap_or(created_at);
        let until_ms = all().map(|span| span.until_ms).max().unwrap_or(created_at);
        let has_attempts = all().any(|span| span.sort.is_attempt());
        // The items say when nothing ran. Without them, the whole time of their job counts.
        let is_busy = |span: &&Span| match span.sort.is_attempt() {
            true => true,
            false => !has_attempts && span.sort == SpanSort::Items,
        };
        let busy = all().filter(is_busy).map(|span| (span.from_ms, span.until_ms)).collect();
        let axis = Axis::new(from_ms, until_ms, busy);
        let folds = folds(&axis);
        Timeline {
            ticks: ticks(&axis, from_ms, times),
            folded: folded(&axis, &folds),
            folds,
            legend: legend(&lives),
            rows: jobs.iter().zip(&lives).map(|(job, life)| row(job, life, &axis)).collect(),
        }
    }
}

/// What the bars of these jobs mean, in a fixed order.
fn legend(lives: &[Vec<Span>]) -> Vec<(&'static str, &'static str)> {
    let entries = [
        (SpanSort::Successful, "ran"),
        (SpanSort::Running, "runs"),
        (SpanSort::Failed, "failed"),
        (SpanSort::FailedAllowed, "failed, allowed"),
        (SpanSort::Cancelled, "cancelled"),
        (SpanSort::Items, "all items"),
        (SpanSort::Ready, "ready, no worker yet"),
        (SpanSort::Waiting, "not ready yet"),
        (SpanSort::Backoff, "until the next attempt"),
        (SpanSort::Ended, "over, until it was retried"),
    ];
    let is_there = |sort: SpanSort| lives.iter().flatten().any(|span| span.sort == sort);
    entries.into_iter().filter(|(sort, _)| is_there(*sort)).map(|(sort, text)| (sort.class(), text)).collect()
}

/// The same jobs, each item below the job that it belongs to.
fn with_items_below(jobs: &[JobOfRun]) -> Vec<&JobOfRun> {
    let mut items: BTreeMap<i64, Vec<&JobOfRun>> = BTreeMap::new();
    let groups: BTreeSet<i64> = jobs.iter().filter(|job| job.kind == GROUP_KIND).map(|job| job.id).collect();
    let group_of = |job: &JobOfRun| job.group_id.filter(|id| groups.contains(id));
    for job in jobs {
        if let Some(id) = group_of(job) {
            items.entry(id).or_default().push(job);
        }
    }
    let mut rows = Vec::with_capacity(jobs.len());
    for job in jobs.iter().filter(|job| group_of(job).is_none()) {
        rows.push(job);
        rows.extend(items.remove(&job.id).unwrap_or_default());
    }
    rows
}

/// The time in which the items of a job with `for_each` ran, as far as they are known; else the time from which it could begin.
fn items_span(job: &JobOfRun, jobs: &[&JobOfRun], now_ms: i64) -> Option<Span> {
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

/// The folded times. Their lengths stand in the axis where the texts do not overlap.
fn folds(axis: &Axis) -> Vec<FoldText> {
    let mut last = f64::NEG_INFINITY;
    let text = |fold: Fold| {
        let middle = ((fold.from + fold.until) / 2.0).clamp(LABEL_HALF, 1.0 - LABEL_HALF);
        let has_room = middle - last >= 2.0 * LABEL_HALF;
        if has_room {
            last = middle;
        }
        FoldText {
            x: percent(fold.from),
            width: percent(fold.until - fold.from),
            text: format!("{} without an attempt", duration(fold.duration_ms)),
            label: has_room.then(|| (percent(middle), short(fold.duration_ms))),
        }
    };
    axis.folds().into_iter().map(text).collect()
}

fn folded(axis: &Axis, folds: &[FoldText]) -> Option<Folded> {
    let lengths: Vec<String> = axis.folds().iter().map(|fold| short(fold.duration_ms)).collect();
    let text = format!("Times without an attempt are folded: {}.", lengths.join(", "));
    let is_in_axis = folds.iter().all(|fold| fold.label.is_some());
    (!lengths.is_empty()).then_some(Folded { text, is_in_axis })
}

fn ticks(axis: &Axis, from_ms: i64, times: &Times) -> Vec<TickText> {
    let has_folds = !axis.folds().is_empty();
    let ticks = axis.ticks();
    let is_short = ticks.windows(2).any(|pair| pair[1].at_ms - pair[0].at_ms < 60_000);
    ticks
        .into_iter()
        .map(|tick| TickText {
            x: percent(tick.at),
            is_near: tick.at_ms != from_ms && tick.at < NEAR_MAX,
            text: match (tick.at_ms == from_ms, has_folds) {
                (true, _) => times.second(tick.at_ms),
                (false, true) if is_short => times.second(tick.at_ms),
                (false, true) => times.minute(tick.at_ms),
                (false, false) => format!("+{}", short(tick.at_ms - from_ms)),
            },
        })
        .collect()
}

/// A duration of whole units without zeros at its end: `2m` for `2m 00s`.
fn short(duration_ms: i64) -> String {
    let text = duration(duration_ms);
    text.strip_suffix(" 00s")
        .or(text.strip_suffix(" 00m"))
        .or(text.strip_suffix(" 0h"))
        .unwrap_or(&text)
        .to_owned()
}

fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

/// The parts of the life of a job, in the order of time.
fn life(job: &JobOfRun, attempts: &[Attempt], now_ms: i64) -> Vec<Span> {
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
        SpanSort::Backoff => format!("{lasted} until the next try"),
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

fn row(job: &JobOfRun, life: &[Span], axis: &Axis) -> TimelineRow {
    let look = Look::of_job(job.status, Failure::of(job.allow_failure));
    let attempts: Vec<&Span> = life.iter().filter(|span| span.sort.is_attempt()).collect();
    let timed = life.iter().filter(|span| span.sort.is_attempt() || span.sort == SpanSort::Items);
    let took_ms: Vec<i64> = timed.map(|span| span.until_ms - span.from_ms).collect();
    let note = match (job.status, attempts.len()) {
        (JobStatus::Skipped, _) => "skipped".to_owned(),
        (JobStatus::Blocked, _) => String::new(),
        (JobStatus::Waiting | JobStatus::Scheduled | JobStatus::Pending, 0 | 1) => "waits".to_owned(),
        (JobStatus::Cancelled, _) => "cancelled".to_owned(),
        (_, tries @ 2..) => format!("{tries} tries"),
        _ if job.allow_failure => "may fail".to_owned(),
        _ => String::new(),
    };
    TimelineRow {
        id: job.id,
        name: job.name.clone(),
        look,
        note,
        bars: life.iter().map(|span| bar(span, axis)).collect(),
        texts: texts(job, life, axis),
        took: if took_ms.is_empty() { String::new() } else { duration(took_ms.iter().sum()) },
        label: life.iter().map(|span| span.title.as_str()).collect::<Vec<_>>().join("; "),
    }
}

fn bar(span: &Span, axis: &Axis) -> Bar {
    let (from, until) = (axis.place(span.from_ms), axis.place(span.until_ms));
    let least = if span.sort.is_attempt() { BAR_MIN } else { 0.0 };
    let width = (until - from).max(least);
    Bar {
        class: span.sort.class(),
        x: percent(from.min(1.0 - width)),
        width: percent(width),
        title: span.title.clone(),
    }
}

/// What stands beside the bars: how long a job was ready, and how it failed though that does not matter.
fn texts(job: &JobOfRun, life: &[Span], axis: &Axis) -> Vec<BarText> {
    let mut texts = Vec::new();
    if let Some(first) = life.first().filter(|span| span.sort == SpanSort::Ready) {
        let (from, until) = (axis.place(first.from_ms), axis.place(first.until_ms));
        // The text is to the left of the bar, so it needs room there.
        if until - from > NAMED_MIN && from > 0.12 {
            let text = format!("{} ready", duration(first.until_ms - first.from_ms));
            texts.push(BarText { class: "end", x: percent(from), text });
        }
    }
    if let (true, JobStatus::Failed, Some(last)) = (job.allow_failure, job.status, life.last()) {
        let at = axis.place(last.until_ms);
        if at < 0.75 {
            let error = job.error.as_deref().map_or("failed", windlass_engine::store::first_line);
            let short: String = error.chars().take(40).collect();
            texts.push(BarText { class: "start", x: percent(at), text: format!("{short}, allowed") });
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(status: JobStatus, started_at: Option<i64>, finished_at: Option<i64>) -> JobOfRun {
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

    #[test]
    fn the_axis_says_how_long_a_folded_time_is() {
        let times = Times { zone: chrono_tz::Tz::UTC, now_ms: 100_000_000 };
        let night = 36_000_000;
        let jobs = [
            job(JobStatus::Successful, Some(0), Some(60_000)),
            job(JobStatus::Successful, Some(night), Some(night + 60_000)),
        ];
        let timeline = Timeline::new(&jobs, &BTreeMap::new(), 0, &times);
        let labels: Vec<&str> =
            timeline.folds.iter().filter_map(|fold| Some(fold.label.as_ref()?.1.as_str())).collect();
        assert_eq!(labels, ["9h 58m"]);
        let folded = timeline.folded.map(|folded| (folded.text, folded.is_in_axis));
        assert_eq!(folded, Some(("Times without an attempt are folded: 9h 58m.".to_owned(), true)));
    }

    #[test]
    fn items_stand_below_their_job_whose_bar_spans_them() {
        let times = Times { zone: chrono_tz::Tz::UTC, now_ms: 50_000 };
        let named = |id: i64, name: &str, job: JobOfRun| JobOfRun { id, name: name.to_owned(), ..job };
        let group = JobOfRun {
            kind: GROUP_KIND.to_owned(),
            ..named(1, "each", job(JobStatus::Failed, None, Some(40_000)))
        };
        let item = |id, name, from, until| JobOfRun {
            group_id: Some(1),
            ..named(id, name, job(JobStatus::Successful, Some(from), Some(until)))
        };
        let after = named(2, "after", job(JobStatus::Skipped, None, None));
        let jobs =
            [group.clone(), after, item(3, "each[0]", 20_000, 30_000), item(4, "each[1]", 30_000, 40_000)];
        let timeline = Timeline::new(&jobs, &BTreeMap::new(), 0, &times);
        let names: Vec<&str> = timeline.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["each", "each[0]", "each[1]", "after"]);
        let row = &timeline.rows[0];
        assert_eq!(
            (row.bars[0].class, row.took.as_str(), row.label.as_str()),
            ("g", "20s", "all items, 20s")
        );
        assert_eq!(
            timeline.legend[..2],
            [("k", "ran"), ("g", "all items")],
            "only what is there is explained"
        );
        // A window of a large run has no items.
        let alone = Timeline::new(&[group], &BTreeMap::new(), 0, &times);
        assert_eq!((alone.rows[0].took.as_str(), alone.folds.len()), ("30s", 0));
    }

    #[test]
    fn a_short_attempt_can_be_seen() {
        let times = Times { zone: chrono_tz::Tz::UTC, now_ms: 10_000_000 };
        let jobs = [
            JobOfRun { needed_until: None, ..job(JobStatus::Successful, Some(0), Some(9_000_000)) },
            job(JobStatus::Successful, Some(8_999_999), Some(9_000_000)),
        ];
        let timeline = Timeline::new(&jobs, &BTreeMap::new(), 0, &times);
        let last = timeline.rows[1].bars.last().map(|bar| (bar.x.as_str(), bar.width.as_str()));
        assert_eq!(last, Some(("99.60%", "0.40%")));
    }
}
