//! Proves from recorded times, and from the order of recorded changes, that no job started before its
//! parents were done.

use std::collections::BTreeMap;

use crate::audit::Change;
use crate::tables::Job;

/// Children that started before a parent finished, by the times in the rows.
#[must_use]
pub fn time_problems(jobs: &[Job], dependencies: &[(i64, i64)]) -> Vec<String> {
    let by_id: BTreeMap<i64, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
    let mut problems = Vec::new();
    for (parent_id, child_id) in dependencies {
        let (Some(parent), Some(child)) = (by_id.get(parent_id), by_id.get(child_id)) else {
            problems
                .push(format!("the dependency of {child_id} on {parent_id} names a job that is not there"));
            continue;
        };
        match (parent.finished_at, child.started_at) {
            (Some(finished), Some(started)) if finished <= started => {}
            (finished, started) => problems.push(format!(
                "{} started at {started:?}, its parent {} finished at {finished:?}",
                child.name, parent.name
            )),
        }
    }
    problems
}

/// Children that were claimed before a parent's success was recorded. Finer than times: it sees the
/// order within a millisecond.
#[must_use]
pub fn claim_problems(changes: &[Change], dependencies: &[(i64, i64)]) -> Vec<String> {
    let mut first_claim = BTreeMap::new();
    let mut success = BTreeMap::new();
    for change in changes {
        if change.after == "RUNNING" {
            first_claim.entry(change.job_id).or_insert(change.seq);
        } else if change.after == "SUCCESSFUL" {
            success.insert(change.job_id, change.seq);
        }
    }
    let wrong =
        dependencies.iter().filter(|(parent, child)| match (success.get(parent), first_claim.get(child)) {
            (Some(done), Some(claimed)) => done > claimed,
            (None, Some(_)) => true,
            (_, None) => false,
        });
    wrong
        .map(|(parent, child)| format!("job {child} was claimed before its parent {parent} succeeded"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: i64, started_at: i64, finished_at: i64) -> Job {
        Job { id, started_at: Some(started_at), finished_at: Some(finished_at), ..Job::default() }
    }

    fn change(seq: i64, job_id: i64, after: &str) -> Change {
        Change { seq, job_id, before: "RUNNING".into(), after: after.into(), attempt: 1, worker_id: None }
    }

    #[test]
    fn a_child_that_starts_when_its_parent_ends_is_fine() {
        assert_eq!(time_problems(&[job(1, 10, 20), job(2, 20, 30)], &[(1, 2)]), Vec::<String>::new());
    }

    #[test]
    fn a_child_that_starts_too_early_is_found() {
        assert_eq!(time_problems(&[job(1, 10, 20), job(2, 19, 30)], &[(1, 2)]).len(), 1);
    }

    #[test]
    fn a_child_that_never_started_is_found() {
        let never = Job { started_at: None, ..job(2, 0, 0) };
        assert_eq!(time_problems(&[job(1, 10, 20), never], &[(1, 2)]).len(), 1);
    }

    #[test]
    fn a_dangling_dependency_is_found() {
        assert_eq!(time_problems(&[job(1, 10, 20)], &[(1, 9)]).len(), 1);
    }

    #[test]
    fn a_claim_before_the_success_is_found() {
        let right = [change(1, 1, "RUNNING"), change(2, 1, "SUCCESSFUL"), change(3, 2, "RUNNING")];
        assert_eq!(claim_problems(&right, &[(1, 2)]), Vec::<String>::new());
        let wrong = [change(1, 1, "RUNNING"), change(2, 2, "RUNNING"), change(3, 1, "SUCCESSFUL")];
        assert_eq!(claim_problems(&wrong, &[(1, 2)]).len(), 1);
        assert_eq!(claim_problems(&wrong[..2], &[(1, 2)]).len(), 1);
    }
}
