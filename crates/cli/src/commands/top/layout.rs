//! How the screen is divided: the height of each part, and the width of each column.

use console::measure_text_width;

use super::rows::Cell;

/// Blanks between two columns.
pub(super) const GAP: usize = 2;
/// The least width of the column that is cut.
const SHRUNK_MIN: usize = 8;
/// The greatest width of a column that is not cut.
const COLUMN_MAX: usize = 24;
/// On a narrow screen the columns that are always shown are not wider than this part of it, so that the one that is cut has room.
const COLUMN_PART: usize = 4;

/// A column of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) alignment: Alignment,
    width: Width,
}

/// Where the text of a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    Left,
    Right,
}

/// What happens to a column on a narrow screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Kept,
    Shrinking,
    /// It is left out, those with lower numbers first.
    Optional(u8),
}

impl Column {
    pub(super) const fn left(title: &'static str) -> Column {
        Column { title, alignment: Alignment::Left, width: Width::Kept }
    }

    pub(super) const fn right(title: &'static str) -> Column {
        Column { title, alignment: Alignment::Right, width: Width::Kept }
    }

    /// The column that is cut if the screen is too narrow.
    pub(super) const fn shrinking(title: &'static str) -> Column {
        Column { title, alignment: Alignment::Left, width: Width::Shrinking }
    }

    pub(super) const fn optional(self, order: u8) -> Column {
        Column { width: Width::Optional(order), ..self }
    }

    fn order(self) -> Option<u8> {
        match self.width {
            Width::Optional(order) => Some(order),
            Width::Kept | Width::Shrinking => None,
        }
    }
}

/// The width of each column; `None` if it is left out.
pub(super) fn widths(columns: &[Column], rows: &[&[Cell]], available: usize) -> Vec<Option<usize>> {
    let kept_max = COLUMN_MAX.min(available / COLUMN_PART).max(SHRUNK_MIN);
    let mut widths: Vec<Option<usize>> = columns
        .iter()
        .enumerate()
        .map(|(index, column)| {
            let cells = rows.iter().filter_map(|cells| cells.get(index));
            let longest = cells.map(|cell| measure_text_width(&cell.text)).max().unwrap_or(0);
            let longest = match column.width {
                Width::Kept => longest.min(kept_max),
                Width::Shrinking => longest,
                Width::Optional(_order) => longest.min(COLUMN_MAX),
            };
            // A column without a text in any row only takes room.
            let is_empty = longest == 0 && !rows.is_empty() && column.order().is_some();
            (!is_empty).then_some(longest.max(column.title.len()))
        })
        .collect();
    let shrinking = columns.iter().position(|column| column.width == Width::Shrinking);
    loop {
        let too_wide = total(&widths).saturating_sub(available);
        let shrunk = shrinking.and_then(|index| widths[index]).unwrap_or(0);
        if too_wide == 0 {
            return widths;
        }
        let least = shrunk.min(SHRUNK_MIN);
        let next = (0..columns.len())
            .filter(|index| widths[*index].is_some())
            .filter_map(|index| Some((columns[index].order()?, index)))
            .min();
        match (next, shrinking) {
            // The whole text of a name says more than another column, if it is not too long.
            (Some((_order, index)), _)
                if shrunk.saturating_sub(too_wide) < least.max(shrunk.min(COLUMN_MAX)) =>
            {
                widths[index] = None;
            }
            (_, Some(index)) => {
                widths[index] = Some(shrunk.saturating_sub(too_wide).max(least));
                return widths;
            }
            (_, None) => return widths,
        }
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<usize> = widths.iter().copied().flatten().collect();
    shown.iter().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

/// The rows of each part with its title, of which all together have `available`. A part wants so many rows below its title.
pub(super) fn heights(available: usize, wants: [usize; 4], focus: usize) -> [usize; 4] {
    if available < 2 * wants.len() {
        let mut heights = [0; 4];
        heights[focus] = available;
        return heights;
    }
    let mut heights = [1; 4];
    let mut left = available - heights.len();
    let give = |heights: &mut [usize; 4], part: usize, most: usize, left: &mut usize| {
        let given = wants[part].saturating_sub(heights[part] - 1).min(most).min(*left);
        heights[part] += given;
        *left -= given;
    };
    // Each of the others keeps a few rows, if there is room for its header and a row.
    let share = if left / 6 < 2 { 0 } else { left / 6 };
    for part in (0..wants.len()).filter(|part| *part != focus) {
        give(&mut heights, part, share, &mut left);
    }
    for part in [focus, 1, 2, 0, 3] {
        give(&mut heights, part, usize::MAX, &mut left);
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::rows::Look;

    const COLUMNS: &[Column] = &[
        Column::shrinking("NAME"),
        Column::right("N").optional(2),
        Column::left("KIND").optional(1),
        Column::right("SINCE"),
    ];

    fn widths_at(name: &str, available: usize) -> Vec<Option<usize>> {
        let cells = [name, "7", "shell", "12s"].map(|text| Cell { text: text.to_owned(), look: Look::Plain });
        widths(COLUMNS, &[&cells], available)
    }

    #[test]
    fn columns_are_left_out_before_a_name_is_cut() {
        assert_eq!(widths_at("load", 40), [Some(4), Some(1), Some(5), Some(5)]);
        assert_eq!(widths_at("load", 20), [Some(4), Some(1), None, Some(5)]);
        assert_eq!(widths_at("load", 12), [Some(4), None, None, Some(5)]);
        let long = "n".repeat(100);
        assert_eq!(widths_at(&long, 60), [Some(43), Some(1), Some(5), Some(5)]);
        assert_eq!(widths_at(&long, 20), [Some(13), None, None, Some(5)]);
        assert_eq!(widths_at(&long, 3), [Some(8), None, None, Some(5)]);
    }

    #[test]
    fn a_long_name_leaves_room_for_the_error_on_a_narrow_screen() {
        let columns = [Column::left("JOB"), Column::right("LAST"), Column::shrinking("ERROR")];
        let texts = ["a-name-of-a-job-that-is-long", "12s ago", "exit code 1: connection refused"];
        let cells = texts.map(|text| Cell { text: text.to_owned(), look: Look::Plain });
        let widths_at = |available| widths(&columns, &[&cells], available);
        assert_eq!(widths_at(58), [Some(14), Some(7), Some(31)]);
        assert_eq!(widths_at(40), [Some(10), Some(7), Some(19)]);
        assert_eq!(widths_at(118), [Some(24), Some(7), Some(31)]);
    }

    #[test]
    fn all_rows_of_the_screen_are_used_and_the_part_in_use_has_most() {
        for available in 0..60 {
            for focus in 0..4 {
                let heights = heights(available, [4, 9, 3, usize::MAX], focus);
                assert_eq!(heights.iter().sum::<usize>(), available, "{available}, {focus}");
                assert!(available < 2 || heights[focus] >= 2, "{available}, {focus}: {heights:?}");
            }
        }
        assert_eq!(heights(22, [4, 9, 3, usize::MAX], 1), [4, 10, 4, 4]);
        assert_eq!(heights(40, [4, 9, 3, usize::MAX], 3), [5, 7, 4, 24]);
    }
}
