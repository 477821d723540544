//! The runs that jobs of a run have started, and the run that started it: a tree of calls.

use windlass_engine::RunStatus;

use crate::pages::frame::Reader;
use crate::pages::look::Look;

/// The most runs of a tree that are read.
pub const TREE_RUNS_MAX: i64 = 1_000;
/// So many are shown.
const ROWS_MAX: usize = 100;
/// Deeper ones are not shifted further.
const DEPTH_SHOWN_MAX: usize = 8;

/// A run of the tree. The first one is the run at the top.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRun {
    /// Its id.
    pub id: i64,
    /// Its workflow.
    pub workflow: String,
    /// Its state.
    pub status: RunStatus,
    /// The run and the name of the job that started it.
    pub started_by: Option<(i64, String)>,
}

pub(super) struct Tree {
    pub(super) rows: Vec<TreeRow>,
    pub(super) note: Option<String>,
}

pub(super) struct TreeRow {
    pub(super) id: i64,
    pub(super) href: String,
    pub(super) workflow: String,
    pub(super) look: Look,
    pub(super) by: String,
    pub(super) depth: usize,
    pub(super) is_current: bool,
}

impl Tree {
    /// `None` for a run that neither called another one nor was called.
    pub(super) fn new(runs: &[TreeRun], current: i64, reader: &Reader) -> Option<Tree> {
        let (top, below) = runs.split_first()?;
        if below.is_empty() {
            return None;
        }
        let mut rows = Vec::new();
        // From the last to the first, so that the next one is at the end.
        let mut open = vec![(top, 0)];
        while let Some((run, depth)) = open.pop() {
            rows.push(TreeRow {
                id: run.id,
                href: format!("{}/runs/{}", reader.base, run.id),
                workflow: run.workflow.clone(),
                look: Look::of_run(run.status),
                by: run.started_by.as_ref().map_or_else(String::new, |(_, job)| job.clone()),
                depth: depth.min(DEPTH_SHOWN_MAX),
                is_current: run.id == current,
            });
            let parent = |other: &&TreeRun| other.started_by.as_ref().is_some_and(|(id, _)| *id == run.id);
            let mut children: Vec<&TreeRun> = below.iter().filter(parent).collect();
            children.sort_by_key(|child| std::cmp::Reverse((place(child.status), child.id)));
            open.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
        let found = rows.len();
        let kept = |at: usize, row: &TreeRow| at < ROWS_MAX || row.is_current;
        let rows: Vec<TreeRow> =
            rows.into_iter().enumerate().filter(|(at, row)| kept(*at, row)).map(|(_, row)| row).collect();
        let is_whole = (below.len() as i64) < TREE_RUNS_MAX;
        let note = match (rows.len() < found, is_whole) {
            (false, true) => None,
            (_, true) => Some(format!("{} of {found} runs, those that failed first", rows.len())),
            (_, false) => Some(format!("{} of the first {TREE_RUNS_MAX} runs below", rows.len())),
        };
        Some(Tree { rows, note })
    }
}

/// The run at which the failure of a run began: of the runs that it called, and of those that they called, a failed one that
/// called no other failed one. `None` if none of its own failed.
pub(super) fn failed_below(runs: &[TreeRun], run_id: i64) -> Option<&TreeRun> {
    let mut found: Option<&TreeRun> = None;
    // A run is below those that called it, so each step is to a newer run.
    for _ in runs {
        let above = found.map_or(run_id, |run| run.id);
        let is_called = |run: &&TreeRun| run.started_by.as_ref().is_some_and(|(id, _)| *id == above);
        let failed = |run: &&TreeRun| run.status == RunStatus::Failed;
        match runs.iter().filter(is_called).find(failed) {
            Some(run) => found = Some(run),
            None => break,
        }
    }
    found
}

/// What failed comes first, then what is unfinished.
fn place(status: RunStatus) -> u8 {
    match status {
        RunStatus::Failed => 0,
        RunStatus::Running => 1,
        RunStatus::Pending => 2,
        RunStatus::Cancelled => 3,
        RunStatus::Successful => 4,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::pages::times::Times;
    use crate::pages::{Badges, Rights};

    fn reader() -> Reader {
        let times = Times { zone: Times::zone("UTC"), now_ms: 0 };
        let (base, form_token) = (String::new(), String::new());
        Reader { base, times, rights: Rights::View, form_token, signed_in: None, badges: Badges::default() }
    }

    fn run(id: i64, parent: Option<i64>, status: RunStatus) -> TreeRun {
        let started_by = parent.map(|parent| (parent, "call".to_owned()));
        TreeRun { id, workflow: "w".to_owned(), status, started_by }
    }

    #[test]
    fn a_called_run_stands_below_the_run_that_called_it_and_failures_come_first() {
        let (ok, bad) = (RunStatus::Successful, RunStatus::Failed);
        let runs = [run(1, None, bad), run(2, Some(1), ok), run(3, Some(1), bad), run(4, Some(2), ok)];
        let tree = Tree::new(&runs, 3, &reader()).unwrap();
        let rows: Vec<(i64, usize, bool)> =
            tree.rows.iter().map(|row| (row.id, row.depth, row.is_current)).collect();
        assert_eq!(rows, [(1, 0, false), (3, 1, true), (2, 1, false), (4, 2, false)]);
        assert!(Tree::new(&runs[..1], 1, &reader()).is_none() && Tree::new(&[], 1, &reader()).is_none());
    }

    #[test]
    fn a_failure_began_at_the_lowest_run_that_failed() {
        let (ok, bad) = (RunStatus::Successful, RunStatus::Failed);
        let runs = [run(1, None, bad), run(2, Some(1), ok), run(3, Some(1), bad), run(4, Some(3), bad)];
        let found = |id| failed_below(&runs, id).map(|run| run.id);
        assert_eq!([found(1), found(2), found(3), found(4)], [Some(4), None, Some(4), None]);
    }

    #[test]
    fn a_large_tree_is_shown_in_part_with_the_run_of_the_page() {
        let mut runs = vec![run(1, None, RunStatus::Running)];
        runs.extend((2..=301).map(|id| run(id, Some(1), RunStatus::Successful)));
        let tree = Tree::new(&runs, 250, &reader()).unwrap();
        assert_eq!(tree.rows.len(), ROWS_MAX + 1);
        assert!(tree.rows.iter().any(|row| row.is_current) && tree.note.unwrap().contains("of 301 runs"));
    }
}
