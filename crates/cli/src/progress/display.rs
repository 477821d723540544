//! Shows progress and output: as a live view on a terminal, as plain lines elsewhere.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use windlass_engine::store::LogLine;

use super::frame::{self, Canvas};
use super::output_lines::{self, LineStyle};
use super::output_plan::{LineNames, Place};
use super::screen::Target;
use super::tracker::{Change, Event, JobState, Tracker};
use super::{lines, screen};
use crate::arguments::OutputFormat;
use crate::stderr::Talk;
use crate::text::style::{CYAN, DIM, paint, printable};
use crate::text::{table, wrap};

/// A run of up to this many jobs shows a line for each successful job. A larger run shows only problems.
const MAX_JOBS_LISTED: usize = 60;
/// The widest column of names.
const MAX_NAME_COLUMNS: usize = 30;

/// Progress on standard error, and the output of jobs.
#[derive(Debug)]
pub(crate) struct Display {
    form: Form,
    began_ms: i64,
    name_columns: usize,
    /// Where goes what jobs write to standard output.
    stdout: Target,
    /// What stands before each line of a job.
    line_names: LineNames,
    /// The job whose lines were shown last, and its attempt.
    last_lines_of: Option<(i64, i64)>,
}

/// The form of the progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A view that is redrawn in place, with the events above it.
    Live,
    /// One line per event.
    Plain,
    /// No progress.
    Silent,
}

/// The output of a failed job, if it was not shown while the job ran.
#[derive(Debug, Default)]
pub(crate) struct FailedOutput {
    pub(crate) lines: Vec<LogLine>,
    /// How many lines come before these, and the command that shows them.
    pub(crate) left_out: Option<(i64, String)>,
}

impl Display {
    /// A display on the terminal or pipe of this process. `name_columns` is the width of the longest name.
    pub(crate) fn new(format: OutputFormat, talk: Talk, began_ms: i64, name_columns: usize) -> Display {
        let is_dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let form = match talk {
            Talk::ErrorsOnly | Talk::Nothing => Form::Silent,
            Talk::All if is_dumb || !console::Term::stderr().features().is_attended() => Form::Plain,
            Talk::All => Form::Live,
        };
        // A document in JSON has standard output for itself.
        let stdout = match format {
            OutputFormat::Text => Target::Stdout,
            OutputFormat::Json | OutputFormat::Jsonl => Target::Stderr,
        };
        Display {
            form,
            began_ms,
            name_columns: name_columns.min(MAX_NAME_COLUMNS),
            stdout,
            line_names: LineNames::Nothing,
            last_lines_of: None,
        }
    }

    /// Where the output of jobs goes.
    pub(crate) fn place(&self) -> Place {
        let is_terminal = match self.stdout {
            Target::Stdout => io::stdout().is_terminal(),
            Target::Stderr => io::stderr().is_terminal(),
        };
        if self.form == Form::Live && is_terminal { Place::LiveTerminal } else { Place::Elsewhere }
    }

    /// Sets what stands before each line of a job.
    pub(crate) fn name_lines(&mut self, names: LineNames) {
        self.line_names = names;
    }

    /// How often the display is refreshed if nothing happens.
    pub(crate) fn refresh_interval(&self) -> Duration {
        match self.form {
            Form::Live => Duration::from_millis(200),
            Form::Plain | Form::Silent => Duration::from_millis(500),
        }
    }

    /// How many running jobs the view names.
    pub(crate) fn named_jobs(&self, running: usize) -> usize {
        match self.form {
            Form::Live => frame::named_jobs(canvas(), running),
            Form::Plain | Form::Silent => 0,
        }
    }

    /// How many lines of each job fit into the view.
    pub(crate) fn tail_lines(&self, named: usize) -> usize {
        frame::tail_lines(canvas(), named)
    }

    /// Shows an event. `output` is that of a failed job, `total` the number of jobs.
    pub(crate) fn event(&mut self, event: &Event, output: &FailedOutput, total: usize) {
        let line = match self.form {
            Form::Plain => lines::plain(event),
            Form::Live => {
                let is_shown = match event.change {
                    // The view itself shows running jobs.
                    Change::Started => false,
                    Change::Successful | Change::Skipped => total <= MAX_JOBS_LISTED,
                    Change::Failed | Change::Retrying | Change::Interrupted | Change::Cancelled => true,
                };
                if !is_shown {
                    return;
                }
                lines::marked(event, self.name_columns)
            }
            Form::Silent if output.lines.is_empty() => return,
            Form::Silent => lines::plain(event),
        };
        self.last_lines_of = None;
        let line = wrap::fit(&line, table::stderr_width());
        screen::write_above(&format!("{line}\n{}", block(output)));
    }

    /// Shows lines of a job as it writes them.
    pub(crate) fn lines(&mut self, job: &JobState, lines: &[LogLine], total: usize) {
        let Some(last) = lines.last() else { return };
        let is_new = self.last_lines_of != Some((job.id, last.attempt));
        self.last_lines_of = Some((job.id, last.attempt));
        let name_columns = match self.line_names {
            LineNames::Nothing => {
                // In the other forms, the line of the start says whose lines follow.
                if is_new && total > 1 && self.form == Form::Live {
                    let name = printable(&job.name);
                    screen::write_above(&format!("{} {name}\n", paint(CYAN, "›")));
                }
                None
            }
            LineNames::Job => Some(self.name_columns),
        };
        let style = LineStyle { name_columns, stdout: self.stdout };
        screen::write_chunks(&output_lines::chunks(&job.name, lines, style));
    }

    /// Redraws the view, with the last lines of some running jobs.
    pub(crate) fn refresh(&self, tracker: &Tracker, tails: &HashMap<i64, Vec<LogLine>>, now_ms: i64) {
        match self.form {
            Form::Plain | Form::Silent => {}
            Form::Live => screen::show(frame::draw(tracker, tails, self.began_ms, now_ms, canvas())),
        }
    }

    /// Shows a message above the view.
    pub(crate) fn say(&self, text: &str) {
        match self.form {
            Form::Silent => {}
            Form::Live | Form::Plain => {
                screen::write_above(&format!("{}\n", wrap::fit(text, table::stderr_width())));
            }
        }
    }

    /// Removes the view. The lines above it stay.
    pub(crate) fn end(&self) {
        screen::show(Vec::new());
    }
}

fn canvas() -> Canvas {
    let (rows, columns) = console::Term::stderr().size();
    Canvas { columns: usize::from(columns), rows: usize::from(rows) }
}

/// The output of a failed job, below the line that says that it failed.
fn block(output: &FailedOutput) -> String {
    let bar = paint(DIM, "|");
    let mut text = String::new();
    if let Some((count, command)) = &output.left_out {
        let before = if *count == 1 { "1 line" } else { &format!("{count} lines") };
        text.push_str(&format!("    {bar} {}\n", paint(DIM, format!("… {before} before: {command}"))));
    }
    for line in &output.lines {
        text.push_str(&format!("    {bar} {}\n", output_lines::text(line)));
    }
    text
}
