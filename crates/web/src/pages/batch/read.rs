//! Finds the runs of a batch, and does the action to them.

use windlass_engine::store::{Cursor, RetrySelection, Run, RunFilter};
use windlass_engine::{Error, Result, RunStatus, Store};

use super::{Action, Batch, BatchResult, BatchRuns, RUNS_OF_BATCH, Which};

/// The runs to which the action can be done.
///
/// # Errors
/// Returns the database's error.
pub fn runs(store: &Store, batch: &Batch) -> Result<BatchRuns> {
    let now_ms = store.clock().now_ms();
    let (mut runs, has_more) = match &batch.which {
        Which::Ids(ids) => (existing(store, ids)?, ids.len() as i64 > RUNS_OF_BATCH),
        Which::Failed { since_ms, workflow, job, error } => {
            let groups = store.runs().failures_since(*since_ms)?.groups;
            let group = groups.into_iter().find(|group| {
                !group.run_ids.is_empty()
                    && group.workflow == *workflow
                    && group.job == *job
                    && group.error == *error
            });
            (existing(store, &group.map_or_else(Vec::new, |group| group.run_ids))?, false)
        }
        Which::Matching(filter) => {
            let of_list = filter.of_store(now_ms);
            let statuses = match of_list.statuses.is_empty() {
                true => RunStatus::ALL.into_iter().filter(|status| batch.action.fits(*status)).collect(),
                false => of_list.statuses.clone(),
            };
            let cursor = Cursor { before: None, after: None, limit: RUNS_OF_BATCH };
            let page = store.runs().list_full(&RunFilter { statuses, cursor, ..of_list })?;
            (page.rows, page.next.is_some())
        }
    };
    let named = runs.len();
    runs.retain(|run| batch.action.fits(run.status));
    Ok(BatchRuns { left_out: named - runs.len(), runs, has_more })
}

fn existing(store: &Store, ids: &[i64]) -> Result<Vec<Run>> {
    let found: Result<Vec<Option<Run>>> =
        ids.iter().take(RUNS_OF_BATCH as usize).map(|id| store.runs().find(*id)).collect();
    Ok(found?.into_iter().flatten().collect())
}

/// Does the action to each run, in a transaction of its own. A run whose state does not allow it is left out with the reason.
///
/// # Errors
/// Returns the database's error if nothing goes on.
pub fn apply(store_of: impl Fn(i64) -> Store, action: Action, runs: &[Run]) -> Result<BatchResult> {
    let mut result = BatchResult::default();
    for run in runs {
        let store = store_of(run.id);
        let done = match action {
            Action::Retry => store.runs().retry(run.id, RetrySelection::Failed).map(|_jobs| ()),
            Action::Cancel => store.runs().cancel(run.id).map(|_cancelled| ()),
        };
        match done {
            Ok(()) => result.done += 1,
            Err(error @ (Error::Conflict { .. } | Error::NotFound { .. } | Error::Invalid { .. })) => {
                result.refused.push((run.id, error.to_string()));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(result)
}
