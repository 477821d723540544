//! Tables without borders: a header, aligned columns, and one column that is cut on a narrow terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, presets};
use console::{measure_text_width, truncate_str};

use crate::text::style::{DIM, paint};

/// The smallest width of the column that is cut.
const MIN_SHRUNK_WIDTH: usize = 10;
/// The smallest width of a column with names, if the table is too wide without its shrinking column.
const MIN_NAME_WIDTH: usize = 12;
/// Blanks between two columns.
const GAP: usize = 2;

/// A column and its layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Text, aligned to the left.
    Left(&'static str),
    /// Numbers, aligned to the right.
    Right(&'static str),
    /// Text that is cut if the terminal is too narrow. A table has at most one such column.
    Shrinking(&'static str),
    /// Text that is left out if the table is still too wide, the first such column first.
    Optional(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Column::Left(title)
            | Column::Right(title)
            | Column::Shrinking(title)
            | Column::Optional(title) => title,
        }
    }
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with one cell for each column. Cells may be styled.
    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        self.rows.push(cells.to_vec());
    }

    /// The table for a terminal of this width, or for a pipe (`None`), where nothing is cut. Columns with only
    /// empty cells are left out.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths(width);
        let shown: Vec<usize> = widths.iter().map(|(index, _width)| *index).collect();
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(shown.iter().map(|index| {
            let title = self.columns[*index].title();
            Cell::new(paint(DIM, title))
        }));
        for row in &self.rows {
            table.add_row(
                widths.iter().map(|(index, width)| Cell::new(truncate_str(&row[*index], *width, "…"))),
            );
        }
        for (position, index) in shown.iter().enumerate() {
            let column = table.column_mut(position).expect("a column for each header");
            let gap = u16::try_from(GAP).expect("a small number");
            column.set_padding((0, gap));
            if matches!(self.columns[*index], Column::Right(_)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }

    fn shown_columns(&self, width: Option<usize>) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len())
            .filter(|index| self.rows.iter().any(|row| !row[*index].is_empty()))
            .collect();
        let is_optional = |index: &usize| matches!(self.columns[*index], Column::Optional(_));
        while width.is_some_and(|width| self.least_width(&shown) > width)
            && let Some(position) = shown.iter().position(is_optional)
        {
            shown.remove(position);
        }
        shown
    }

    /// The width of the table with its shrinking column at the smallest width.
    fn least_width(&self, shown: &[usize]) -> usize {
        let widths = shown.iter().map(|index| match self.columns[*index] {
            Column::Shrinking(_) => self.column_width(*index).min(MIN_SHRUNK_WIDTH),
            Column::Left(_) | Column::Right(_) | Column::Optional(_) => self.column_width(*index),
        });
        widths.sum::<usize>() + GAP * shown.len().saturating_sub(1)
    }

    /// The columns that are shown, and how many characters each has. If even the cut columns do not fit, the last
    /// columns are left out.
    fn widths(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let shown = self.shown_columns(width);
        let mut widths: Vec<(usize, usize)> =
            shown.into_iter().map(|index| (index, self.column_width(index))).collect();
        let Some(limit) = width else { return widths };
        let is_shrinking = |index: usize| matches!(self.columns[index], Column::Shrinking(_));
        let is_left = |index: usize| matches!(self.columns[index], Column::Left(_));
        cut(&mut widths, limit, MIN_SHRUNK_WIDTH, is_shrinking);
        // The first column of text has names, which may be long.
        let name = widths.iter().map(|(index, _width)| *index).find(|index| is_left(*index));
        cut(&mut widths, limit, MIN_NAME_WIDTH, |index| Some(index) == name);
        while total(&widths) > limit
            && let Some(position) =
                widths.iter().rposition(|(index, _)| Some(*index) != name && !is_first(*index))
        {
            widths.remove(position);
        }
        // What was left out gives the others more space.
        let spare = limit.saturating_sub(total(&widths));
        if let Some((index, width)) = widths.iter_mut().find(|(index, _)| Some(*index) == name) {
            *width = (*width + spare).min(self.column_width(*index));
        }
        widths
    }

    fn column_width(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| measure_text_width(&row[index]));
        cells.max().unwrap_or(0).max(measure_text_width(self.columns[index].title()))
    }
}

/// The width of a table with these columns.
fn total(widths: &[(usize, usize)]) -> usize {
    widths.iter().map(|(_index, width)| *width).sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Takes what is too much from the columns, which keep at least `least`.
fn cut(widths: &mut [(usize, usize)], limit: usize, least: usize, is_cut: impl Fn(usize) -> bool) {
    let excess = total(widths).saturating_sub(limit);
    for (_index, width) in widths.iter_mut().filter(|(index, _width)| is_cut(*index)) {
        *width = width.saturating_sub(excess).max((*width).min(least));
    }
}

/// The first column identifies the row.
fn is_first(index: usize) -> bool {
    index == 0
}

/// The width of the terminal, if standard output is one.
pub(crate) fn stdout_width() -> Option<usize> {
    width_of(&console::Term::stdout())
}

/// The width of the terminal, if standard error is one.
pub(crate) fn stderr_width() -> Option<usize> {
    width_of(&console::Term::stderr())
}

fn width_of(terminal: &console::Term) -> Option<usize> {
    terminal
        .features()
        .is_attended()
        .then(|| terminal.size_checked())
        .flatten()
        .map(|(_rows, columns)| usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::style::RED;

    fn example() -> Table {
        let mut table = Table::new(&[
            Column::Right("RUN"),
            Column::Left("WORKFLOW"),
            Column::Left("EMPTY"),
            Column::Shrinking("ERROR"),
        ]);
        table.row(["3".into(), "nightly".into(), String::new(), String::new()]);
        table.row(["12".into(), paint(RED, "load"), String::new(), "exit code 1 and a long story".into()]);
        table
    }

    fn plain(table: &Table, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.render(width)).to_string()
    }

    #[test]
    fn a_pipe_gets_everything() {
        let expected = "RUN  WORKFLOW  ERROR
  3  nightly
 12  load      exit code 1 and a long story";
        assert_eq!(plain(&example(), None), expected);
        assert_eq!(plain(&example(), Some(80)), expected);
    }

    #[test]
    fn a_very_narrow_terminal_loses_the_optional_columns() {
        let mut table = Table::new(&[
            Column::Left("A"),
            Column::Optional("B"),
            Column::Optional("C"),
            Column::Shrinking("D"),
        ]);
        table.row(["aaaaa".into(), "bbbbb".into(), "ccccc".into(), "dddddddddddddddddddd".into()]);
        assert_eq!(plain(&table, Some(40)).lines().next(), Some("A      B      C      D"));
        assert_eq!(plain(&table, Some(25)).lines().next(), Some("A      C      D"));
        assert_eq!(plain(&table, Some(17)).lines().next(), Some("A      D"));
        assert_eq!(plain(&table, Some(10)).lines().next(), Some("A"));
    }

    #[test]
    fn a_table_with_long_names_fits_every_terminal() {
        let mut table = Table::new(&[
            Column::Right("RUN"),
            Column::Left("WORKFLOW"),
            Column::Left("STATUS"),
            Column::Right("JOBS"),
            Column::Shrinking("FILE"),
        ]);
        let name = "a-rather-long-name-of-a-workflow-for-the-table".to_owned();
        table.row(["12".into(), name.clone(), paint(RED, "FAILED"), "1/2 failed".into(), name.repeat(2)]);
        for width in [24, 40, 60, 80, 120] {
            let text = plain(&table, Some(width));
            assert!(text.lines().all(|line| measure_text_width(line) <= width), "{width}:\n{text}");
            assert!(text.contains("12  a-rather-"), "{text}");
        }
        assert!(plain(&table, Some(60)).contains("FAILED"), "{}", plain(&table, Some(60)));
        assert!(plain(&table, None).contains(&name.repeat(2)));
    }

    #[test]
    fn a_narrow_terminal_cuts_the_yielding_column_only() {
        let text = plain(&example(), Some(30));
        assert!(text.lines().all(|line| measure_text_width(line) <= 30), "{text}");
        assert!(text.contains("load      exit code 1 an…"), "{text}");
    }
}
