//! Finds the runs of a batch, and does the action to them.

use windlass_engine::store::{Cursor, FailureGroup, Failures, RetrySelection, Run, RunFilter};
use windlass_engine::{Error, Result, RunStatus, Store};

use super::{Action, Batch, BatchResult, BatchRuns, RUNS_OF_BATCH, RUNS_OF_STEP, RUNS_SHOWN, Which};
use crate::pages::runs::read::of_store;

/// The runs to which the action can be done, for the preview.
///
/// # Errors
/// Returns the database's error.
pub fn runs(store: &Store, batch: &Batch) -> Result<BatchRuns> {
    let (named, mut ids, has_more) = match &batch.which {
        Which::Ids(ids) => {
            let statuses = store.runs().statuses_of(ids)?;
            let fits = |id: &i64| statuses.get(id).is_some_and(|status| batch.action.fits(*status));
            (statuses.len(), ids.iter().copied().filter(fits).collect::<Vec<i64>>(), false)
        }
        Which::Failed { since_ms, .. } => {
            let (failures, ids) = failed(store, batch)?;
            let statuses = store.runs().statuses_of(&ids)?;
            let fits = |id: &i64| statuses.get(id).is_some_and(|status| batch.action.fits(*status));
            let has_more = failures.since_ms > *since_ms;
            (statuses.len(), ids.iter().copied().filter(fits).collect(), has_more)
        }
        Which::Matching(_) => {
            let page = store.runs().list(&matching(store, batch, RUNS_OF_BATCH)?)?;
            let fitting = page.rows.iter().filter(|run| batch.action.fits(run.status)).map(|run| run.id);
            (page.rows.len(), fitting.collect(), page.next.is_some())
        }
    };
    ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
    ids.dedup();
    let shown: Result<Vec<Option<Run>>> =
        ids.iter().take(RUNS_SHOWN).map(|id| store.runs().find(*id)).collect();
    let shown = shown?.into_iter().flatten().collect();
    Ok(BatchRuns { left_out: named.saturating_sub(ids.len()), ids, shown, has_more })
}

/// The next runs of a batch, and the lowest of their ids if more are left.
///
/// # Errors
/// Returns the database's error.
pub fn step(store: &Store, batch: &Batch) -> Result<(Vec<i64>, Option<i64>)> {
    match &batch.which {
        Which::Ids(ids) => Ok((ids.clone(), None)),
        Which::Failed { .. } => {
            let (_failures, ids) = failed(store, batch)?;
            let below = batch.progress.below.unwrap_or(i64::MAX);
            let mut ids: Vec<i64> = ids.into_iter().filter(|id| *id < below).collect();
            ids.sort_unstable_by_key(|id| std::cmp::Reverse(*id));
            let has_more = ids.len() > RUNS_OF_STEP;
            ids.truncate(RUNS_OF_STEP);
            let next = ids.last().copied().filter(|_| has_more);
            Ok((ids, next))
        }
        Which::Matching(_) => {
            let page = store.runs().list(&matching(store, batch, RUNS_OF_STEP)?)?;
            let fitting = page.rows.iter().filter(|run| batch.action.fits(run.status));
            Ok((fitting.map(|run| run.id).collect(), page.next))
        }
    }
}

/// The failures since the instant of a batch, and the runs of its group.
fn failed(store: &Store, batch: &Batch) -> Result<(Failures, Vec<i64>)> {
    let Which::Failed { since_ms, workflow, job, error } = &batch.which else {
        return Err(Error::internal("find the runs of a group", "the batch is of another sort"));
    };
    let failures = store.runs().failures_since(*since_ms)?;
    let is_meant = |group: &&FailureGroup| {
        !group.run_ids.is_empty() && group.workflow == *workflow && group.job == *job && group.error == *error
    };
    let ids = failures.groups.iter().find(is_meant).map_or_else(Vec::new, |group| group.run_ids.clone());
    Ok((failures, ids))
}

/// The filter of a batch, for its runs that are left.
fn matching(store: &Store, batch: &Batch, limit: usize) -> Result<RunFilter> {
    let Which::Matching(filter) = &batch.which else {
        return Err(Error::internal("find the runs of a filter", "the batch is of another sort"));
    };
    let now_ms = store.clock().now_ms();
    let of_list = of_store(store, filter, batch.progress.at_ms.unwrap_or(now_ms))?;
    let statuses: Vec<RunStatus> = match of_list.statuses.is_empty() {
        true => batch.action.statuses(),
        false => of_list.statuses.clone(),
    };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let cursor = Cursor { before: batch.progress.below, after: None, limit };
    Ok(RunFilter { statuses, cursor, ..of_list })
}

/// Does the action to each run, in a transaction of its own. A run whose state does not allow it is left out with the reason.
///
/// # Errors
/// Returns the database's error if nothing goes on.
pub fn apply(store_of: impl Fn(i64) -> Store, action: Action, ids: &[i64]) -> Result<BatchResult> {
    let mut result = BatchResult::default();
    for id in ids {
        let store = store_of(*id);
        let done = match action {
            Action::Retry => store.runs().retry(*id, RetrySelection::Failed).map(|_jobs| ()),
            Action::Cancel => store.runs().cancel(*id).map(|_cancelled| ()),
        };
        match done {
            Ok(()) => result.changed.push(*id),
            Err(error @ (Error::Conflict { .. } | Error::NotFound { .. } | Error::Invalid { .. })) => {
                result.refused.push((*id, error.to_string()));
            }
            Err(error @ (Error::Unavailable { .. } | Error::Internal { .. })) => return Err(error),
        }
    }
    Ok(result)
}
