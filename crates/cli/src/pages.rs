//! Reads long lists from the store, page by page.

use windlass_engine::store::{Cursor, PAGE_MAX, Page};

use crate::error::Failure;

/// Reads the newest rows below an id, at most `limit`.
pub(crate) fn read<T>(
    before: Option<i64>,
    limit: u32,
    mut page: impl FnMut(Cursor) -> Result<Page<T>, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut rows = Vec::new();
    let mut before = before;
    loop {
        let left = i64::from(limit) - rows.len() as i64;
        let read = page(Cursor { before, limit: left.min(PAGE_MAX), ..Cursor::default() })?;
        rows.extend(read.rows);
        before = read.next;
        if before.is_none() || rows.len() >= limit as usize {
            return Ok(rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of a list of ids, of which every third one matches, in searches that stop after ten ids.
    fn search(cursor: Cursor) -> Result<Page<i64>, Failure> {
        let below = cursor.before.unwrap_or(101);
        let floor = (below - 10).max(1);
        let rows = (floor..below).rev().filter(|id| id % 3 == 0).collect();
        Ok(Page { rows, next: (floor > 1).then_some(floor), searched_to: None })
    }

    #[test]
    fn a_search_goes_on_until_nothing_is_left() {
        let expected: Vec<i64> = (1..=100).rev().filter(|id| id % 3 == 0).collect();
        assert_eq!(read(None, 1_000, search).unwrap_or_default(), expected);
        assert_eq!(read(Some(13), 1_000, search).unwrap_or_default(), [12, 9, 6, 3]);
    }

    #[test]
    fn no_page_is_larger_than_the_store_allows() {
        let mut limits = Vec::new();
        let rows = read(None, 25_000, |cursor| {
            limits.push(cursor.limit);
            Ok(Page { rows: vec![0; cursor.limit as usize], next: Some(1), searched_to: None })
        });
        assert_eq!(rows.unwrap_or_default().len(), 25_000);
        assert_eq!(limits, [PAGE_MAX, PAGE_MAX, 5_000]);
    }
}
