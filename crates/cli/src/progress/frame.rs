//! The live view: a bar with counts, and below it the running jobs and those that wait for a retry.

use console::truncate_str;

use super::tracker::{Counts, JobState, Tracker};
use crate::text::style::{BOLD, CYAN, DIM, GREEN, RED, YELLOW, headline, paint};
use crate::text::time;

/// How many jobs are named. The others are counted.
const MAX_NAMED: usize = 8;
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

/// The lines of the view. They fit on the terminal.
pub(super) fn draw(tracker: &Tracker, began_ms: i64, now_ms: i64, canvas: Canvas) -> Vec<String> {
    let mut lines = vec![summary(tracker.counts(), now_ms - began_ms, canvas.columns)];
    let running = tracker.running();
    let retrying = tracker.retrying();
    // The last two rows of the terminal stay free for the cursor and a wrapped line.
    let room = canvas.rows.saturating_sub(4).clamp(1, MAX_NAMED);
    let named_running = running.len().min(room);
    let named_retrying = retrying.len().min(room - named_running);
    let width = running[..named_running]
        .iter()
        .chain(&retrying[..named_retrying])
        .map(|job| console::measure_text_width(&short_name(job)))
        .max()
        .unwrap_or(0);
    for job in &running[..named_running] {
        lines.push(running_line(job, now_ms, width));
    }
    for job in &retrying[..named_retrying] {
        lines.push(retrying_line(job, now_ms, width));
    }
    let hidden = running.len() - named_running;
    if hidden > 0 {
        lines.push(paint(DIM, format!("  … and {hidden} more running")));
    }
    lines.iter().map(|line| truncate_str(line, canvas.columns.saturating_sub(1), "…").into_owned()).collect()
}

fn summary(counts: Counts, elapsed_ms: i64, columns: usize) -> String {
    let mut parts = vec![format!("{}/{} jobs", counts.done(), counts.total)];
    let others = [
        (CYAN, counts.running, "running"),
        (RED, counts.failed, "failed"),
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

/// Successful jobs in green, other ended jobs in red, the rest as a thin line.
fn bar(counts: Counts, columns: usize) -> String {
    let total = counts.total.max(1);
    let done = columns * counts.done().min(total) / total;
    let good = columns * counts.successful.min(total) / total;
    format!(
        "{}{}{}",
        paint(GREEN, "━".repeat(good)),
        paint(RED, "━".repeat(done - good)),
        paint(DIM, "─".repeat(columns - done))
    )
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

    fn running(id: i64, started_at_ms: i64) -> JobState {
        JobState { attempt: 1, started_at_ms: Some(started_at_ms), ..job(id, JobStatus::Running) }
    }

    fn view(tracker: &Tracker, columns: usize, rows: usize) -> Vec<String> {
        draw(tracker, 0, 67_000, Canvas { columns, rows })
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
        for (columns, rows) in [(20, 6), (40, 10), (80, 24), (200, 60)] {
            let lines = view(&tracker, columns, rows);
            assert!(lines.len() < rows, "{columns}x{rows}: {lines:#?}");
            for line in &lines {
                let width = console::measure_text_width(line);
                assert!(width < columns, "{columns}x{rows}: {line}");
            }
        }
        assert_eq!(view(&tracker, 80, 24).last().map(String::as_str), Some("  … and 92 more running"));
    }
}
