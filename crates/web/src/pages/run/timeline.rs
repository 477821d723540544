//! The timeline: a row for each job, a bar for each attempt, and the times between.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::JobStatus;
use windlass_engine::decide::for_each::GROUP_KIND;
use windlass_engine::store::{Attempt, JobOfRun};

use super::axis::{Axis, Fold};
use super::life::{Span, SpanSort, items_span, life};
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
        (_, attempts @ 2..) => format!("{attempts} attempts"),
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
    use super::super::life::tests::job;
    use super::*;

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
