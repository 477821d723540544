//! Where progress goes: a live view on a terminal, plain lines anywhere else.

use std::time::Duration;

use super::frame::{self, Canvas};
use super::tracker::{Change, Event, Tracker};
use super::{lines, screen};
use crate::style::{DIM, paint, printable};

/// Runs of up to this many jobs show a line for each job that is done; of larger ones, only what
/// went wrong is worth the reader's screen.
const MAX_JOBS_LISTED: usize = 60;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 30;

/// Progress on standard error.
#[derive(Debug)]
pub(crate) enum Display {
    /// A view that is redrawn in place, with what happened above it.
    Live(Live),
    /// One line a change.
    Plain,
}

/// How a live view is laid out.
#[derive(Debug)]
pub(crate) struct Live {
    began_ms: i64,
    name_width: usize,
    lists_successes: bool,
}

impl Display {
    /// A display for standard error as it is, for so many jobs with names of so many columns at most.
    pub(crate) fn for_stderr(began_ms: i64, total: usize, name_columns: usize) -> Display {
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if is_dumb || !console::Term::stderr().features().is_attended() {
            return Display::Plain;
        }
        Display::Live(Live {
            began_ms,
            name_width: name_columns.min(MAX_NAME_COLUMNS),
            lists_successes: total <= MAX_JOBS_LISTED,
        })
    }

    /// How often the display wants to be refreshed when nothing happens.
    pub(crate) fn tick(&self) -> Duration {
        match self {
            Display::Live(_) => Duration::from_millis(200),
            Display::Plain => Duration::from_millis(500),
        }
    }

    /// Tells what happened; `tail` is the last output of a job that failed.
    pub(crate) fn event(&self, event: &Event, tail: &[String]) {
        match self {
            Display::Plain => self.say(&with_tail(lines::plain(event), tail)),
            Display::Live(live) => {
                let is_shown = match event.change {
                    // The view itself says what runs.
                    Change::Started => false,
                    Change::Successful | Change::Skipped => live.lists_successes,
                    Change::Failed | Change::Retrying | Change::Interrupted | Change::Cancelled => true,
                };
                if is_shown {
                    self.say(&with_tail(lines::marked(event, live.name_width), tail));
                }
            }
        }
    }

    /// Draws the view anew.
    pub(crate) fn refresh(&self, tracker: &Tracker, now_ms: i64) {
        match self {
            Display::Plain => {}
            Display::Live(live) => {
                let (rows, columns) = console::Term::stderr().size();
                let canvas = Canvas { columns: usize::from(columns), rows: usize::from(rows) };
                screen::show(frame::draw(tracker, live.began_ms, now_ms, canvas));
            }
        }
    }

    /// Says something above the view.
    pub(crate) fn say(&self, text: &str) {
        screen::write_above(&format!("{text}\n"));
    }

    /// Takes the view away; what was said above it stays.
    pub(crate) fn end(&self) {
        screen::show(Vec::new());
    }
}

/// A line with the last output of the job under it.
fn with_tail(line: String, tail: &[String]) -> String {
    let mut text = line;
    for tail_line in tail {
        text.push('\n');
        text.push_str(&paint(DIM, format!("    | {}", printable(tail_line))));
    }
    text
}
