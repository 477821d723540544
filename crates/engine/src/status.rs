//! The states of runs, jobs and workers, and their spelling in the tables.

use std::fmt;

/// The state of a job. See the state machine in `ARCHITECTURE.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStatus {
    /// It has unfinished parents.
    Blocked,
    /// Its time has not come.
    Scheduled,
    /// It can be claimed now.
    Pending,
    /// A worker has claimed it.
    Running,
    /// It waits for a slot of its concurrency key.
    Waiting,
    /// It succeeded.
    Successful,
    /// It failed, and is not retried.
    Failed,
    /// It ended without running: a job before it failed, it was not needed, or it found no free slot.
    Skipped,
    /// It was cancelled by a person, or its run reached its deadline.
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

    /// The state with that spelling, in upper or lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<JobStatus> {
        JobStatus::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether it is finished. Only a retry by a person can change it then.
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

/// What a WAITING job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// A slot of its concurrency key.
    Slot,
    /// A decision of the scheduler, whether it runs.
    Decision,
    /// An event.
    Event,
    /// A person, who approves or rejects it.
    Approval,
    /// The ends of its items.
    Items,
    /// The end of the run that it has started.
    Run,
}

impl WaitsFor {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            WaitsFor::Slot => "slot",
            WaitsFor::Decision => "decision",
            WaitsFor::Event => "event",
            WaitsFor::Approval => "approval",
            WaitsFor::Items => "items",
            WaitsFor::Run => "run",
        }
    }

    /// Reads the spelling in the tables.
    #[must_use]
    pub fn parse(text: &str) -> Option<WaitsFor> {
        [
            WaitsFor::Slot,
            WaitsFor::Decision,
            WaitsFor::Event,
            WaitsFor::Approval,
            WaitsFor::Items,
            WaitsFor::Run,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == text)
    }
}

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunStatus {
    /// None of its jobs was claimed yet.
    Pending,
    /// At least one of its jobs was claimed.
    Running,
    /// All its jobs are finished, and none failed without `allow_failure`.
    Successful,
    /// A job failed without `allow_failure`, or it reached its timeout.
    Failed,
    /// It was cancelled by a person.
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

    /// The state with that spelling, in upper or lower case.
    #[must_use]
    pub fn parse(text: &str) -> Option<RunStatus> {
        RunStatus::ALL.into_iter().find(|status| status.as_str().eq_ignore_ascii_case(text))
    }

    /// Whether it is finished. Only a retry by a person can reopen it then.
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

/// Why a run was stopped before its jobs had finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// A person cancelled it.
    Cancelled,
    /// It reached its timeout.
    TimedOut,
    /// Its concurrency key had no free slot, and its `on_full` is `skip`.
    Skipped,
}

impl StopReason {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed_out",
            StopReason::Skipped => "skipped",
        }
    }

    /// The reason with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<StopReason> {
        let all = [StopReason::Cancelled, StopReason::TimedOut, StopReason::Skipped];
        all.into_iter().find(|reason| reason.as_str() == text)
    }
}

/// Why a schedule started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunSource {
    /// An occurrence of a schedule, on time.
    Schedule,
    /// A missed occurrence that was caught up.
    Catchup,
    /// An occurrence in the past that a person asked for.
    Backfill,
    /// A person fired the schedule by hand.
    Manual,
    /// An event or the end of another run: a trigger of the workflow took it.
    Event,
}

impl RunSource {
    /// Its spelling in the tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            RunSource::Schedule => "schedule",
            RunSource::Catchup => "catchup",
            RunSource::Backfill => "backfill",
            RunSource::Manual => "manual",
            RunSource::Event => "event",
        }
    }

    /// The source with that spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<RunSource> {
        [RunSource::Schedule, RunSource::Catchup, RunSource::Backfill, RunSource::Manual, RunSource::Event]
            .into_iter()
            .find(|source| source.as_str() == text)
    }
}

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStatus {
    /// It claims and executes jobs.
    Alive,
    /// It finishes its running jobs and claims no more.
    Draining,
    /// It stopped normally.
    Stopped,
    /// It was fenced, because its process is gone or its lease has ended.
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

    /// The state with that spelling.
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
