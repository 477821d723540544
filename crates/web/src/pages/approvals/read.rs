//! Reads the approvals that wait for a person.

use windlass_engine::{Result, Store};

use super::{APPROVALS_OF_PAGE, ApprovalsData};

/// The approvals of the jobs after one.
///
/// # Errors
/// Returns the database's error.
pub fn read(store: &Store, after: Option<i64>) -> Result<ApprovalsData> {
    let mut approvals = store.jobs().open_approvals(after.unwrap_or(0), APPROVALS_OF_PAGE + 1)?;
    let has_more = approvals.len() as i64 > APPROVALS_OF_PAGE;
    approvals.truncate(APPROVALS_OF_PAGE as usize);
    let next = approvals.last().filter(|_| has_more).map(|last| last.job_id);
    Ok(ApprovalsData { approvals, next, is_first: after.is_none() })
}
