//! Proves from the record of changes that each attempt had one owner and each job one success, and from
//! the rows that attempts stayed within their bounds.

use std::collections::BTreeMap;

use crate::audit::Change;
use crate::tables::{Attempt, Job};

/// Attempts with two claims, jobs with two successes, jobs that changed after their success.
#[must_use]
pub fn owner_problems(changes: &[Change]) -> Vec<String> {
    let mut owners = BTreeMap::new();
    let mut succeeded = BTreeMap::new();
    let mut problems = Vec::new();
    for change in changes {
        let Change { seq, job_id, before, after, attempt, worker_id } = change;
        if let Some(earlier) = succeeded.get(job_id) {
            problems
                .push(format!("job {job_id} succeeded at change {earlier} and went on to {after} at {seq}"));
        }
        if before == "RUNNING" && after == "PENDING" {
            // The claim was released before the attempt ran, so the number of the attempt is free again.
            owners.remove(&(*job_id, attempt + 1));
        }
        if after == "RUNNING"
            && let Some(other) = owners.insert((*job_id, *attempt), *worker_id)
        {
            problems.push(format!(
                "attempt {attempt} of job {job_id} was claimed by {other:?} and by {worker_id:?}"
            ));
        }
        if after == "SUCCESSFUL" {
            if before != "RUNNING" {
                problems.push(format!("job {job_id} went from {before} to SUCCESSFUL at change {seq}"));
            }
            succeeded.insert(*job_id, *seq);
        }
    }
    problems
}

/// Jobs whose record shows no success.
#[must_use]
pub fn lost(jobs: &[Job], changes: &[Change]) -> Vec<String> {
    let succeeded =
        |job: &Job| changes.iter().any(|change| change.job_id == job.id && change.after == "SUCCESSFUL");
    let missing = jobs.iter().filter(|job| !succeeded(job));
    missing
        .map(|job| format!("job {} ({}) is {} and never succeeded", job.id, job.name, job.status))
        .collect()
}

/// Counters over their limits, and attempts without a record.
#[must_use]
pub fn bound_problems(jobs: &[Job], attempts: &[Attempt]) -> Vec<String> {
    let mut problems = Vec::new();
    for job in jobs {
        let Job { id, attempt, failures, interruptions, max_attempts, max_interruptions, .. } = job;
        if failures > max_attempts {
            problems.push(format!("job {id} failed {failures} times, {max_attempts} are allowed"));
        }
        // The interruption beyond the limit ends the job.
        let bound = max_interruptions + i64::from(job.status == "FAILED");
        if *interruptions > bound {
            problems.push(format!("job {id} was interrupted {interruptions} times, of {max_interruptions}"));
        }
        let recorded = attempts.iter().filter(|row| row.job_id == *id).count();
        let unsuccessful = attempt - i64::from(job.status == "SUCCESSFUL");
        if i64::try_from(recorded).ok() != Some(unsuccessful) {
            problems
                .push(format!("job {id} had {unsuccessful} unsuccessful attempts, {recorded} are recorded"));
        }
        if failures + interruptions != unsuccessful {
            problems.push(format!(
                "job {id} had {unsuccessful} unsuccessful attempts, but {failures} failures and \
                 {interruptions} interruptions"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(seq: i64, before: &str, after: &str, attempt: i64, worker_id: Option<i64>) -> Change {
        Change { seq, job_id: 7, before: before.into(), after: after.into(), attempt, worker_id }
    }

    fn a_life() -> Vec<Change> {
        vec![
            change(1, "PENDING", "RUNNING", 1, Some(1)),
            change(2, "RUNNING", "PENDING", 1, None),
            change(3, "PENDING", "RUNNING", 2, Some(2)),
            change(4, "RUNNING", "SUCCESSFUL", 2, None),
        ]
    }

    fn job() -> Job {
        Job {
            id: 7,
            status: "SUCCESSFUL".into(),
            attempt: 2,
            max_attempts: 1,
            interruptions: 1,
            max_interruptions: 25,
            ..Job::default()
        }
    }

    fn attempt() -> Attempt {
        Attempt { job_id: 7, attempt: 1, worker_id: Some(1), outcome: "interrupted".into(), error: None }
    }

    #[test]
    fn a_life_with_one_rescue_is_fine() {
        assert_eq!(owner_problems(&a_life()), Vec::<String>::new());
        assert_eq!(lost(&[job()], &a_life()), Vec::<String>::new());
        assert_eq!(bound_problems(&[job()], &[attempt()]), Vec::<String>::new());
    }

    #[test]
    fn two_owners_of_one_attempt_are_found() {
        let mut life = a_life();
        life[2].attempt = 1;
        assert_eq!(owner_problems(&life).len(), 1);
    }

    #[test]
    fn a_claim_that_was_given_back_is_no_second_owner() {
        let mut life = a_life();
        life.insert(0, change(0, "RUNNING", "PENDING", 0, None));
        life.insert(0, change(-1, "PENDING", "RUNNING", 1, Some(9)));
        assert_eq!(owner_problems(&life), Vec::<String>::new());
    }

    #[test]
    fn a_second_success_is_found() {
        let mut life = a_life();
        life.push(change(5, "RUNNING", "SUCCESSFUL", 3, None));
        assert_eq!(owner_problems(&life).len(), 1);
    }

    #[test]
    fn a_success_of_nobody_is_found() {
        let mut life = a_life();
        life[3].before = "PENDING".into();
        assert_eq!(owner_problems(&life).len(), 1);
    }

    #[test]
    fn a_lost_job_is_found() {
        assert_eq!(lost(&[job()], &a_life()[..3]).len(), 1);
    }

    #[test]
    fn counters_over_their_bounds_are_found() {
        let over = Job { interruptions: 26, attempt: 27, ..job() };
        let attempts = vec![attempt(); 26];
        assert_eq!(bound_problems(&[over], &attempts).len(), 1);
        let over = Job { failures: 2, interruptions: 0, attempt: 3, ..job() };
        assert_eq!(bound_problems(&[over], &[attempt(), attempt()]).len(), 1);
    }

    #[test]
    fn an_attempt_without_a_trace_is_found() {
        assert_eq!(bound_problems(&[job()], &[]).len(), 1);
    }
}
