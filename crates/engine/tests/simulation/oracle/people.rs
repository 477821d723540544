//! What people do, and what the scheduler does for them: cancelling, retrying, deadlines, due jobs.

use std::collections::BTreeSet;

use windlass_engine::JobStatus;
use windlass_engine::status::StopReason;
use windlass_engine::store::RetrySelection;

use super::{Job, Oracle};

/// Why an operation is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    Conflict,
    NotFound,
}

impl Oracle {
    /// From now on the end of a run does not depend on its script alone.
    pub(super) fn touch(&mut self, run_id: i64) {
        if let Some(run) = self.runs.get_mut(&run_id) {
            run.is_touched = true;
        }
    }

    /// Stops a run. Returns how many jobs ended at once, and how many were asked to stop.
    pub fn stop_run(&mut self, run_id: i64, reason: StopReason) -> Result<(i64, i64), Refusal> {
        if self.unfinished(run_id) == 0 || self.runs[&run_id].stop_reason.is_some() {
            return Err(Refusal::Conflict);
        }
        let run = self.runs.get_mut(&run_id).expect("it was found");
        run.stop_reason = Some(reason);
        run.is_touched = true;
        let (mut cancelled, mut stopping) = (0, 0);
        for job in self.jobs.values_mut().filter(|job| job.run_id == Some(run_id) && !job.is_over) {
            if !job.status.is_terminal() && job.status != JobStatus::Running {
                job.end(JobStatus::Cancelled);
                cancelled += 1;
            } else if may_be_asked_to_stop(job) {
                job.is_stopping = true;
                stopping += 1;
            }
        }
        Ok((cancelled, stopping))
    }

    /// Stops a job, with the same result.
    pub fn cancel_job(&mut self, id: i64) -> Result<(i64, i64), Refusal> {
        let job = self.jobs.get_mut(&id).ok_or(Refusal::NotFound)?;
        let run_id = job.run_id;
        let answer = if !job.status.is_terminal() && job.status != JobStatus::Running {
            job.end(JobStatus::Cancelled);
            (1, 0)
        } else if may_be_asked_to_stop(job) {
            job.is_stopping = true;
            (0, 1)
        } else {
            return Err(Refusal::Conflict);
        };
        if let Some(run_id) = run_id {
            self.touch(run_id);
            // The children of a cancelled job never become ready.
            assert!(self.propagate(run_id).is_empty());
        }
        Ok(answer)
    }

    /// Changes a queue's order to arrival or to priority. Pending jobs lose their priority at once, and the others
    /// when they become ready.
    pub fn change_order(&mut self, name: &str, is_fifo: bool) {
        let queue = self.queues.get_mut(name).expect("it was made");
        (queue.is_fifo, queue.turn) = (is_fifo, None);
        let is_levelled = |job: &&mut Job| job.status == JobStatus::Pending && job.rules.queue == name;
        for job in self.jobs.values_mut().filter(|_job| is_fifo).filter(is_levelled) {
            job.priority = 0;
        }
    }

    /// Retries jobs of a run. Returns how many.
    pub fn retry_run(
        &mut self,
        run_id: i64,
        selection: &RetrySelection,
        now_ms: i64,
    ) -> Result<i64, Refusal> {
        if self.unfinished(run_id) > 0 {
            return Err(Refusal::Conflict);
        }
        let chosen = match selection {
            RetrySelection::Failed => self.with_descendants(run_id, self.broken(run_id)),
            RetrySelection::From(name) => {
                let root =
                    self.jobs_of(run_id).find(|job| job.rules.name == *name).ok_or(Refusal::NotFound)?;
                self.with_descendants(run_id, BTreeSet::from([root.id]))
            }
        };
        let before = self.clone();
        for id in &chosen {
            let job = self.jobs.get_mut(id).expect("it was found");
            if let (JobStatus::Successful, Some(owner)) = (job.status, job.owner) {
                job.kept_attempts.insert(job.attempt, (owner, "successful"));
            }
            job.status = JobStatus::Blocked;
            (job.failures, job.interruptions) = (0, 0);
            (job.is_stopping, job.is_over, job.upstream_failed) = (false, false, false);
            (job.output, job.owner) = (None, None);
            job.due = (now_ms, now_ms);
            job.retries += 1;
        }
        // Jobs that wait for a key get their slots from the scheduler.
        let _wanted_keys = self.propagate(run_id);
        if chosen.is_empty() || self.unfinished(run_id) == 0 {
            *self = before;
            return Err(Refusal::Conflict);
        }
        let run = self.runs.get_mut(&run_id).expect("it was found");
        (run.stop_reason, run.deadline_at) = (None, None);
        (run.has_started, run.is_touched) = (false, true);
        Ok(chosen.len() as i64)
    }

    /// The jobs that failed or were cancelled, and those that were skipped because of them.
    fn broken(&self, run_id: i64) -> BTreeSet<i64> {
        self.jobs_of(run_id).filter(|job| job.is_broken()).map(|job| job.id).collect()
    }

    /// These jobs and all jobs that depend on them, directly or through others.
    fn with_descendants(&self, run_id: i64, mut chosen: BTreeSet<i64>) -> BTreeSet<i64> {
        // Parents have smaller ids than their children.
        for job in self.jobs_of(run_id) {
            if job.parents.iter().any(|parent| chosen.contains(parent)) {
                chosen.insert(job.id);
            }
        }
        chosen
    }

    /// Stops runs that have reached their timeout, and promotes due jobs. Returns how many of each.
    pub fn promote_due(&mut self, now_ms: i64) -> (i64, i64) {
        let is_late = |run_id: &i64| {
            let run = &self.runs[run_id];
            let is_over = self.unfinished(*run_id) == 0;
            !is_over && run.stop_reason.is_none() && run.deadline_at.is_some_and(|at_ms| at_ms <= now_ms)
        };
        let late: Vec<i64> = self.runs.keys().copied().filter(is_late).collect();
        for run_id in &late {
            self.stop_run(*run_id, StopReason::TimedOut).expect("it was unfinished");
        }
        let is_due = |job: &&Job| job.status == JobStatus::Scheduled && job.due.1 <= now_ms;
        let due: Vec<i64> = self.jobs.values().filter(is_due).map(|job| job.id).collect();
        let keys: BTreeSet<String> = due.iter().filter_map(|id| self.make_ready(*id)).collect();
        self.admit_all(&keys);
        (due.len() as i64, late.len() as i64)
    }
}

/// Whether it runs, or reported a failure and would be retried, and was not asked before.
fn may_be_asked_to_stop(job: &Job) -> bool {
    let may_go_on = job.status == JobStatus::Running || (job.status == JobStatus::Failed && !job.is_over);
    may_go_on && !job.is_stopping
}
