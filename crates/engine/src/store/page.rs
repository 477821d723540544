//! Pages of long lists: by id, the newest first.
//!
//! A list reads along an index. What the index can't answer is compared row by row, and such a search stops where its
//! [`SearchBound`] says and tells how far it looked. So no page reads a whole table.

use windlass_db::error::{Error, Result};

/// The most rows of a page.
pub const PAGE_MAX: i64 = 10_000;
/// The rows that one search looks at before it stops: as many as are compared in less than a tenth of a second.
pub const SEARCH_MAX: i64 = 50_000;
/// How far one search may look. Several searches for one answer share it.
///
/// A search looks at this many rows at most: from 1 to [`SEARCH_MAX`], which is the default. Rows that lie far apart are on different
/// pages of the file, and take longer to read. So a search also stops when it has looked at a tenth of the rows and has looked
/// through twice as many ids as rows: by default, at 5,000 rows and through 100,000 ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchBound {
    rows: i64,
}

impl Default for SearchBound {
    fn default() -> SearchBound {
        SearchBound { rows: SEARCH_MAX }
    }
}

impl SearchBound {
    /// This part of [`SEARCH_MAX`]: `one_of(2)` is the half.
    #[must_use]
    pub fn one_of(parts: i64) -> SearchBound {
        SearchBound { rows: SEARCH_MAX / parts.clamp(1, SEARCH_MAX) }
    }

    /// How many rows each of some ranges may look at.
    pub(in crate::store) fn for_each_of(self, ranges: usize) -> i64 {
        (self.rows / i64::try_from(ranges).unwrap_or(i64::MAX).max(1)).max(1)
    }
}

/// How far a search looks along one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct SearchReach {
    /// The most rows that it looks at.
    pub(in crate::store) rows: i64,
    /// The most rows if they lie far apart.
    pub(in crate::store) rows_apart: i64,
    /// How many ids it looks through, if it has not looked at `rows` rows before.
    ids: i64,
}

impl SearchReach {
    pub(in crate::store) fn of(rows: i64) -> SearchReach {
        SearchReach { rows, rows_apart: (rows / 10).max(1), ids: rows * 2 }
    }

    /// The same where each row is one of another index, and its run is looked up.
    pub(in crate::store) fn by_lookups(rows: i64) -> SearchReach {
        SearchReach { rows: lookups_of(rows), ..SearchReach::of(rows) }
    }

    /// The lowest id that the search reads; none if it reads all. `highest` is the id of the first row, `apart` that of the last
    /// of `rows_apart` rows, and `last` that of the last of `rows`, if there are so many.
    pub(in crate::store) fn floor(self, highest: i64, apart: i64, last: Option<i64>) -> Option<i64> {
        let through_ids = highest.saturating_sub(self.ids - 1);
        // Ids begin at 1.
        let floor = (through_ids > 1).then_some(through_ids.min(apart));
        floor.max(last)
    }
}

/// How many runs can be looked up one by one in the time in which so many neighbouring rows are read. PostgreSQL takes four times as
/// long for a lookup as for a neighbouring row.
pub(in crate::store) fn lookups_of(rows: i64) -> i64 {
    (rows / 4).max(1)
}

/// The longest text that can be searched for, in bytes.
pub const SEARCH_TEXT_MAX: usize = 1_000;
/// The rows of a page, unless the caller says otherwise.
const PAGE_DEFAULT: i64 = 100;

/// Which part of a list to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Only rows with lower ids: [`Page::next`] of the page before.
    pub before: Option<i64>,
    /// Only rows with higher ids.
    pub after: Option<i64>,
    /// The most rows to return, from 1 to [`PAGE_MAX`].
    pub limit: i64,
}

impl Default for Cursor {
    /// The newest hundred.
    fn default() -> Cursor {
        Cursor { before: None, after: None, limit: PAGE_DEFAULT }
    }
}

impl Cursor {
    /// The newest rows.
    #[must_use]
    pub fn newest(limit: i64) -> Cursor {
        Cursor { limit, ..Cursor::default() }
    }

    pub(in crate::store) fn check(self, operation: &'static str) -> Result<()> {
        match (1..=PAGE_MAX).contains(&self.limit) {
            true => Ok(()),
            false => {
                let reason = format!("a page has 1 to {PAGE_MAX} rows, and {} were asked for", self.limit);
                Err(Error::invalid(operation, reason))
            }
        }
    }

    pub(in crate::store) fn ids(self) -> IdRange {
        let from = self.after.map_or(i64::MIN, |after| after.saturating_add(1));
        IdRange { from, below: self.before.unwrap_or(i64::MAX) }
    }
}

/// Part of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The rows that match, the newest first.
    pub rows: Vec<T>,
    /// [`Cursor::before`] of the next page, unless this is the last one.
    pub next: Option<i64>,
    /// The lowest id that was looked at, if the search stopped before the page was full. The next page
    /// goes on there.
    pub searched_to: Option<i64>,
}

impl<T> Page<T> {
    /// A page with other rows for the same ids.
    pub(in crate::store) fn with_rows<U>(self, rows: Vec<U>) -> Page<U> {
        Page { rows, next: self.next, searched_to: self.searched_to }
    }
}

/// The ids from `from` to `below`, without `below`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct IdRange {
    pub(in crate::store) from: i64,
    pub(in crate::store) below: i64,
}

impl IdRange {
    /// The ids that are also in the other range.
    pub(in crate::store) fn intersect(self, other: IdRange) -> IdRange {
        IdRange { from: self.from.max(other.from), below: self.below.min(other.below) }
    }
}

/// Makes a page of the rows that were found: up to one more than `limit`, in any order. `floor` is the lowest id that was
/// read, if a search stopped there.
pub(in crate::store) fn page<T>(
    mut found: Vec<T>,
    id_of: impl Fn(&T) -> i64,
    limit: i64,
    floor: Option<i64>,
) -> Page<T> {
    let limit = usize::try_from(limit).unwrap_or(0);
    found.sort_unstable_by_key(|row| std::cmp::Reverse(id_of(row)));
    if found.len() > limit {
        found.truncate(limit);
        return Page { next: found.last().map(&id_of), rows: found, searched_to: None };
    }
    Page { rows: found, next: floor, searched_to: floor }
}

/// The text to search for: without regard to the case of ASCII letters.
pub(in crate::store) fn search_text(operation: &'static str, text: &str) -> Result<String> {
    if text.is_empty() || text.len() > SEARCH_TEXT_MAX || text.contains('\0') {
        let reason = format!("a text to search for has 1 to {SEARCH_TEXT_MAX} bytes, and no zero byte");
        return Err(Error::invalid(operation, reason));
    }
    Ok(text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_page_goes_on_after_its_last_row() {
        let page = page(vec![3, 9, 7, 5], |id| *id, 3, Some(2));
        assert_eq!(page, Page { rows: vec![9, 7, 5], next: Some(5), searched_to: None });
    }

    #[test]
    fn a_search_that_stopped_goes_on_where_it_stopped() {
        let page = page(vec![3, 9], |id| *id, 3, Some(2));
        assert_eq!(page, Page { rows: vec![9, 3], next: Some(2), searched_to: Some(2) });
    }

    #[test]
    fn a_search_stops_earlier_among_rows_that_lie_far_apart() {
        let reach = SearchReach::of(50_000);
        assert_eq!((reach.rows, reach.rows_apart, reach.ids), (50_000, 5_000, 100_000));
        // One row after the other: after all rows.
        assert_eq!(reach.floor(900_000, 895_001, Some(850_001)), Some(850_001));
        // One of four: after the ids.
        assert_eq!(reach.floor(900_000, 880_004, Some(700_004)), Some(800_001));
        // One of a hundred: after a tenth of the rows.
        assert_eq!(reach.floor(900_000, 400_100, None), Some(400_100));
        // All ids are looked through.
        assert_eq!(reach.floor(90_000, 80_000, None), None);
        // Fewer rows if each is looked up.
        let reach = SearchReach::by_lookups(50_000);
        assert_eq!((reach.rows, reach.rows_apart, reach.ids), (12_500, 5_000, 100_000));
    }

    #[test]
    fn the_last_page_says_so() {
        for found in [vec![], vec![3, 9, 7]] {
            let page = page(found, |id: &i64| *id, 3, None);
            assert_eq!((page.next, page.searched_to), (None, None));
        }
    }
}
