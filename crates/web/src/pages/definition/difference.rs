//! What differs between two definitions, by their parts and lines.

use std::collections::BTreeMap;

use super::text::{Part, Piece, Title};

/// Parts with more lines than this are not compared line by line.
const LINES_COMPARED_MAX: usize = 1_000;
/// Lines that are the same are shown so far around those that differ.
const LINES_AROUND: usize = 3;
/// So many pairs of lines are compared on a page. Parts after them are not compared line by line.
const PAIRS_COMPARED_MAX: usize = 4_000_000;
/// So many lines of a part are shown.
const LINES_SHOWN_MAX: usize = 2_000;

/// How a line is in the two definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// In both.
    Same,
    /// Only in the later one.
    Added,
    /// Only in the earlier one.
    Removed,
    /// Lines that are the same are left out here.
    Gap,
}

impl Change {
    /// The sign before the line.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Change::Same => " ",
            Change::Added => "+",
            Change::Removed => "-",
            Change::Gap => "…",
        }
    }

    /// The class of the line.
    pub(super) fn class(self) -> &'static str {
        match self {
            Change::Same => "",
            Change::Added => "add",
            Change::Removed => "del",
            Change::Gap => "gap",
        }
    }
}

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    /// The title of the part.
    pub(super) title: String,
    /// Whether it is new, gone or different.
    pub(super) word: &'static str,
    /// Its lines.
    pub(super) lines: Vec<(Change, String)>,
}

/// The parts that differ, up to a number of bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Differences {
    /// In the order of the later definition; what is gone comes last.
    pub(super) parts: Vec<Difference>,
    /// Whether more parts differ.
    pub(super) has_more: bool,
}

impl Differences {
    /// Whether nothing differs.
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// The parts that differ. No part is compared once the lines of those before it have `bytes_max` bytes.
pub(super) fn differences(before: &[Piece<'_>], after: &[Piece<'_>], bytes_max: usize) -> Differences {
    let earlier: BTreeMap<Title<'_>, Piece<'_>> =
        before.iter().map(|piece| (piece.title(), *piece)).collect();
    let later: BTreeMap<Title<'_>, Piece<'_>> = after.iter().map(|piece| (piece.title(), *piece)).collect();
    let changed = after.iter().map(|piece| (earlier.get(&piece.title()).copied(), Some(*piece)));
    let gone = before.iter().filter(|piece| !later.contains_key(&piece.title()));
    let pairs = changed.chain(gone.map(|piece| (Some(*piece), None)));
    let (mut parts, mut bytes, mut pairs_left) = (Vec::new(), 0, PAIRS_COMPARED_MAX);
    for (earlier, later) in pairs {
        let Some(found) = difference_between(earlier, later, &mut pairs_left) else { continue };
        if bytes >= bytes_max {
            return Differences { parts, has_more: true };
        }
        bytes += found.lines.iter().map(|(_change, line)| line.len() + 1).sum::<usize>();
        parts.push(found);
    }
    Differences { parts, has_more: false }
}

fn difference_between(
    before: Option<Piece<'_>>,
    after: Option<Piece<'_>>,
    pairs_left: &mut usize,
) -> Option<Difference> {
    match (before, after) {
        (Some(before), Some(after)) if before.is_surely_same(after) => None,
        (Some(before), Some(after)) => {
            let (before, after) = (before.part(), after.part());
            let is_changed = before.lines != after.lines;
            is_changed
                .then(|| difference(&after, "changed", compare(&before.lines, &after.lines, pairs_left)))
        }
        (None, Some(after)) => {
            let part = after.part();
            Some(difference(&part, "added", all(Change::Added, &part.lines)))
        }
        (Some(before), None) => {
            let part = before.part();
            Some(difference(&part, "removed", all(Change::Removed, &part.lines)))
        }
        (None, None) => None,
    }
}

fn difference(part: &Part, word: &'static str, mut lines: Vec<(Change, String)>) -> Difference {
    if lines.len() > LINES_SHOWN_MAX {
        lines.truncate(LINES_SHOWN_MAX);
        lines.push((Change::Gap, String::new()));
    }
    Difference { title: part.title.clone(), word, lines }
}

fn all(change: Change, lines: &[String]) -> Vec<(Change, String)> {
    lines.iter().map(|line| (change, line.clone())).collect()
}

fn compare(before: &[String], after: &[String], pairs_left: &mut usize) -> Vec<(Change, String)> {
    let pairs = before.len() * after.len();
    if before.len() > LINES_COMPARED_MAX || after.len() > LINES_COMPARED_MAX || pairs > *pairs_left {
        return [all(Change::Removed, before), all(Change::Added, after)].concat();
    }
    *pairs_left -= pairs;
    around_changes(&aligned(before, after))
}

/// All lines of both, those of a longest common sequence once.
fn aligned(before: &[String], after: &[String]) -> Vec<(Change, String)> {
    // The length of the longest common sequence from each pair of places on.
    let width = after.len() + 1;
    let mut common = vec![0_u16; (before.len() + 1) * width];
    for at in (0..before.len()).rev() {
        for other in (0..after.len()).rev() {
            common[at * width + other] = match before[at] == after[other] {
                true => common[(at + 1) * width + other + 1] + 1,
                false => common[(at + 1) * width + other].max(common[at * width + other + 1]),
            };
        }
    }
    let (mut at, mut other, mut lines) = (0, 0, Vec::new());
    while at < before.len() && other < after.len() {
        if before[at] == after[other] {
            lines.push((Change::Same, before[at].clone()));
            (at, other) = (at + 1, other + 1);
        } else if common[(at + 1) * width + other] >= common[at * width + other + 1] {
            lines.push((Change::Removed, before[at].clone()));
            at += 1;
        } else {
            lines.push((Change::Added, after[other].clone()));
            other += 1;
        }
    }
    lines.extend(all(Change::Removed, &before[at..]));
    lines.extend(all(Change::Added, &after[other..]));
    lines
}

/// The lines that differ with a few around them. What is left out is one line.
fn around_changes(lines: &[(Change, String)]) -> Vec<(Change, String)> {
    let is_near = |at: usize| {
        let from = at.saturating_sub(LINES_AROUND);
        lines[from..(at + LINES_AROUND + 1).min(lines.len())]
            .iter()
            .any(|(change, _)| *change != Change::Same)
    };
    let mut shown: Vec<(Change, String)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if is_near(at) {
            shown.push(line.clone());
        } else if shown.last().is_none_or(|(change, _)| *change != Change::Gap) {
            shown.push((Change::Gap, String::new()));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(title: &str, lines: &str) -> Part {
        Part { title: title.to_owned(), lines: lines.chars().map(String::from).collect() }
    }

    fn of_parts(before: &[Part], after: &[Part], bytes_max: usize) -> Differences {
        let before: Vec<Piece<'_>> = before.iter().map(Piece::Table).collect();
        let after: Vec<Piece<'_>> = after.iter().map(Piece::Table).collect();
        differences(&before, &after, bytes_max)
    }

    fn shown(before: &str, after: &str) -> String {
        let found = of_parts(&[part("p", before)], &[part("p", after)], usize::MAX);
        found.parts.first().map_or_else(String::new, |difference| {
            difference.lines.iter().map(|(change, line)| format!("{}{line}", change.sign())).collect()
        })
    }

    #[test]
    fn lines_that_are_in_both_are_shown_around_changes() {
        assert_eq!(shown("abc", "abc"), "");
        assert_eq!(shown("abcd", "abxd"), " a b-c+x d");
        assert_eq!(shown("abcdefghijk", "abcdefghijkl"), "… i j k+l");
        assert_eq!(shown("0123456789", "x123456789"), "-0+x 1 2 3…");
        assert_eq!(shown("", "ab"), "+a+b");
    }

    #[test]
    fn parts_are_added_changed_and_removed() {
        let before = [part("same", "a"), part("gone", "b"), part("other", "c")];
        let after = [part("other", "d"), part("same", "a"), part("new", "e")];
        let found: Vec<(String, &str)> = of_parts(&before, &after, usize::MAX)
            .parts
            .into_iter()
            .map(|difference| (difference.title, difference.word))
            .collect();
        let expected = [("other", "changed"), ("new", "added"), ("gone", "removed")];
        assert_eq!(found, expected.map(|(title, word)| (title.to_owned(), word)));
    }

    #[test]
    fn parts_that_are_too_long_are_replaced_as_a_whole() {
        let long = "x".repeat(LINES_COMPARED_MAX + 1);
        let found = of_parts(&[part("p", &long)], &[part("p", "x")], usize::MAX).parts;
        assert_eq!(found[0].lines.iter().filter(|(change, _)| *change == Change::Same).count(), 0);
        assert_eq!(found[0].lines.len(), LINES_COMPARED_MAX + 2);
    }

    #[test]
    fn after_many_pairs_parts_are_replaced_as_a_whole() {
        let mut pairs_left = 8;
        let lines = |text: &str| part("p", text).lines;
        let mut same = |before: &str, after: &str| {
            let compared = compare(&lines(before), &lines(after), &mut pairs_left);
            compared.iter().filter(|(change, _)| *change == Change::Same).count()
        };
        assert_eq!([same("ab", "axb"), same("ab", "ax"), same("a", "ab")], [2, 0, 1]);
    }

    #[test]
    fn parts_after_the_limit_are_not_compared() {
        let parts = |text: &str| ["a", "b", "c", "d"].map(|title| part(title, text));
        let titles = |bytes_max| {
            let found = of_parts(&parts("x"), &parts("y"), bytes_max);
            (found.parts.len(), found.has_more)
        };
        // Each part has two lines of a letter and its end.
        assert_eq!([titles(8), titles(9), titles(16)], [(2, true), (3, true), (4, false)]);
    }
}
