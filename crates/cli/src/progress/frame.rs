//! The live view: a bar with counts, and below it the running jobs with their last lines, and those that wait for a
//! retry.

use std::collections::HashMap;

use console::truncate_str;
use windlass_engine::store::LogLine;

use super::tracker::{Counts, JobState, Tracker};
use crate::text::style::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, headline, paint, printable};
use crate::text::time;

/// How many jobs are named. The others are counted.
const MAX_NAMED: usize = 8;
/// How many lines of output a job shows, if it is the only one and if there are several.
const MAX_TAIL_LINES_ALONE: usize = 5;
const MAX_TAIL_LINES: usize = 3;
/// The widest bar.
const MAX_BAR_COLUMNS: usize = 30;
/// The widest name of a job.
const MAX_NAME_COLUMNS: usize = 40;

/// The size of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Canvas {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// How many of the running jobs are named.
pub(super) fn named_jobs(canvas: Canvas, running: usize) -> usize {
    running.min(capacity(canvas).min(MAX_NAMED))
}

/// How many lines of output each of the named jobs may show.
pub(super) fn tail_lines(canvas: Canvas, named: usize) -> usize {
    let most = if named == 1 { MAX_TAIL_LINES_ALONE } else { MAX_TAIL_LINES };
    (capacity(canvas).saturating_sub(named) / named.max(1)).min(most)
}

/// How many rows there are below the bar. The last two rows of the terminal stay free for the cursor and a wrapped
/// line.
fn capacity(canvas: Canvas) -> usize {
    canvas.rows.saturating_sub(4).max(1)
}

/// The lines of the view. They fit on the terminal.
pub(super) fn draw(
    tracker: &Tracker,
    tails: &HashMap<i64, Vec<LogLine>>,
    began_ms: i64,
    now_ms: i64,
    canvas: Canvas,
) -> Vec<String> {
    let mut lines = vec![summary(tracker.counts(), now_ms - began_ms, canvas.columns)];
    let running = tracker.running();
    let retrying = tracker.retrying();
    let capacity = capacity(canvas);
    let named_running = named_jobs(canvas, running.len());
    let tail_lines = tail_lines(canvas, named_running);
    let named_retrying = retrying.len().min(capacity.min(MAX_NAMED) - named_running);
    let width = running[..named_running]
        .iter()
        .chain(&retrying[..named_retrying])
        .map(|job| console::measure_text_width(&short_name(job)))
        .max()
        .unwrap_or(0);
    for job in &running[..named_running] {
        lines.push(running_line(job, now_ms, width));
        let tail = tails.get(&job.id).map(Vec::as_slice).unwrap_or_default();
        lines.extend(tail[tail.len().saturating_sub(tail_lines)..].iter().map(tail_line));
    }
    let left = (capacity + 1).saturating_sub(lines.len());
    for job in retrying[..named_retrying].iter().take(left) {
        lines.push(retrying_line(job, now_ms, width));
    }
    let hidden = running.len() - named_running;
    if hidden > 0 {
        lines.push(paint(DIM, format!("  … and {hidden} more running")));
    }
    lines.iter().map(|line| truncate_str(line, canvas.columns.saturating_sub(1), "…").into_owned()).collect()
}

/// A line of a running job, in one colour: it is there for a moment.
fn tail_line(line: &LogLine) -> String {
    paint(DIM, format!("    {}", printable(&line.text).replace('\t', "    ")))
}

fn summary(counts: Counts, elapsed_ms: i64, columns: usize) -> String {
    let mut parts = vec![format!("{}/{} jobs", counts.done(), counts.total)];
    let allowed = if counts.allowed_failures == 1 { "allowed failure" } else { "allowed failures" };
    let others = [
        (CYAN, counts.running, "running"),
        (RED, counts.failed, "failed"),
        (YELLOW, counts.allowed_failures, allowed),
        (DIM, counts.skipped, "skipped"),
        (YELLOW, counts.cancelled, "cancelled"),
    ];
    for (style, count, word) in others {
        if count > 0 {
            parts.push(paint(style, format!("{count} {word}")));
        }
    }
    parts.push(time::elapsed(elapsed_ms));
    let text = parts.join(&paint(DIM, " · "));
    let left = columns.saturating_sub(console::measure_text_width(&text) + 3);
    match left.min(MAX_BAR_COLUMNS) {
        0..5 => text,
        bar_columns => format!("{}  {text}", bar(counts, bar_columns)),
    }
}

/// Successful jobs in green, failed ones in red, allowed failures and cancelled ones in yellow, skipped ones dim, the rest as a
/// thin line.
fn bar(counts: Counts, columns: usize) -> String {
    let total = counts.total.max(1);
    let parts = [
        (GREEN, counts.successful),
        (RED, counts.failed),
        (YELLOW, counts.allowed_failures + counts.cancelled),
        (DIM, counts.skipped),
    ];
    let (mut text, mut jobs, mut drawn) = (String::new(), 0, 0);
    for (style, count) in parts {
        jobs += count;
        let end = columns * jobs.min(total) / total;
        if end > drawn {
            text.push_str(&paint(style, "━".repeat(end - drawn)));
        }
        drawn = end;
    }
    text.push_str(&paint(DIM, "─".repeat(columns - drawn)));
    text
}

fn short_name(job: &JobState) -> String {
    headline(&job.name, MAX_NAME_COLUMNS)
}

fn running_line(job: &JobState, now_ms: i64, width: usize) -> String {
    let name = pad(&short_name(job), width);
    let since = time::elapsed(now_ms - job.started_at_ms.unwrap_or(now_ms));
    let attempt = match job.attempt {
        ..=1 => String::new(),
        attempt => paint(DIM, format!("  attempt {attempt}")),
    };
    format!("  {} {}  {since}{attempt}", paint(CYAN, "›"), paint(BOLD, name))
}

fn retrying_line(job: &JobState, now_ms: i64, width: usize) -> String {
    let name = pad(&short_name(job), width);
    // Rounded up, so that the countdown ends at 1s and not at 0s.
    let wait_ms = (job.execute_after_ms - now_ms).max(0) + 999;
    let (failures, max) = (job.failures, job.max_attempts);
    let wait = format!("retrying in {}  failed {failures} of {max}", time::elapsed(wait_ms));
    format!("  {} {name}  {}", paint(YELLOW, "↻"), paint(DIM, wait))
}

fn pad(text: &str, width: usize) -> String {
    console::pad_str(text, width, console::Alignment::Left, None).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::examples::job;
    use windlass_engine::JobStatus;
    use windlass_engine::store::LogStream;

    fn running(id: i64, started_at_ms: i64) -> JobState {
        JobState { attempt: 1, started_at_ms: Some(started_at_ms), ..job(id, JobStatus::Running) }
    }

    fn view(tracker: &Tracker, columns: usize, rows: usize) -> Vec<String> {
        view_with(tracker, &HashMap::new(), columns, rows)
    }

    fn view_with(
        tracker: &Tracker,
        tails: &HashMap<i64, Vec<LogLine>>,
        columns: usize,
        rows: usize,
    ) -> Vec<String> {
        draw(tracker, tails, 0, 67_000, Canvas { columns, rows })
            .iter()
            .map(|line| anstream::adapter::strip_str(line).to_string())
            .collect()
    }

    #[test]
    fn the_view_shows_counts_running_jobs_and_retries() {
        let waiting = JobState {
            failures: 1,
            max_attempts: 3,
            execute_after_ms: 69_500,
            ..job(3, JobStatus::Scheduled)
        };
        let tracker = Tracker::new(
            10,
            [job(1, JobStatus::Successful), running(2, 60_000), waiting, job(4, JobStatus::Failed)],
        );
        let expected = [
            "━━━━━━────────────────────────  2/10 jobs · 1 running · 1 failed · 1m 07s",
            "  › job2  7s",
            "  ↻ job3  retrying in 3s  failed 1 of 3",
        ];
        assert_eq!(view(&tracker, 80, 24), expected);
    }

    #[test]
    fn the_view_fits_on_the_terminal() {
        let mut states: Vec<JobState> = (1..=100).map(|id| running(id, id)).collect();
        states[0].name = "a-very-long-name-".repeat(20);
        let tracker = Tracker::new(1_000, states);
        let tails =
            (1..=100).map(|id| (id, vec![line(&"wörd ".repeat(100)), line("x"), line("y")])).collect();
        for (columns, rows) in [(20, 6), (40, 10), (80, 24), (200, 60)] {
            let lines = view_with(&tracker, &tails, columns, rows);
            assert!(lines.len() < rows, "{columns}x{rows}: {lines:#?}");
            for line in &lines {
                let width = console::measure_text_width(line);
                assert!(width < columns, "{columns}x{rows}: {line}");
            }
        }
        assert_eq!(view(&tracker, 80, 24).last().map(String::as_str), Some("  … and 92 more running"));
    }

    fn line(text: &str) -> LogLine {
        LogLine { job_id: 1, attempt: 1, line: 1, at: 0, stream: LogStream::Stdout, text: text.to_owned() }
    }

    #[test]
    fn running_jobs_show_their_last_lines() {
        let tails = HashMap::from([
            (1, ["one", "two", "three", "four"].map(line).to_vec()),
            (2, vec![line("\u{1b}[31mred\u{1b}[0m\tcell")]),
        ]);
        let tracker = Tracker::new(3, [running(1, 60_000), running(2, 61_000)]);
        let lines = view_with(&tracker, &tails, 80, 24);
        let expected =
            ["  › job1  7s", "    two", "    three", "    four", "  › job2  6s", "    red    cell"];
        assert_eq!(lines[1..], expected);
        let small = view_with(&tracker, &tails, 80, 6);
        assert_eq!(small[1..], ["  › job1  7s", "  › job2  6s"]);
    }
}
