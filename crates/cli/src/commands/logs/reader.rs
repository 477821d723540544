//! Reads the output of jobs page by page and formats it.

use std::collections::HashMap;

use windlass_engine::store::{Job, LogLine, LogPosition, LogStream};
use windlass_views::LogView;

use super::selection::{LineSelection, PAGE_LINES};
use crate::database::Database;
use crate::error::Failure;
use crate::text::style::{CYAN, DIM, YELLOW, coloured, paint, printable};
use crate::text::time;

/// The widest column of job names.
const MAX_NAME_COLUMNS: usize = 30;

/// Whether each line begins with the time at which it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timestamps {
    Shown,
    Hidden,
}

/// The position in the output of each job.
#[derive(Debug)]
pub(super) struct Reader {
    selection: LineSelection,
    timestamps: Timestamps,
    positions: HashMap<i64, LogPosition>,
    /// The jobs whose output was read completely, with their last attempt.
    finished: HashMap<i64, i64>,
    /// The width of the job names before the lines. A single job has no name before its lines.
    name_width: Option<usize>,
}

/// Some lines of one job, in order.
#[derive(Debug)]
pub(super) struct Page {
    timestamps: Timestamps,
    lines: Vec<LogLine>,
    /// The attempt of the line before the first.
    attempt_before: i64,
    /// The text before each line.
    prefix: String,
}

impl Reader {
    /// With several `names`, each line begins with the name of its job.
    pub(super) fn new(selection: LineSelection, timestamps: Timestamps, names: &[String]) -> Reader {
        let widest = names.iter().map(|name| console::measure_text_width(name)).max();
        let name_width = widest.filter(|_| names.len() > 1).map(|width| width.min(MAX_NAME_COLUMNS));
        Reader { selection, timestamps, positions: HashMap::new(), finished: HashMap::new(), name_width }
    }

    /// The next lines of a job, or `None` if there are no more lines yet.
    pub(super) fn next_page(
        &mut self,
        database: &Database,
        job: &Job,
        name: &str,
    ) -> Result<Option<Page>, Failure> {
        if self.finished.get(&job.id) == Some(&job.attempt) {
            return Ok(None);
        }
        let position = match self.positions.get(&job.id) {
            Some(position) => *position,
            None => self.selection.start(database, job.id)?,
        };
        let mut lines = database.ask(|store| store.logs().after(position, PAGE_LINES))?;
        if let Some(wanted) = self.selection.attempt {
            lines.retain(|line| line.attempt == wanted);
        }
        let Some(last) = lines.last() else {
            self.positions.insert(job.id, position);
            // The state was read before the lines: an attempt that had ended wrote no more lines.
            if job.status.is_terminal() {
                self.finished.insert(job.id, job.attempt);
            }
            return Ok(None);
        };
        self.positions.insert(job.id, LogPosition { job_id: job.id, attempt: last.attempt, line: last.line });
        lines.retain(|line| self.selection.takes(line));
        let prefix = self.name_width.map(|width| prefix(name, width)).unwrap_or_default();
        Ok(Some(Page { timestamps: self.timestamps, lines, attempt_before: position.attempt, prefix }))
    }
}

fn prefix(name: &str, width: usize) -> String {
    let padded = console::pad_str(name, width, console::Alignment::Left, None);
    format!("{} {} ", paint(CYAN, padded), paint(DIM, "|"))
}

impl Page {
    /// Whether no line of it is shown.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines for people. A heading marks the start of the second attempt and later ones.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut attempt = self.attempt_before;
        for line in &self.lines {
            if line.attempt != attempt {
                attempt = line.attempt;
                if attempt > 1 {
                    let heading = paint(DIM, format!("── attempt {attempt} ──"));
                    text.push_str(&format!("{}{heading}\n", self.prefix));
                }
            }
            let words = match line.stream {
                LogStream::Stdout | LogStream::Stderr => coloured(&line.text).into_owned(),
                LogStream::Engine => paint(YELLOW, format!("[windlass] {}", printable(&line.text))),
            };
            let at = match self.timestamps {
                Timestamps::Hidden => String::new(),
                Timestamps::Shown => format!("{} ", paint(DIM, time::log_time(line.at))),
            };
            text.push_str(&format!("{at}{}{words}\n", self.prefix));
        }
        text
    }

    /// The lines for programs.
    pub(super) fn views(&self, job: &Job) -> Vec<LogView> {
        let view = |line: &LogLine| LogView::new(job.run_id, job.name.as_deref(), line.clone());
        self.lines.iter().map(view).collect()
    }
}
