//! The output of one job: the lines that are kept, and which of them are in sight.

use std::collections::VecDeque;

use windlass_engine::store::{LogLine, LogStream};

use super::data::Placement;
use super::rows::safe;
use super::state::Movement;

/// The most lines that are kept.
const LINES_MAX: usize = 2_000;
/// The longest line that is kept, in characters. `windlass logs` shows all of it.
const LINE_MAX: usize = 2_000;

/// A line as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputLine {
    pub(super) sort: LineSort,
    pub(super) at_ms: i64,
    pub(super) text: String,
}

/// Where a line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSort {
    Stdout,
    Stderr,
    /// The engine, or the heading of an attempt.
    Engine,
}

/// A job and its output.
#[derive(Debug, Default)]
pub(super) struct Output {
    job: Option<(i64, String)>,
    lines: VecDeque<OutputLine>,
    /// The attempt of the last line.
    attempt: i64,
    is_read: bool,
    is_over: bool,
    /// A person opened it, so that another selection among the running jobs does not replace it.
    pinning: Pinning,
    /// The first line in sight; `None` if the last lines are.
    top: Option<usize>,
    /// So many columns are out of sight to the left.
    pub(super) left: usize,
}

/// Whether the output stays when another job is selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Pinning {
    #[default]
    Free,
    Pinned,
}

impl Output {
    /// The name of the job.
    pub(super) fn job(&self) -> Option<&str> {
        self.job.as_ref().map(|(_id, name)| name.as_str())
    }

    pub(super) fn lines(&self) -> &VecDeque<OutputLine> {
        &self.lines
    }

    /// Whether its lines were read.
    pub(super) fn is_read(&self) -> bool {
        self.is_read
    }

    /// Whether the job has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn attempt(&self) -> i64 {
        self.attempt
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pinning == Pinning::Pinned
    }

    pub(super) fn pin(&mut self) {
        self.pinning = Pinning::Pinned;
    }

    pub(super) fn unpin(&mut self) {
        self.pinning = Pinning::Free;
    }

    /// Shows a job. Returns whether it is another one than before.
    pub(super) fn open(&mut self, job_id: i64, name: String) -> bool {
        if self.job.as_ref().is_some_and(|(known, _name)| *known == job_id) {
            return false;
        }
        *self = Output { job: Some((job_id, name)), ..Output::default() };
        true
    }

    /// Takes up lines that were read, if they are of this job.
    pub(super) fn take(&mut self, job_id: i64, lines: Vec<LogLine>, placement: Placement, is_over: bool) {
        if self.job.as_ref().is_none_or(|(known, _name)| *known != job_id) {
            return;
        }
        if placement == Placement::InPlaceOfAll {
            self.lines.clear();
            self.attempt = 0;
            self.top = None;
        }
        (self.is_read, self.is_over) = (true, is_over);
        for line in lines {
            if self.attempt > 0 && line.attempt > self.attempt {
                let text = format!("attempt {}", line.attempt);
                self.push(OutputLine { sort: LineSort::Engine, at_ms: line.at, text });
            }
            self.attempt = line.attempt;
            let sort = match line.stream {
                LogStream::Stdout => LineSort::Stdout,
                LogStream::Stderr => LineSort::Stderr,
                LogStream::Engine => LineSort::Engine,
            };
            let text = safe(&line.text).chars().take(LINE_MAX).collect();
            self.push(OutputLine { sort, at_ms: line.at, text });
        }
    }

    fn push(&mut self, line: OutputLine) {
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
            // The same lines stay in sight.
            self.top = self.top.map(|top| top.saturating_sub(1));
        }
        self.lines.push_back(line);
    }

    /// The first line in sight, if `height` lines are.
    pub(super) fn top(&self, height: usize) -> usize {
        let last = self.lines.len().saturating_sub(height);
        self.top.map_or(last, |top| top.min(last))
    }

    /// How many lines are below those in sight, if the output is not followed.
    pub(super) fn lines_below(&self, height: usize) -> Option<usize> {
        self.top.map(|_top| self.lines.len().saturating_sub(self.top(height) + height))
    }

    /// Moves the lines in sight. At the end, the output is followed.
    pub(super) fn scroll(&mut self, movement: Movement, height: usize) {
        let places = self.lines.len().saturating_sub(height) + 1;
        let top = movement.apply(self.top(height), places, height.max(1));
        let is_at_the_end = top + 1 == places && movement != Movement::First;
        self.top = (!is_at_the_end).then_some(top);
    }

    pub(super) fn move_left(&mut self, columns: usize) {
        self.left = self.left.saturating_sub(columns);
    }

    pub(super) fn move_right(&mut self, columns: usize) {
        self.left = self.left.saturating_add(columns).min(LINE_MAX);
    }
}
