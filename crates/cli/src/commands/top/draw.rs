//! The picture: the lines of the screen. Pure: the same state gives the same picture.
//!
//! Nothing has a background of its own, so that it can be read on light and on dark terminals. A selected row is inverted.

use anstyle::{AnsiColor, Style};
use console::{measure_text_width, pad_str, truncate_str};

use super::layout::{Alignment, Column, GAP, widths};
use super::output::{LineSort, Output, OutputLine};
use super::rows::{self, Cell, Look, Row, safe};
use super::state::{App, Mode, Note, Part, QueueChange};
use crate::text::time;

/// From this width on, the lines of an output have their times.
const TIMES_COLUMNS: usize = 100;
/// The blanks to the left of a list and of an output.
const MARGIN: &str = "  ";
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const PLAIN: Style = Style::new();
/// The width of the names of keys in the help.
const HELP_COLUMNS: usize = 20;
const HELP: &[(&str, &str)] = &[
    ("tab, 1 2 3 4", "go to the next part, or to a part"),
    ("↑ ↓ or k j", "select a row, or move the output"),
    ("page up, page down", "the same by pages; g and G to the ends"),
    ("enter", "show the output, or runs that failed"),
    ("esc", "back, or show all rows again"),
    ("/", "show only rows with a text"),
    ("← →", "move the output to the side"),
    ("p", "pause the queue, or end its pause"),
    ("q, Ctrl-C", "quit"),
];

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    Used,
    Unused,
}

/// A piece of a line in one style. The text has no escape sequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

impl Span {
    fn new(text: impl Into<String>, style: Style) -> Span {
        Span { text: text.into(), style }
    }
}

/// A line of the screen, at most as wide as the screen.
pub(super) type Line = Vec<Span>;

/// What is drawn, and on what.
struct Picture<'p> {
    app: &'p App,
    colours: Colours,
    columns: usize,
}

/// The lines of the screen, as many as it has.
pub(super) fn draw(app: &App, colours: Colours, columns: usize, rows: usize) -> Vec<Line> {
    let picture = Picture { app, colours, columns };
    let mut lines = vec![picture.head()];
    let height = rows.saturating_sub(2);
    lines.extend(match &app.mode {
        Mode::Help => picture.help(),
        Mode::Runs { .. } => picture.runs(height),
        Mode::Normal | Mode::Filter | Mode::Confirm { .. } => picture.parts(),
    });
    lines.resize(rows.saturating_sub(1), Line::new());
    lines.push(picture.foot());
    lines.truncate(rows);
    lines.into_iter().map(|line| cut(line, columns)).collect()
}

/// The line as far as there is room.
fn cut(line: Line, columns: usize) -> Line {
    let mut left = columns;
    let mut shown = Line::new();
    for span in line {
        let width = measure_text_width(&span.text);
        if width > left && left == 0 {
            break;
        }
        if width > left {
            shown.push(Span::new(truncate_str(&span.text, left, "…"), span.style));
            break;
        }
        left -= width;
        shown.push(span);
    }
    shown
}

/// The columns that the line takes.
pub(super) fn width_of(line: &[Span]) -> usize {
    line.iter().map(|span| measure_text_width(&span.text)).sum()
}

/// Whether the keys go to this part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Here,
    Elsewhere,
}

fn remark(text: &str) -> Line {
    vec![Span::new(MARGIN, PLAIN), Span::new(text, DIM)]
}

impl Picture<'_> {
    fn style(&self, look: Look) -> Style {
        match (look, self.colours) {
            (Look::Plain, _) | (Look::Running | Look::Waiting, Colours::Unused) => PLAIN,
            (Look::Dim, _) => DIM,
            (Look::Running, Colours::Used) => AnsiColor::Cyan.on_default(),
            (Look::Waiting, Colours::Used) => AnsiColor::Yellow.on_default(),
            (Look::Failed, Colours::Used) => AnsiColor::Red.on_default(),
            (Look::Failed, Colours::Unused) => BOLD,
        }
    }

    /// The name of the program and the database, and to the right what matters.
    fn head(&self) -> Line {
        let mut right = Line::new();
        if let Some(lists) = &self.app.lists {
            let more = if lists.has_more_running { "+" } else { "" };
            let failed = lists.failures.runs() + lists.failures.jobs();
            let look = if failed > 0 { Look::Failed } else { Look::Dim };
            right
                .push(Span::new(format!("{}{more} running", lists.running.len()), self.style(Look::Running)));
            right.push(Span::new(" · ", DIM));
            right.push(Span::new(format!("{failed} failed"), self.style(look)));
            right.push(Span::new(" · ", DIM));
        }
        right.push(Span::new(time::clock(self.app.now_ms()), PLAIN));
        let room = self.columns.saturating_sub(width_of(&right) + 2);
        let database = format!("  {}", safe(&self.app.database));
        let mut line = cut(vec![Span::new("windlass top", BOLD), Span::new(database, DIM)], room);
        let gap = self.columns.saturating_sub(width_of(&line) + width_of(&right));
        line.push(Span::new(" ".repeat(gap), PLAIN));
        line.extend(right);
        line
    }

    fn parts(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (part, height) in Part::ALL.into_iter().zip(self.app.heights()) {
            let end = lines.len() + height;
            lines.extend(match part {
                Part::Queues => self.part_list(part, "1 Queues", "no queue has jobs or rules", height),
                Part::Running => self.part_list(part, "2 Running", "no job is running", height),
                Part::Failures => {
                    self.part_list(part, "3 Failures", "nothing failed in the last 24 hours", height)
                }
                Part::Output => self.output(height),
            });
            lines.resize(end, Line::new());
        }
        lines
    }

    fn focus_on(&self, part: Part) -> Focus {
        if self.app.focus == part { Focus::Here } else { Focus::Elsewhere }
    }

    fn part_list(&self, part: Part, name: &str, nothing: &str, height: usize) -> Vec<Line> {
        let rows = self.app.rows(part);
        let focus = self.focus_on(part);
        let mut lines = vec![self.title(&format!("{name}  {}", rows.len()), focus)];
        if self.app.lists.is_none() {
            lines.push(remark("reading…"));
        } else if rows.is_empty() && self.app.filter.is_empty() {
            lines.push(remark(nothing));
        } else if rows.is_empty() {
            lines.push(remark(&format!("nothing here has `{}`", safe(&self.app.filter))));
        } else {
            let cells: Vec<Vec<Cell>> = rows.into_iter().map(|Row { cells, .. }| cells).collect();
            let selected = self.app.selected(part);
            lines.extend(self.list(rows::columns(part), &cells, selected, focus, height.saturating_sub(1)));
        }
        lines
    }

    fn runs(&self, height: usize) -> Vec<Line> {
        let Mode::Runs { name, runs, selected } = &self.app.mode else { return Vec::new() };
        let parts = [&name.workflow, &name.job].map(|text| safe(text));
        let named: Vec<&str> = parts.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let mut lines = vec![self.title(&format!("Failed: {}", named.join(" / ")), Focus::Here)];
        match runs {
            None => lines.push(remark("reading…")),
            Some(runs) if runs.is_empty() => lines.push(remark("these runs were deleted")),
            Some(runs) => {
                let cells: Vec<Vec<Cell>> = runs.iter().map(rows::failed_run_cells).collect();
                lines.extend(self.list(rows::RUNS, &cells, *selected, Focus::Here, height.saturating_sub(1)));
            }
        }
        lines
    }

    /// A name and a line to the right edge.
    fn title(&self, text: &str, focus: Focus) -> Line {
        let (mark, style) = match (focus, self.colours) {
            (Focus::Here, Colours::Used) => ("▸ ", AnsiColor::Cyan.on_default().bold()),
            (Focus::Here, Colours::Unused) => ("▸ ", BOLD),
            (Focus::Elsewhere, _) => (MARGIN, BOLD),
        };
        let name = format!("{mark}{text} ");
        let rule = "─".repeat(self.columns.saturating_sub(measure_text_width(&name)));
        vec![Span::new(name, style), Span::new(rule, DIM)]
    }

    /// A list with the names of its columns. The selected row is in sight.
    fn list(
        &self,
        columns: &[Column],
        rows: &[Vec<Cell>],
        selected: usize,
        focus: Focus,
        height: usize,
    ) -> Vec<Line> {
        let page = height.saturating_sub(1);
        if page == 0 {
            return Vec::new();
        }
        let first = (selected + 1).saturating_sub(page).min(rows.len().saturating_sub(page));
        let all: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let widths = widths(columns, &all, self.columns.saturating_sub(MARGIN.len()));
        let heads: Vec<Cell> =
            columns.iter().map(|column| Cell { text: column.title.to_owned(), look: Look::Dim }).collect();
        let mut lines = vec![self.list_line(MARGIN, columns, &widths, &heads)];
        for (index, cells) in rows.iter().enumerate().skip(first).take(page) {
            let mark = if index == selected { "› " } else { MARGIN };
            let line = self.list_line(mark, columns, &widths, cells);
            lines.push(if index == selected && focus == Focus::Here { self.inverted(line) } else { line });
        }
        lines
    }

    fn list_line(&self, mark: &str, columns: &[Column], widths: &[Option<usize>], cells: &[Cell]) -> Line {
        let mut line = vec![Span::new(mark, PLAIN)];
        for ((column, width), cell) in columns.iter().zip(widths).zip(cells) {
            let Some(width) = *width else { continue };
            let alignment = match column.alignment {
                Alignment::Left => console::Alignment::Left,
                Alignment::Right => console::Alignment::Right,
            };
            if line.len() > 1 {
                line.push(Span::new(" ".repeat(GAP), PLAIN));
            }
            let text = truncate_str(&cell.text, width, "…");
            line.push(Span::new(pad_str(&text, width, alignment, None), self.style(cell.look)));
        }
        line
    }

    /// The line over the whole width, with the colours of the text and of what is behind it exchanged.
    fn inverted(&self, line: Line) -> Line {
        let mut line = cut(line, self.columns);
        line.push(Span::new(" ".repeat(self.columns.saturating_sub(width_of(&line))), PLAIN));
        line.into_iter().map(|span| Span::new(span.text, span.style.invert())).collect()
    }

    /// The output of the selected job.
    fn output(&self, height: usize) -> Vec<Line> {
        let output = &self.app.output;
        let page = height.saturating_sub(1);
        let mut lines = vec![self.title(&output_title(output, page), self.focus_on(Part::Output))];
        if output.lines().is_empty() {
            lines.push(remark(match (output.job(), output.is_read()) {
                (None, _) => "the output of the selected job is shown here",
                (Some(_), false) => "reading…",
                (Some(_), true) if output.is_over() => "it has written nothing",
                (Some(_), true) => "nothing yet",
            }));
        }
        let in_sight = output.lines().iter().skip(output.top(page)).take(page);
        lines.extend(in_sight.map(|line| self.output_line(line, output.left)));
        lines
    }

    fn output_line(&self, line: &OutputLine, left: usize) -> Line {
        let mut spans = vec![Span::new(MARGIN, PLAIN)];
        if self.columns >= TIMES_COLUMNS {
            spans.push(Span::new(format!("{}  ", time::clock(line.at_ms)), DIM));
        }
        let style = match line.sort {
            LineSort::Stdout => PLAIN,
            LineSort::Stderr => self.style(Look::Waiting),
            LineSort::Engine => DIM,
        };
        spans.push(Span::new(line.text.chars().skip(left).collect::<String>(), style));
        spans
    }

    fn help(&self) -> Vec<Line> {
        let mut lines = vec![self.title("Keys", Focus::Here)];
        lines.extend(HELP.iter().map(|(keys, text)| {
            let keys = pad_str(keys, HELP_COLUMNS, console::Alignment::Left, None).into_owned();
            vec![Span::new(MARGIN, PLAIN), Span::new(keys, BOLD), Span::new(*text, PLAIN)]
        }));
        lines
    }

    /// What the keys do, a question, or a message.
    fn foot(&self) -> Line {
        match (&self.app.mode, &self.app.note) {
            (Mode::Confirm { queue, change }, _) => {
                let verb = match change {
                    QueueChange::Pause => "pause",
                    QueueChange::Resume => "end the pause of",
                };
                let question = format!("{verb} the queue `{}`? ", safe(queue));
                vec![Span::new(question, BOLD), Span::new("y yes · any other key no", PLAIN)]
            }
            (Mode::Filter, _) => vec![
                Span::new(format!("/{}▏", safe(&self.app.filter)), BOLD),
                Span::new("  enter keeps it · esc drops it", DIM),
            ],
            (_, Some(Note::Problem(text))) => vec![Span::new(safe(text), self.style(Look::Failed))],
            (_, Some(Note::Done(text))) => vec![Span::new(safe(text), PLAIN)],
            (Mode::Help, None) => vec![Span::new("any key goes back", DIM)],
            (Mode::Runs { .. }, None) => {
                vec![Span::new("↑↓ select · enter output · esc back · q quit", DIM)]
            }
            (Mode::Normal, None) => {
                let filter = match self.app.filter.is_empty() {
                    true => String::new(),
                    false => format!("/{}  ", safe(&self.app.filter)),
                };
                vec![Span::new(filter, BOLD), Span::new(hint(self.app.focus), DIM)]
            }
        }
    }
}

fn hint(focus: Part) -> &'static str {
    match focus {
        Part::Queues => "tab · ↑↓ · p pause · / filter · ? help · q quit",
        Part::Running => "tab · ↑↓ · enter output · / filter · ? help · q quit",
        Part::Failures => "tab · ↑↓ · enter runs · / filter · ? help · q quit",
        Part::Output => "tab · ↑↓ ← → · G follow · ? help · q quit",
    }
}

fn output_title(output: &Output, height: usize) -> String {
    let Some(job) = output.job() else { return "4 Output".to_owned() };
    let attempt = match output.attempt() {
        ..=1 => String::new(),
        attempt => format!(", attempt {attempt}"),
    };
    let state = match (output.lines_below(height), output.is_over()) {
        (Some(below), _) => format!("{below} lines below, G follows"),
        (None, true) => "ended".to_owned(),
        (None, false) => "follows".to_owned(),
    };
    format!("4 Output  {job}{attempt} · {state}")
}
