//! The rows of the lists: what each cell says, and how it looks.

use windlass_engine::store::{Count, FailureGroup, JobSummary, Order, Queue};

use super::data::{FailedRun, GroupName, Lists};
use super::layout::Column;
use super::state::Part;
use crate::text::style::printable;
use crate::text::time;

/// The most rows of a list.
const ROWS_MAX: usize = 1_000;

/// How a cell looks. A terminal without colours shows some of them as bold or dim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    Dim,
    Running,
    Waiting,
    Failed,
}

/// A text of one line in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) look: Look,
}

/// What a row stands for. It stays selected while the list changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    Queue(String),
    Job(i64),
    Group(GroupName),
}

/// A row of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) identity: Identity,
    pub(super) cells: Vec<Cell>,
}

pub(super) const QUEUES: &[Column] = &[
    Column::shrinking("QUEUE"),
    Column::left("STATE"),
    Column::right("READY"),
    Column::right("RUNNING"),
    Column::right("LATER").optional(1),
    Column::right("WAITING").optional(2),
    Column::right("OLDEST"),
    Column::left("LIMITS").optional(3),
];
pub(super) const RUNNING: &[Column] = &[
    Column::left("JOB"),
    Column::shrinking("NAME"),
    Column::left("KIND").optional(1),
    Column::left("QUEUE").optional(2),
    Column::right("ATTEMPT").optional(3),
    Column::right("SINCE"),
    Column::right("WORKER"),
];
pub(super) const FAILURES: &[Column] = &[
    Column::right("FAILED"),
    Column::left("WORKFLOW"),
    Column::left("JOB"),
    Column::right("LAST"),
    Column::shrinking("ERROR"),
];
pub(super) const RUNS: &[Column] =
    &[Column::left("RUN"), Column::left("JOB"), Column::left("NAME"), Column::shrinking("ERROR")];

/// The columns of a list. The output of a job has none.
pub(super) fn columns(part: Part) -> &'static [Column] {
    match part {
        Part::Queues => QUEUES,
        Part::Running => RUNNING,
        Part::Failures => FAILURES,
        Part::Output => &[],
    }
}

/// The rows of a list that have the text of the filter in one of their cells.
pub(super) fn rows(part: Part, lists: &Lists, filter: &str, now_ms: i64) -> Vec<Row> {
    let all: Vec<Row> = match part {
        Part::Queues => lists
            .queues
            .iter()
            .take(ROWS_MAX)
            .map(|queue| {
                let since = lists.oldest.get(&queue.name).map(|oldest| oldest.since);
                queue_row(queue, since, now_ms)
            })
            .collect(),
        Part::Running => lists.running.iter().map(|job| job_row(job, now_ms)).collect(),
        Part::Failures => {
            lists.failures.groups.iter().take(ROWS_MAX).map(|group| group_row(group, now_ms)).collect()
        }
        Part::Output => Vec::new(),
    };
    let wanted = filter.to_lowercase();
    all.into_iter()
        .filter(|row| {
            wanted.is_empty() || row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&wanted))
        })
        .collect()
}

/// The cells of a run of a group of failures.
pub(super) fn failed_run_cells(run: &FailedRun) -> Vec<Cell> {
    let number = run.run_id.map_or_else(String::new, |run_id| run_id.to_string());
    vec![
        plain(number),
        plain(format!("j{}", run.job_id)),
        plain(safe(&run.job)),
        Cell { text: first_line(&run.error), look: Look::Failed },
    ]
}

/// The name of a job for people: `3/load`, or the kind of a job without a run.
pub(super) fn job_name(job: &JobSummary) -> String {
    match (job.run_id, &job.name) {
        (Some(run_id), Some(name)) => format!("{run_id}/{}", safe(name)),
        (Some(run_id), None) => format!("{run_id}/"),
        (None, Some(name)) => safe(name),
        (None, None) => safe(&job.kind),
    }
}

/// A text from outside in one line, without anything that a terminal would obey: escape sequences, control characters, and
/// characters that turn the direction of writing.
pub(super) fn safe(text: &str) -> String {
    let is_turning = |c: char| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    printable(text).chars().filter(|c| !is_turning(*c)).map(|c| if c == '\t' { ' ' } else { c }).collect()
}

fn plain(text: String) -> Cell {
    Cell { text, look: Look::Plain }
}

/// A count. A plus says that there are more.
fn number(count: Count, look: Look) -> Cell {
    let more = if count.is_exact { "" } else { "+" };
    Cell { text: format!("{}{more}", count.number), look: if count.number == 0 { Look::Dim } else { look } }
}

fn queue_row(queue: &Queue, oldest_since: Option<i64>, now_ms: i64) -> Row {
    let state = match queue.paused_at {
        Some(at_ms) => Cell {
            text: format!("paused {}", time::elapsed(now_ms.saturating_sub(at_ms))),
            look: Look::Waiting,
        },
        None => Cell { text: "active".to_owned(), look: Look::Dim },
    };
    let oldest = oldest_since.map_or_else(String::new, |since| time::elapsed(now_ms.saturating_sub(since)));
    Row {
        identity: Identity::Queue(queue.name.clone()),
        cells: vec![
            plain(safe(&queue.name)),
            state,
            number(queue.pending, Look::Waiting),
            number(queue.running, Look::Running),
            number(queue.scheduled, Look::Plain),
            number(queue.waiting, Look::Waiting),
            plain(oldest),
            Cell { text: limits(queue), look: Look::Dim },
        ],
    }
}

fn limits(queue: &Queue) -> String {
    let mut limits = Vec::new();
    limits.extend(queue.max_running.map(|most| format!("{most} at a time")));
    limits.extend(queue.rate.map(|rate| format!("{} in {}", rate.jobs, time::duration(rate.interval_ms))));
    match queue.order {
        Order::Arrival => limits.push("in order of arrival".to_owned()),
        Order::Priority => {}
    }
    limits.join(", ")
}

fn job_row(job: &JobSummary, now_ms: i64) -> Row {
    let since = job.started_at.map_or_else(String::new, |at_ms| time::elapsed(now_ms.saturating_sub(at_ms)));
    let attempt = if job.attempt > 1 { job.attempt.to_string() } else { String::new() };
    Row {
        identity: Identity::Job(job.id),
        cells: vec![
            plain(format!("j{}", job.id)),
            plain(job_name(job)),
            Cell { text: safe(&job.kind), look: Look::Dim },
            Cell { text: safe(&job.queue), look: Look::Dim },
            plain(attempt),
            Cell { text: since, look: Look::Running },
            plain(job.worker_id.map_or_else(String::new, |id| id.to_string())),
        ],
    }
}

fn group_row(group: &FailureGroup, now_ms: i64) -> Row {
    let count = group.run_ids.len() + group.job_ids.len();
    let error = if group.error.is_empty() { "no message".to_owned() } else { first_line(&group.error) };
    Row {
        identity: Identity::Group(GroupName::of(group)),
        cells: vec![
            Cell { text: count.to_string(), look: Look::Failed },
            plain(safe(&group.workflow)),
            plain(safe(&group.job)),
            plain(time::relative(group.last_at, now_ms)),
            Cell { text: error, look: Look::Plain },
        ],
    }
}

fn first_line(error: &str) -> String {
    safe(windlass_engine::store::first_line(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_become_plain_ones() {
        let cases = [
            ("\u{1b}[2J\u{1b}[Hgone", "gone"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("a\u{202e}fdp.exe\u{2069}\u{200f}b", "afdp.exeb"),
            ("tab\there", "tab here"),
            ("bell\u{7} c1 \u{9b}31m", "bell c1 31m"),
            ("wide 漢字 ✓", "wide 漢字 ✓"),
        ];
        for (text, expected) in cases {
            assert_eq!(safe(text), expected, "{text:?}");
        }
    }
}
