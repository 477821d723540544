//! What happens to a job that waits for a decision. Pure: the scheduler reads the values, asks here, and writes the
//! answer to the tables.

use crate::join_rule::{Join, JoinRule, ParentEnds};

/// What is known about a job whose parents have all ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// When the job runs, by the ends of its parents.
    pub join_rule: JoinRule,
    /// The ends of its parents.
    pub parents: ParentEnds,
}

/// What happens to the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It can be claimed, or it waits for a slot of its concurrency key.
    GoOn,
    /// It is skipped.
    Skip {
        /// Whether a job before it failed or was cancelled.
        upstream_failed: bool,
        /// Why, for people.
        reason: String,
    },
}

/// Decides about a job.
#[must_use]
pub fn decide(job: &Undecided) -> Decision {
    let upstream_failed = match job.join_rule.join(job.parents) {
        Join::GoOn => return Decision::GoOn,
        Join::SkipAsBroken => true,
        Join::SkipAsNotNeeded => false,
    };
    Decision::Skip { upstream_failed, reason: reason(job) }
}

/// Why the rule of a job does not hold.
fn reason(job: &Undecided) -> String {
    let Undecided { join_rule, parents: ParentEnds { passed, broken, not_needed } } = job;
    let all = passed + broken + not_needed;
    let (rule, why) = match join_rule {
        JoinRule::AllSuccessful if *broken > 0 => ("all_successful", format!("{broken} of {all} failed")),
        JoinRule::AllSuccessful => {
            ("all_successful", format!("{not_needed} of {all} were skipped as not needed"))
        }
        JoinRule::NoneFailed if *broken > 0 => ("none_failed", format!("{broken} of {all} failed")),
        JoinRule::NoneFailed => ("none_failed", format!("all {all} were skipped as not needed")),
        JoinRule::AnySuccessful => ("any_successful", format!("none of {all} was successful")),
        JoinRule::AnyFailed => ("any_failed", format!("none of {all} failed")),
        JoinRule::AllFinished => ("all_finished", format!("{all} have ended")),
    };
    format!("skipped: its `when` is `{rule}`, and of the jobs that it needs {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_job_says_which_rule_did_not_hold_and_why() {
        let job = |join_rule, passed, broken, not_needed| Undecided {
            join_rule,
            parents: ParentEnds { passed, broken, not_needed },
        };
        assert_eq!(decide(&job(JoinRule::AnyFailed, 1, 1, 0)), Decision::GoOn);
        for (job, is_upstream, why) in [
            (
                job(JoinRule::AllSuccessful, 2, 0, 1),
                false,
                "`all_successful`, and of the jobs that it needs 1 of 3 were skipped",
            ),
            (
                job(JoinRule::NoneFailed, 1, 1, 0),
                true,
                "`none_failed`, and of the jobs that it needs 1 of 2 failed",
            ),
            (
                job(JoinRule::AnyFailed, 2, 0, 0),
                false,
                "`any_failed`, and of the jobs that it needs none of 2 failed",
            ),
            (job(JoinRule::AnySuccessful, 0, 0, 2), false, "none of 2 was successful"),
        ] {
            let Decision::Skip { upstream_failed, reason } = decide(&job) else { panic!("{job:?} goes on") };
            assert_eq!(upstream_failed, is_upstream, "{job:?}");
            assert!(reason.contains(why), "{reason}");
        }
    }
}
