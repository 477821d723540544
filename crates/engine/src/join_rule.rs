//! How a job ended, as its children see it, and what a child makes of the ends of its parents. Pure decisions, which the
//! store writes to the tables.

use crate::status::JobStatus;

/// How a job ended, as its children see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd {
    /// It was successful, or it may fail.
    Passed,
    /// It failed, was cancelled, or was skipped because a job before it failed or was cancelled.
    Broken,
    /// It was skipped because nobody needed it: no job before it failed.
    NotNeeded,
}

/// The columns that tell how a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndColumns {
    /// Its state.
    pub status: JobStatus,
    /// Its failure counts as a success.
    pub allow_failure: bool,
    /// It was skipped because a job before it failed or was cancelled.
    pub upstream_failed: bool,
}

impl EndColumns {
    /// How the job ended; `None` if it has not ended.
    #[must_use]
    pub fn end(self) -> Option<JobEnd> {
        match self.status {
            JobStatus::Blocked
            | JobStatus::Scheduled
            | JobStatus::Pending
            | JobStatus::Running
            | JobStatus::Waiting => None,
            JobStatus::Successful => Some(JobEnd::Passed),
            JobStatus::Failed if self.allow_failure => Some(JobEnd::Passed),
            JobStatus::Failed | JobStatus::Cancelled => Some(JobEnd::Broken),
            JobStatus::Skipped if self.upstream_failed => Some(JobEnd::Broken),
            JobStatus::Skipped => Some(JobEnd::NotNeeded),
        }
    }
}

/// When a job runs, by the ends of its parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinRule {
    /// All parents passed. The default.
    AllSuccessful,
    /// No parent is broken, and one passed.
    NoneFailed,
    /// One parent passed.
    AnySuccessful,
    /// One parent is broken.
    AnyFailed,
    /// All parents have ended.
    AllFinished,
}

/// How many parents of a job ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParentEnds {
    /// Those that passed.
    pub passed: i64,
    /// Those that are broken.
    pub broken: i64,
    /// Those that were not needed.
    pub not_needed: i64,
}

/// What a job does when all its parents have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// It goes on.
    GoOn,
    /// It is skipped because a job before it failed or was cancelled.
    SkipAsBroken,
    /// It is skipped because it is not needed.
    SkipAsNotNeeded,
}

impl JoinRule {
    /// All rules.
    pub const ALL: [JoinRule; 5] = [
        JoinRule::AllSuccessful,
        JoinRule::NoneFailed,
        JoinRule::AnySuccessful,
        JoinRule::AnyFailed,
        JoinRule::AllFinished,
    ];

    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            JoinRule::AllSuccessful => "all_successful",
            JoinRule::NoneFailed => "none_failed",
            JoinRule::AnySuccessful => "any_successful",
            JoinRule::AnyFailed => "any_failed",
            JoinRule::AllFinished => "all_finished",
        }
    }

    /// Reads the spelling in the tables.
    #[must_use]
    pub fn parse(text: &str) -> Option<JoinRule> {
        JoinRule::ALL.into_iter().find(|rule| rule.as_str() == text)
    }

    /// What the job does when all its parents have ended.
    #[must_use]
    pub fn join(self, parents: ParentEnds) -> Join {
        let ParentEnds { passed, broken, not_needed } = parents;
        let holds = match self {
            JoinRule::AllSuccessful => broken == 0 && not_needed == 0,
            JoinRule::NoneFailed => broken == 0 && passed > 0,
            JoinRule::AnySuccessful => passed > 0,
            JoinRule::AnyFailed => broken > 0,
            JoinRule::AllFinished => true,
        };
        if holds {
            return Join::GoOn;
        }
        match self {
            // A job that waits for a failure is not needed without one.
            JoinRule::AnyFailed | JoinRule::AllFinished => Join::SkipAsNotNeeded,
            JoinRule::AllSuccessful | JoinRule::NoneFailed | JoinRule::AnySuccessful if broken > 0 => {
                Join::SkipAsBroken
            }
            JoinRule::AllSuccessful | JoinRule::NoneFailed | JoinRule::AnySuccessful => Join::SkipAsNotNeeded,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_joins_as_the_guide_says() {
        use Join::{GoOn, SkipAsBroken, SkipAsNotNeeded};
        // The columns are the rules, in the order of `ALL`.
        for ((passed, broken, not_needed), joins) in [
            ((2, 0, 0), [GoOn, GoOn, GoOn, SkipAsNotNeeded, GoOn]),
            ((1, 1, 0), [SkipAsBroken, SkipAsBroken, GoOn, GoOn, GoOn]),
            ((1, 0, 1), [SkipAsNotNeeded, GoOn, GoOn, SkipAsNotNeeded, GoOn]),
            ((0, 2, 0), [SkipAsBroken, SkipAsBroken, SkipAsBroken, GoOn, GoOn]),
            ((0, 1, 1), [SkipAsBroken, SkipAsBroken, SkipAsBroken, GoOn, GoOn]),
            ((0, 0, 2), [SkipAsNotNeeded, SkipAsNotNeeded, SkipAsNotNeeded, SkipAsNotNeeded, GoOn]),
            ((1, 1, 1), [SkipAsBroken, SkipAsBroken, GoOn, GoOn, GoOn]),
        ] {
            let parents = ParentEnds { passed, broken, not_needed };
            assert_eq!(JoinRule::ALL.map(|rule| rule.join(parents)), joins, "{parents:?}");
        }
    }

    #[test]
    fn a_skipped_job_is_broken_only_after_a_failure_before_it() {
        let columns =
            |status, allow_failure, upstream_failed| EndColumns { status, allow_failure, upstream_failed };
        for (columns, end) in [
            (columns(JobStatus::Successful, false, false), Some(JobEnd::Passed)),
            (columns(JobStatus::Failed, true, false), Some(JobEnd::Passed)),
            (columns(JobStatus::Failed, false, false), Some(JobEnd::Broken)),
            (columns(JobStatus::Cancelled, true, false), Some(JobEnd::Broken)),
            (columns(JobStatus::Skipped, true, true), Some(JobEnd::Broken)),
            (columns(JobStatus::Skipped, false, false), Some(JobEnd::NotNeeded)),
            (columns(JobStatus::Waiting, false, false), None),
        ] {
            assert_eq!(columns.end(), end, "{columns:?}");
        }
    }

    #[test]
    fn every_rule_is_read_back() {
        for rule in JoinRule::ALL {
            assert_eq!(JoinRule::parse(rule.as_str()), Some(rule));
        }
        assert_eq!(JoinRule::parse("all"), None);
    }
}
