//! Tables without borders: a header, aligned columns, and one column that is cut on a narrow terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, presets};
use console::{measure_text_width, truncate_str};

use crate::text::style::{DIM, paint};

/// The smallest width of the column that is cut.
const MIN_SHRUNK_WIDTH: usize = 10;
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
        let shown = self.shown_columns(width);
        let limit = width.and_then(|width| self.shrunk_width(&shown, width));
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(shown.iter().map(|index| {
            let title = self.columns[*index].title();
            Cell::new(paint(DIM, title))
        }));
        for row in &self.rows {
            table.add_row(shown.iter().map(|index| match (self.columns[*index], limit) {
                (Column::Shrinking(_), Some(limit)) => Cell::new(truncate_str(&row[*index], limit, "…")),
                _ => Cell::new(&row[*index]),
            }));
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

    /// The width of the shrinking column, if the table is too wide.
    fn shrunk_width(&self, shown: &[usize], width: usize) -> Option<usize> {
        let shrinking = *shown.iter().find(|index| matches!(self.columns[**index], Column::Shrinking(_)))?;
        let others: usize = shown
            .iter()
            .filter(|index| **index != shrinking)
            .map(|index| self.column_width(*index) + GAP)
            .sum();
        let left = width.saturating_sub(others).max(MIN_SHRUNK_WIDTH);
        (self.column_width(shrinking) > left).then_some(left)
    }

    fn column_width(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| measure_text_width(&row[index]));
        cells.max().unwrap_or(0).max(measure_text_width(self.columns[index].title()))
    }
}

/// The width of the terminal, if standard output is one.
pub(crate) fn stdout_width() -> Option<usize> {
    let terminal = console::Term::stdout();
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
        assert_eq!(plain(&table, Some(10)).lines().next(), Some("A      D"));
    }

    #[test]
    fn a_narrow_terminal_cuts_the_yielding_column_only() {
        let text = plain(&example(), Some(30));
        assert!(text.lines().all(|line| measure_text_width(line) <= 30), "{text}");
        assert!(text.contains("load      exit code 1 an…"), "{text}");
    }
}
