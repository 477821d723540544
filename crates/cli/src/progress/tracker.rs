//! From the states of jobs to what happened and what goes on now.
//!
//! The states come from the database in portions (whatever changed since the last look), so a job
//! may be seen for the first time when it is already over. The tracker makes up for what it did not
//! see: who reads the events finds a start before every end.

use std::collections::{BTreeMap, HashMap};

use windlass::JobStatus;

/// What progress needs to know of a job.
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

/// Something that happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) at_ms: i64,
    pub(crate) job: JobState,
    pub(crate) change: Change,
}

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// An attempt began.
    Started,
    /// It is done.
    Successful,
    /// It failed for good.
    Failed,
    /// An attempt failed; there will be another.
    Retrying,
    /// Its worker died; there will be another attempt.
    Interrupted,
    /// It can never run.
    Skipped,
    /// It was stopped.
    Cancelled,
}

/// How many jobs are where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) total: usize,
    pub(crate) running: usize,
    pub(crate) successful: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
    pub(crate) cancelled: usize,
}

impl Counts {
    /// Jobs that nothing happens to any more.
    pub(crate) fn done(self) -> usize {
        self.successful + self.failed + self.skipped + self.cancelled
    }
}

/// All that was seen of the jobs of one run.
#[derive(Debug)]
pub(crate) struct Tracker {
    total: usize,
    jobs: HashMap<i64, JobState>,
    /// Counted as the states come, so that a look costs what changed and not what there is.
    by_status: BTreeMap<JobStatus, usize>,
    /// Those that run or wait for another attempt, in the order of their ids.
    active: BTreeMap<i64, JobState>,
}

impl Tracker {
    /// Begins with what is so already; none of it is news.
    pub(crate) fn new(total: usize, states: impl IntoIterator<Item = JobState>) -> Tracker {
        let mut tracker =
            Tracker { total, jobs: HashMap::new(), by_status: BTreeMap::new(), active: BTreeMap::new() };
        for state in states {
            tracker.remember(state);
        }
        tracker
    }

    /// Takes the states that changed and tells what happened, in the order in which it did.
    pub(crate) fn update(&mut self, states: impl IntoIterator<Item = JobState>) -> Vec<Event> {
        let mut events = Vec::new();
        for state in states {
            events.extend(changes(self.jobs.get(&state.id), &state));
            self.remember(state);
        }
        events.sort_by_key(|event| event.at_ms);
        events
    }

    /// How many jobs are where.
    pub(crate) fn counts(&self) -> Counts {
        let of = |status| self.by_status.get(&status).copied().unwrap_or(0);
        Counts {
            total: self.total,
            running: of(JobStatus::Running),
            successful: of(JobStatus::Successful),
            failed: of(JobStatus::Failed),
            skipped: of(JobStatus::Skipped),
            cancelled: of(JobStatus::Cancelled),
        }
    }

    /// No job runs, and none waits for the time of its next attempt.
    pub(crate) fn is_idle(&self) -> bool {
        self.active.is_empty()
    }

    /// The jobs that run, longest first.
    pub(crate) fn running(&self) -> Vec<&JobState> {
        let mut running: Vec<&JobState> =
            self.active.values().filter(|job| job.status == JobStatus::Running).collect();
        running.sort_by_key(|job| (job.started_at_ms, job.id));
        running
    }

    /// The jobs that failed and wait for their next attempt, the next one first.
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
        if let Some(before) = self.jobs.insert(state.id, state)
            && let Some(count) = self.by_status.get_mut(&before.status)
        {
            *count -= 1;
        }
    }
}

/// What happened between two looks at a job. Nothing before means that it had not run yet.
fn changes(before: Option<&JobState>, now: &JobState) -> Vec<Event> {
    let is_new_attempt = now.attempt > before.map_or(0, |before| before.attempt);
    let event = |at_ms: i64, change| Event { at_ms, job: now.clone(), change };
    let started_at_ms = now.started_at_ms.unwrap_or(now.updated_at_ms);
    let started = is_new_attempt.then(|| event(started_at_ms, Change::Started));
    let (end_of_attempt, end) = match now.status {
        // What ended here is the attempt before the one that runs.
        JobStatus::Running => {
            let ended = setback(before, now).map(|change| event(started_at_ms, change));
            return ended.into_iter().chain(started).collect();
        }
        JobStatus::Blocked | JobStatus::Scheduled | JobStatus::Pending | JobStatus::Waiting => {
            let ended = setback(before, now).map(|change| event(now.updated_at_ms, change));
            return started.into_iter().chain(ended).collect();
        }
        JobStatus::Successful => (now.finished_at_ms, Change::Successful),
        JobStatus::Failed => (now.finished_at_ms, Change::Failed),
        JobStatus::Skipped => (now.finished_at_ms, Change::Skipped),
        JobStatus::Cancelled => (now.finished_at_ms, Change::Cancelled),
    };
    let is_news = is_new_attempt || before.map(|before| before.status) != Some(now.status);
    let ended = is_news.then(|| event(end_of_attempt.unwrap_or(now.updated_at_ms), end));
    started.into_iter().chain(ended).collect()
}

/// Why an attempt ended that was not the last one, as far as the counters tell.
fn setback(before: Option<&JobState>, now: &JobState) -> Option<Change> {
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
    fn what_was_so_at_the_beginning_is_no_news() {
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
