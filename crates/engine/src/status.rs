//! The states of runs, jobs, attempts and workers, and their spelling in the tables.

use std::fmt;

/// The state of a job. See the state machine in `ARCHITECTURE.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStatus {
    /// Its parents are not all finished.
    Blocked,
    /// Its time has not come.
    Scheduled,
    /// Claimable now.
    Pending,
    /// Claimed by a worker.
    Running,
    /// Waits for something from outside and holds no thread.
    Waiting,
    /// Done.
    Successful,
    /// Out of attempts, or failed for good.
    Failed,
    /// Can never run, because a parent did not succeed.
    Skipped,
    /// Stopped by a person or a deadline of its run.
    Cancelled,
}

impl JobStatus {
    /// Every state, in the order of a job's life.
    pub const ALL: [JobStatus; 9] = [
        JobStatus::Blocked,
        JobStatus::Scheduled,
        JobStatus::Pending,
        JobStatus::Running,
        JobStatus::Waiting,
        JobStatus::Successful,
        JobStatus::Failed,
        JobStatus::Skipped,
        JobStatus::Cancelled,
    ];

    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            JobStatus::Blocked => "BLOCKED",
            JobStatus::Scheduled => "SCHEDULED",
            JobStatus::Pending => "PENDING",
            JobStatus::Running => "RUNNING",
            JobStatus::Waiting => "WAITING",
            JobStatus::Successful => "SUCCESSFUL",
            JobStatus::Failed => "FAILED",
            JobStatus::Skipped => "SKIPPED",
            JobStatus::Cancelled => "CANCELLED",
        }
    }

    /// The state of that spelling, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<JobStatus> {
        JobStatus::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Nothing changes it any more, but a retry by a person.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            JobStatus::Blocked
            | JobStatus::Scheduled
            | JobStatus::Pending
            | JobStatus::Running
            | JobStatus::Waiting => false,
            JobStatus::Successful | JobStatus::Failed | JobStatus::Skipped | JobStatus::Cancelled => true,
        }
    }
}

impl fmt::Display for JobStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunStatus {
    /// Accepted; no job of it was claimed yet.
    Pending,
    /// A job of it was claimed.
    Running,
    /// Its last job is finished and none failed that matters.
    Successful,
    /// A job that matters failed, or its time was up.
    Failed,
    /// Stopped by a person.
    Cancelled,
}

impl RunStatus {
    /// Every state, in the order of a run's life.
    pub const ALL: [RunStatus; 5] = [
        RunStatus::Pending,
        RunStatus::Running,
        RunStatus::Successful,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ];

    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Pending => "PENDING",
            RunStatus::Running => "RUNNING",
            RunStatus::Successful => "SUCCESSFUL",
            RunStatus::Failed => "FAILED",
            RunStatus::Cancelled => "CANCELLED",
        }
    }

    /// The state of that spelling, in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// The run is over, unless a person retries it.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Pending | RunStatus::Running => false,
            RunStatus::Successful | RunStatus::Failed | RunStatus::Cancelled => true,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Why a run ends other than by its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A person asked for it.
    Cancelled,
    /// Its `timeout` was over.
    TimedOut,
}

impl StopReason {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed_out",
        }
    }

    /// The reason of that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<StopReason> {
        [StopReason::Cancelled, StopReason::TimedOut].into_iter().find(|reason| reason.as_str() == text)
    }
}

/// What a run comes from that nobody submitted by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSource {
    /// An occurrence of a schedule, on time.
    Schedule,
    /// An occurrence that was missed.
    Catchup,
    /// An occurrence of the past that a person asked for.
    Backfill,
    /// A person fired the schedule out of turn.
    Trigger,
}

impl RunSource {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunSource::Schedule => "schedule",
            RunSource::Catchup => "catchup",
            RunSource::Backfill => "backfill",
            RunSource::Trigger => "trigger",
        }
    }

    /// The source of that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<RunSource> {
        [RunSource::Schedule, RunSource::Catchup, RunSource::Backfill, RunSource::Trigger]
            .into_iter()
            .find(|source| source.as_str() == text)
    }
}

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStatus {
    /// Claims and executes.
    Alive,
    /// Finishes what it runs and claims nothing.
    Draining,
    /// Ended in order.
    Stopped,
    /// Fenced: its process is gone or its lease ended.
    Dead,
}

impl WorkerStatus {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WorkerStatus::Alive => "ALIVE",
            WorkerStatus::Draining => "DRAINING",
            WorkerStatus::Stopped => "STOPPED",
            WorkerStatus::Dead => "DEAD",
        }
    }

    /// The state of that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<WorkerStatus> {
        [WorkerStatus::Alive, WorkerStatus::Draining, WorkerStatus::Stopped, WorkerStatus::Dead]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_reads_back() {
        for status in JobStatus::ALL {
            assert_eq!(JobStatus::parse(status.as_str()), Some(status));
            assert_eq!(JobStatus::parse(&status.as_str().to_lowercase()), Some(status));
        }
        for status in RunStatus::ALL {
            assert_eq!(RunStatus::parse(status.as_str()), Some(status));
        }
        assert_eq!(JobStatus::parse("DONE"), None);
    }
}
