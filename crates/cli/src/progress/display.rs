//! Shows progress: as a live view on a terminal, as plain lines elsewhere.

use std::time::Duration;

use super::frame::{self, Canvas};
use super::tracker::{Change, Event, Tracker};
use super::{lines, screen};
use crate::text::style::{DIM, paint, printable};

/// A run of up to this many jobs shows a line for each successful job. A larger run shows only problems.
const MAX_JOBS_LISTED: usize = 60;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 30;

/// Progress on standard error.
#[derive(Debug)]
pub(crate) enum Display {
    /// A view that is redrawn in place, with the events above it.
    Live(Live),
    /// One line per event.
    Plain,
}

/// The layout of a live view.
#[derive(Debug)]
pub(crate) struct Live {
    began_ms: i64,
    name_width: usize,
}

impl Display {
    /// A display for standard error. `name_columns` is the width of the longest name.
    pub(crate) fn for_stderr(began_ms: i64, name_columns: usize) -> Display {
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        if is_dumb || !console::Term::stderr().features().is_attended() {
            return Display::Plain;
        }
        Display::Live(Live { began_ms, name_width: name_columns.min(MAX_NAME_COLUMNS) })
    }

    /// How often the display is refreshed if nothing happens.
    pub(crate) fn refresh_interval(&self) -> Duration {
        match self {
            Display::Live(_) => Duration::from_millis(200),
            Display::Plain => Duration::from_millis(500),
        }
    }

    /// Shows an event. `tail` is the last output of a failed job, `total` the number of jobs.
    pub(crate) fn event(&self, event: &Event, tail: &[String], total: usize) {
        match self {
            Display::Plain => self.say(&with_tail(lines::plain(event), tail)),
            Display::Live(live) => {
                let is_shown = match event.change {
                    // The view itself shows running jobs.
                    Change::Started => false,
                    Change::Successful | Change::Skipped => total <= MAX_JOBS_LISTED,
                    Change::Failed | Change::Retrying | Change::Interrupted | Change::Cancelled => true,
                };
                if is_shown {
                    self.say(&with_tail(lines::marked(event, live.name_width), tail));
                }
            }
        }
    }

    /// Redraws the view.
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

    /// Shows a message above the view.
    pub(crate) fn say(&self, text: &str) {
        screen::write_above(&format!("{text}\n"));
    }

    /// Removes the view. The lines above it stay.
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
