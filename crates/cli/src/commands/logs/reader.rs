//! Reads the output of jobs page by page and formats it.

use std::collections::HashMap;

use windlass_engine::store::{Job, LogLine, LogPosition, LogStream};
use windlass_views::LogView;

use crate::database::Database;
use crate::error::Failure;
use crate::text::style::{CYAN, DIM, YELLOW, coloured, paint, printable};

/// How many lines one page has.
const PAGE_LINES: i64 = 1_000;
/// The widest column of job names.
const MAX_NAME_COLUMNS: usize = 30;

/// The position in the output of each job.
#[derive(Debug)]
pub(super) struct Reader {
    /// Show only this attempt.
    attempt: Option<i64>,
    positions: HashMap<i64, LogPosition>,
    /// The jobs whose output was read completely, with their last attempt.
    finished: HashMap<i64, i64>,
    /// The width of the job names before the lines. A single job has no name before its lines.
    name_width: Option<usize>,
}

/// Some lines of one job, in order.
#[derive(Debug)]
pub(super) struct Page {
    lines: Vec<LogLine>,
    /// The attempt of the line before the first.
    attempt_before: i64,
    /// The text before each line.
    prefix: String,
}

impl Reader {
    /// With several `names`, each line begins with the name of its job.
    pub(super) fn new(attempt: Option<i64>, names: &[String]) -> Reader {
        let widest = names.iter().map(|name| console::measure_text_width(name)).max();
        let name_width = widest.filter(|_| names.len() > 1).map(|width| width.min(MAX_NAME_COLUMNS));
        Reader { attempt, positions: HashMap::new(), finished: HashMap::new(), name_width }
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
        let start = LogPosition {
            job_id: job.id,
            attempt: self.attempt.map_or(0, |attempt| attempt - 1),
            line: i64::MAX,
        };
        let position = *self.positions.entry(job.id).or_insert(start);
        let mut lines = database.ask(|store| store.logs().after(position, PAGE_LINES))?;
        if let Some(wanted) = self.attempt {
            lines.retain(|line| line.attempt == wanted);
        }
        let Some(last) = lines.last() else {
            // The state was read before the lines: an attempt that had ended wrote no more lines.
            if job.status.is_terminal() {
                self.finished.insert(job.id, job.attempt);
            }
            return Ok(None);
        };
        self.positions.insert(job.id, LogPosition { job_id: job.id, attempt: last.attempt, line: last.line });
        let prefix = self.name_width.map(|width| prefix(name, width)).unwrap_or_default();
        Ok(Some(Page { lines, attempt_before: position.attempt, prefix }))
    }
}

fn prefix(name: &str, width: usize) -> String {
    let padded = console::pad_str(name, width, console::Alignment::Left, None);
    format!("{} {} ", paint(CYAN, padded), paint(DIM, "|"))
}

impl Page {
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
            text.push_str(&format!("{}{words}\n", self.prefix));
        }
        text
    }

    /// The lines for programs.
    pub(super) fn views(&self, job: &Job) -> Vec<LogView> {
        let view = |line: &LogLine| LogView::new(job.run_id, job.name.as_deref(), line.clone());
        self.lines.iter().map(view).collect()
    }
}
