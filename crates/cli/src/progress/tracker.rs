//! Turns the states of jobs into events and counts.
//!
//! The states come from the database in portions: those that changed since the last read. A job may have ended
//! before it is seen for the first time. The tracker then adds the missing start, so that every end has one.

use std::collections::{BTreeMap, HashMap};

use windlass_engine::JobStatus;

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JobState {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) status: JobStatus,
    pub(crate) attempt: i64,
    pub(crate) max_attempts: i64,
    pub(crate) failures: i64,
    pub(crate) interruptions: i64,
    pub(crate) execute_after_ms: i64,
    pub(crate) started_at_ms: Option<i64>,
    pub(crate) finished_at_ms: Option<i64>,
    pub(crate) updated_at_ms: i64,
    pub(crate) allow_failure: bool,
    pub(crate) last_error: Option<String>,
}

impl JobState {
    /// Whether an attempt runs.
    pub(crate) fn is_running(&self) -> bool {
        self.status == JobStatus::Running
    }

    /// Whether it failed, and its failure does not matter to its run.
    pub(crate) fn is_allowed_failure(&self) -> bool {
        self.status == JobStatus::Failed && self.allow_failure
    }
}

/// A change of the state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ms: i64,
    pub(crate) job: JobState,
    pub(crate) change: Change,
}

impl Event {
    /// The last attempt that was over when this happened. An event of the end of an attempt may be read when the next
    /// attempt runs already.
    pub(crate) fn ended_attempt(&self) -> i64 {
        let runs_again = self.job.is_running();
        match self.change {
            Change::Started => self.job.attempt - 1,
            Change::Retrying | Change::Interrupted => self.job.attempt - i64::from(runs_again),
            Change::Successful | Change::Failed | Change::Skipped | Change::Cancelled => self.job.attempt,
        }
    }
}

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// An attempt began.
    Started,
    /// The job succeeded.
    Successful,
    /// The job failed, and has no attempts left.
    Failed,
    /// An attempt failed. There will be another one.
    Retrying,
    /// The worker died. There will be another attempt.
    Interrupted,
    /// The job was skipped.
    Skipped,
    /// The job was cancelled.
    Cancelled,
}

/// The number of jobs in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) total: usize,
    pub(crate) running: usize,
    pub(crate) successful: usize,
    pub(crate) failed: usize,
    /// Jobs that failed, and whose failure does not matter to the run.
    pub(crate) allowed_failures: usize,
    pub(crate) skipped: usize,
    pub(crate) cancelled: usize,
}

impl Counts {
    /// The number of jobs that have ended.
    pub(crate) fn done(self) -> usize {
        self.successful + self.failed + self.allowed_failures + self.skipped + self.cancelled
    }
}

/// The last known states of the jobs.
#[derive(Debug)]
pub(crate) struct Tracker {
    total: usize,
    jobs: HashMap<i64, JobState>,
    /// Updated with each state, so that an update costs only what changed.
    by_status: BTreeMap<JobStatus, usize>,
    allowed_failures: usize,
    /// The jobs that run or wait for another attempt, in the order of their ids.
    active: BTreeMap<i64, JobState>,
}

impl Tracker {
    /// Begins with these states. They cause no events.
    pub(crate) fn new(total: usize, states: impl IntoIterator<Item = JobState>) -> Tracker {
        let mut tracker = Tracker {
            total,
            jobs: HashMap::new(),
            by_status: BTreeMap::new(),
            allowed_failures: 0,
            active: BTreeMap::new(),
        };
        for state in states {
            tracker.remember(state);
        }
        tracker
    }

    /// Takes changed states and returns the events, in the order of time.
    pub(crate) fn update(&mut self, states: impl IntoIterator<Item = JobState>) -> Vec<Event> {
        let mut events = Vec::new();
        for state in states {
            events.extend(changes(self.jobs.get(&state.id), &state));
            self.remember(state);
        }
        events.sort_by_key(|event| event.at_ms);
        events
    }

    /// The number of jobs in each state.
    pub(crate) fn counts(&self) -> Counts {
        let of = |status| self.by_status.get(&status).copied().unwrap_or(0);
        Counts {
            // Child runs add jobs.
            total: self.total.max(self.jobs.len()),
            running: of(JobStatus::Running),
            successful: of(JobStatus::Successful),
            failed: of(JobStatus::Failed) - self.allowed_failures,
            allowed_failures: self.allowed_failures,
            skipped: of(JobStatus::Skipped),
            cancelled: of(JobStatus::Cancelled),
        }
    }

    /// Whether no job runs and no job waits for its next attempt.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// The running jobs, the one that started first at the top.
    pub(crate) fn running(&self) -> Vec<&JobState> {
        let mut running: Vec<&JobState> =
            self.active.values().filter(|job| job.status == JobStatus::Running).collect();
        running.sort_by_key(|job| (job.started_at_ms, job.id));
        running
    }

    /// The jobs that wait for their next attempt, the earliest first.
    pub(crate) fn retrying(&self) -> Vec<&JobState> {
        let mut retrying: Vec<&JobState> =
            self.active.values().filter(|job| job.status == JobStatus::Scheduled).collect();
        retrying.sort_by_key(|job| (job.execute_after_ms, job.id));
        retrying
    }

    fn remember(&mut self, state: JobState) {
        let waits_again = state.status == JobStatus::Scheduled && state.failures > 0;
        if state.status == JobStatus::Running || waits_again {
            self.active.insert(state.id, state.clone());
        } else {
            self.active.remove(&state.id);
        }
        *self.by_status.entry(state.status).or_default() += 1;
        self.allowed_failures += usize::from(state.is_allowed_failure());
        if let Some(before) = self.jobs.insert(state.id, state)
            && let Some(count) = self.by_status.get_mut(&before.status)
        {
            *count -= 1;
            self.allowed_failures -= usize::from(before.is_allowed_failure());
        }
        // The items of a job with `for_each` are added while the run goes on.
        self.total = self.total.max(self.jobs.len());
    }
}

/// The events between two states of a job. No state before means that the job had not run.
fn changes(before: Option<&JobState>, now: &JobState) -> Vec<Event> {
    let is_new_attempt = now.attempt > before.map_or(0, |before| before.attempt);
    let event = |at_ms: i64, change| Event { at_ms, job: now.clone(), change };
    let started_at_ms = now.started_at_ms.unwrap_or(now.updated_at_ms);
    let started = is_new_attempt.then(|| event(started_at_ms, Change::Started));
    let (end_of_attempt, end) = match now.status {
        // The attempt before the running one ended here.
        JobStatus::Running => {
            let ended = unsuccessful_attempt(before, now).map(|change| event(started_at_ms, change));
            return ended.into_iter().chain(started).collect();
        }
        JobStatus::Blocked | JobStatus::Scheduled | JobStatus::Pending | JobStatus::Waiting => {
            let ended = unsuccessful_attempt(before, now).map(|change| event(now.updated_at_ms, change));
            return started.into_iter().chain(ended).collect();
        }
        JobStatus::Successful => (now.finished_at_ms, Change::Successful),
        JobStatus::Failed => (now.finished_at_ms, Change::Failed),
        JobStatus::Skipped => (now.finished_at_ms, Change::Skipped),
        JobStatus::Cancelled => (now.finished_at_ms, Change::Cancelled),
    };
    let is_new = is_new_attempt || before.map(|before| before.status) != Some(now.status);
    let ended = is_new.then(|| event(end_of_attempt.unwrap_or(now.updated_at_ms), end));
    started.into_iter().chain(ended).collect()
}

/// How the previous attempt ended, according to the counters. There will be another attempt.
fn unsuccessful_attempt(before: Option<&JobState>, now: &JobState) -> Option<Change> {
    if now.interruptions > before.map_or(0, |before| before.interruptions) {
        Some(Change::Interrupted)
    } else if now.failures > before.map_or(0, |before| before.failures) {
        Some(Change::Retrying)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::examples::job;

    fn kinds(events: &[Event]) -> Vec<Change> {
        events.iter().map(|event| event.change).collect()
    }

    #[test]
    fn every_end_comes_after_a_start() {
        let fresh = job(1, JobStatus::Pending);
        let running = JobState { attempt: 1, ..job(1, JobStatus::Running) };
        let failed_once = JobState { attempt: 1, failures: 1, ..job(1, JobStatus::Scheduled) };
        let second = JobState { attempt: 2, failures: 1, ..job(1, JobStatus::Running) };
        let rescued = JobState { attempt: 1, interruptions: 1, ..job(1, JobStatus::Pending) };
        let done = |attempt, status| JobState { attempt, ..job(1, status) };
        use Change::{Cancelled, Failed, Interrupted, Retrying, Skipped, Started, Successful};
        let cases: Vec<(Option<JobState>, JobState, Vec<Change>)> = vec![
            (None, fresh.clone(), vec![]),
            (None, running.clone(), vec![Started]),
            (Some(fresh.clone()), running.clone(), vec![Started]),
            (Some(running.clone()), running.clone(), vec![]),
            (Some(running.clone()), done(1, JobStatus::Successful), vec![Successful]),
            (None, done(1, JobStatus::Successful), vec![Started, Successful]),
            (Some(fresh.clone()), done(1, JobStatus::Failed), vec![Started, Failed]),
            (Some(running.clone()), failed_once.clone(), vec![Retrying]),
            (Some(fresh.clone()), failed_once.clone(), vec![Started, Retrying]),
            (Some(running.clone()), second.clone(), vec![Retrying, Started]),
            (Some(failed_once.clone()), second.clone(), vec![Started]),
            (Some(failed_once), done(2, JobStatus::Failed), vec![Started, Failed]),
            (Some(running.clone()), rescued, vec![Interrupted]),
            (Some(fresh.clone()), done(0, JobStatus::Skipped), vec![Skipped]),
            (Some(fresh), done(0, JobStatus::Cancelled), vec![Cancelled]),
            (Some(running), done(1, JobStatus::Cancelled), vec![Cancelled]),
        ];
        for (before, now, expected) in cases {
            let found = kinds(&changes(before.as_ref(), &now));
            assert_eq!(found, expected, "{before:?} -> {now:?}");
        }
    }

    #[test]
    fn the_first_states_cause_no_events() {
        let done = JobState { attempt: 1, ..job(1, JobStatus::Successful) };
        let mut tracker = Tracker::new(2, [done.clone(), job(2, JobStatus::Blocked)]);
        assert_eq!(tracker.update([done]), []);
        assert_eq!(tracker.counts().done(), 1);
    }

    #[test]
    fn counts_follow_the_jobs() {
        let mut tracker = Tracker::new(3, []);
        tracker.update([
            JobState { attempt: 1, ..job(1, JobStatus::Running) },
            JobState { attempt: 1, ..job(2, JobStatus::Running) },
        ]);
        assert_eq!(tracker.counts().running, 2);
        tracker.update([
            JobState { attempt: 1, ..job(1, JobStatus::Failed) },
            JobState { attempt: 1, failures: 1, ..job(2, JobStatus::Scheduled) },
            job(3, JobStatus::Skipped),
        ]);
        let expected = Counts { total: 3, failed: 1, skipped: 1, ..Counts::default() };
        assert_eq!(tracker.counts(), expected);
        tracker.update([JobState { attempt: 2, allow_failure: true, ..job(2, JobStatus::Failed) }]);
        let expected = Counts { allowed_failures: 1, ..expected };
        assert_eq!((tracker.counts(), tracker.counts().done()), (expected, 3));
        tracker.update([JobState {
            attempt: 3,
            failures: 1,
            allow_failure: true,
            ..job(2, JobStatus::Scheduled)
        }]);
        assert_eq!(tracker.counts().allowed_failures, 0);
        assert_eq!(tracker.retrying().len(), 1);
        assert!(tracker.running().is_empty());
    }

    #[test]
    fn events_come_in_the_order_of_time() {
        let mut tracker = Tracker::new(2, []);
        let late = JobState { attempt: 1, finished_at_ms: Some(9_000), ..job(1, JobStatus::Successful) };
        let early = JobState { attempt: 1, finished_at_ms: Some(5_000), ..job(2, JobStatus::Successful) };
        let ends: Vec<i64> = tracker
            .update([late, early])
            .into_iter()
            .filter(|event| event.change == Change::Successful)
            .map(|event| event.job.id)
            .collect();
        assert_eq!(ends, [2, 1]);
    }
}
