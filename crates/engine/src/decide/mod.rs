//! What happens to a job that waits for a decision. Pure: the scheduler reads the values, asks here, and writes the
//! answer to the tables.

pub mod call;
pub mod for_each;
pub mod next_definition;
pub mod retry_preview;
mod signal;
mod sleep;
mod wait;

use for_each::{Expansion, Group};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use windlass_workflow::Expression;
use windlass_workflow::kinds::Action;
use windlass_workflow::kinds::approval::Approval;
use windlass_workflow::kinds::signal::Signal;
use windlass_workflow::kinds::sleep::Sleep;
use windlass_workflow::kinds::wait_for::WaitFor;

use call::Call;

use crate::join_rule::{Join, JoinRule, ParentEnds};
use crate::status::JobStatus;
pub use for_each::expand;
pub use signal::{SentEvent, decide_signal};
pub use sleep::begin_sleeping;
pub use wait::{MatchedEvent, Wait, decide_approval, decide_wait_for, event_column, parts_of_event};

/// What the scheduler decides before a job runs: the JSON in `jobs.control`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The job runs only if this holds. It is asked when the rule about its parents holds.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Expression>,
    /// What the scheduler does with the job when it goes on, in place of making it claimable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Then>,
    /// How long the job may take from now on, over all attempts, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// The names of the jobs that the templates in `then` read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uses: Vec<String>,
}

/// What the scheduler does with a job that goes on, if no worker executes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It makes a job of each item.
    ForEach(Group),
    /// It starts a run of another workflow.
    Call(Call),
    /// It sleeps, and ends when it wakes up.
    Sleep(Sleep),
    /// It waits for an event.
    WaitFor(WaitFor),
    /// It waits until a person approves or rejects it.
    Approval(Approval),
    /// It sends an event.
    Signal(Box<Signal>),
}

impl Then {
    /// What the scheduler does with a job of this action; `None` if a worker executes it.
    #[must_use]
    pub fn of(action: &Action) -> Option<Then> {
        match action {
            Action::Shell(_) | Action::Http(_) => None,
            Action::Call(call) => Call::of(call).map(Then::Call),
            Action::Sleep(sleep) => Some(Then::Sleep(sleep.clone())),
            Action::WaitFor(wait) => Some(Then::WaitFor(wait.clone())),
            Action::Approval(approval) => Some(Then::Approval(approval.clone())),
            Action::Signal(signal) => Some(Then::Signal(signal.clone())),
        }
    }
}

/// What happens to the job.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// It can be claimed, or it waits for a slot of its concurrency key.
    GoOn,
    /// It becomes a group, and each item a job.
    Expand(Box<Expansion>),
    /// It sleeps.
    Sleep {
        /// The instant at which it wakes up.
        until_ms: i64,
        /// How long it sleeps; `None` if a person named the instant.
        delay_ms: Option<i64>,
    },
    /// It waits for an event or for a person.
    Wait(Wait),
    /// It sends an event, and is successful.
    Send(SentEvent),
    /// It is successful.
    Done {
        /// Its output, as JSON.
        output: Option<String>,
    },
    /// It ends without an attempt.
    End(EndWithoutAttempt),
}

/// How a job ends that was decided not to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndWithoutAttempt {
    /// SKIPPED, or FAILED if the decision could not be made.
    pub status: JobStatus,
    /// Whether it was skipped because a job before it failed or was cancelled.
    pub upstream_failed: bool,
    /// Why, for people.
    pub reason: String,
}

impl EndWithoutAttempt {
    /// A job about which nothing can be decided.
    #[must_use]
    pub fn failed(reason: String) -> EndWithoutAttempt {
        EndWithoutAttempt { status: JobStatus::Failed, upstream_failed: false, reason }
    }
}

/// Decides about a job by the ends of its parents; `None` means that the rest decides.
#[must_use]
pub fn decide_by_parents(join_rule: JoinRule, parents: ParentEnds) -> Option<EndWithoutAttempt> {
    let upstream_failed = match join_rule.join(parents) {
        Join::GoOn => return None,
        Join::SkipAsBroken => true,
        Join::SkipAsNotNeeded => false,
    };
    let reason = reason(join_rule, parents);
    Some(EndWithoutAttempt { status: JobStatus::Skipped, upstream_failed, reason })
}

/// Decides about a job whose parents let it run, with the values that its condition reads.
#[must_use]
pub fn decide_by_condition(condition: &Expression, values: &Json) -> Decision {
    match condition.holds(values) {
        Ok(true) => Decision::GoOn,
        Ok(false) => Decision::End(EndWithoutAttempt {
            status: JobStatus::Skipped,
            upstream_failed: false,
            reason: format!("skipped: `if` was false: {}", condition.text()),
        }),
        Err(error) => Decision::End(EndWithoutAttempt::failed(format!("`if` could not be decided: {error}"))),
    }
}

/// Why the rule of a job does not hold.
fn reason(join_rule: JoinRule, ParentEnds { passed, broken, not_needed }: ParentEnds) -> String {
    let all = passed + broken + not_needed;
    let (rule, why) = match join_rule {
        JoinRule::AllSuccessful if broken > 0 => ("all_successful", format!("{broken} of {all} failed")),
        JoinRule::AllSuccessful => {
            ("all_successful", format!("{not_needed} of {all} were skipped as not needed"))
        }
        JoinRule::NoneFailed if broken > 0 => ("none_failed", format!("{broken} of {all} failed")),
        JoinRule::NoneFailed => ("none_failed", format!("all {all} were skipped as not needed")),
        JoinRule::AnySuccessful => ("any_successful", format!("none of {all} was successful")),
        JoinRule::AnyFailed => ("any_failed", format!("none of {all} failed")),
        JoinRule::AllFinished => ("all_finished", format!("{all} have ended")),
    };
    format!("skipped: its `when` is `{rule}`, and of the jobs that it needs {why}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_skipped_job_says_which_rule_did_not_hold_and_why() {
        let decided = |rule, passed, broken, not_needed| {
            decide_by_parents(rule, ParentEnds { passed, broken, not_needed })
        };
        assert_eq!(decided(JoinRule::AnyFailed, 1, 1, 0), None, "it goes on");
        for (decided, is_upstream, why) in [
            (
                decided(JoinRule::AllSuccessful, 2, 0, 1),
                false,
                "`all_successful`, and of the jobs that it needs 1 of 3 were skipped",
            ),
            (
                decided(JoinRule::NoneFailed, 1, 1, 0),
                true,
                "`none_failed`, and of the jobs that it needs 1 of 2 failed",
            ),
            (
                decided(JoinRule::AnyFailed, 2, 0, 0),
                false,
                "`any_failed`, and of the jobs that it needs none of 2 failed",
            ),
            (decided(JoinRule::AnySuccessful, 0, 0, 2), false, "none of 2 was successful"),
        ] {
            let EndWithoutAttempt { status, upstream_failed, reason } = decided.expect("it is skipped");
            assert_eq!((status, upstream_failed), (JobStatus::Skipped, is_upstream), "{reason}");
            assert!(reason.contains(why), "{reason}");
        }
    }

    #[test]
    fn a_condition_lets_a_job_run_skips_it_or_fails_it() {
        let decided = |text: &str| {
            let condition = Expression::parse(text).expect("an expression");
            decide_by_condition(&condition, &json!({ "params": { "mode": "full" }, "jobs": {} }))
        };
        assert_eq!(decided("params.mode == 'full'"), Decision::GoOn);
        let Decision::End(skipped) = decided("params.mode == 'delta'") else { panic!("it goes on") };
        assert_eq!((skipped.status, skipped.upstream_failed), (JobStatus::Skipped, false));
        assert!(skipped.reason.contains("`if` was false: params.mode == 'delta'"), "{}", skipped.reason);
        let Decision::End(failed) = decided("params.mode") else { panic!("it goes on") };
        assert_eq!(failed.status, JobStatus::Failed);
        assert!(failed.reason.contains("not true or false"), "{}", failed.reason);
    }
}
