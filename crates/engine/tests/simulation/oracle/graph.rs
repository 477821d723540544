//! New jobs, and what the end of a job means for the others of its run.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::JobStatus;
use windlass_workflow::Workflow;

use super::{Job, Oracle, Run};
use crate::rules::JobRules;

impl Oracle {
    /// Adds a run. `job_ids` are in the order of the workflow; `seed` is the seed of its script.
    pub fn submit(&mut self, run: Run, workflow: &Workflow, job_ids: &[i64], seed: u64, now_ms: i64) {
        assert_eq!(workflow.jobs.len(), job_ids.len(), "run {} has all its jobs", run.id);
        let mut keys = BTreeSet::new();
        for (job, id) in workflow.jobs.iter().zip(job_ids) {
            let rules = JobRules::of_run(job, seed);
            let parents = job.needs.iter().map(|index| job_ids[*index]).collect();
            self.insert(new_job(*id, Some(run.id), rules, parents, now_ms));
        }
        let run_id = run.id;
        self.runs.insert(run_id, run);
        keys.extend(self.propagate(run_id));
        self.admit_all(&keys);
    }

    /// Adds standalone jobs with the instants at which they are due.
    pub fn enqueue(&mut self, jobs: Vec<(i64, JobRules, i64)>, now_ms: i64) {
        let mut keys = BTreeSet::new();
        for (id, rules, due_ms) in jobs {
            self.insert(new_job(id, None, rules, Vec::new(), due_ms));
            if due_ms > now_ms {
                self.jobs.get_mut(&id).expect("it was inserted").status = JobStatus::Scheduled;
            } else {
                keys.extend(self.make_ready(id));
            }
        }
        self.admit_all(&keys);
    }

    /// Adds a row that another program inserted. It waits for the scheduler, whatever its time is.
    pub fn insert_from_outside(&mut self, id: i64, rules: JobRules, due_ms: i64) {
        self.jobs
            .insert(id, Job { status: JobStatus::Scheduled, ..new_job(id, None, rules, Vec::new(), due_ms) });
    }

    fn insert(&mut self, mut job: Job) {
        if self.is_fifo(&job.rules.queue) {
            job.priority = 0;
        }
        let before = self.jobs.insert(job.id, job);
        assert!(before.is_none(), "the id of {before:?} was used again");
    }

    /// Whether an unfinished job has one of these unique keys.
    pub fn has_unique_key(&self, keys: &[&String]) -> bool {
        let is_taken =
            |job: &Job| !job.is_over && job.rules.unique_key.as_ref().is_some_and(|key| keys.contains(&key));
        self.jobs.values().any(is_taken)
    }

    /// Skips jobs that can't run, and promotes jobs without unfinished parents. Returns the keys that they want.
    /// Parents have smaller ids than their children, so one pass is enough.
    pub(super) fn propagate(&mut self, run_id: i64) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        let ids: Vec<i64> = self.jobs_of(run_id).map(|job| job.id).collect();
        for id in ids.into_iter().filter(|id| self.jobs[id].status == JobStatus::Blocked).collect::<Vec<_>>()
        {
            let parents: Vec<&Job> = self.jobs[&id].parents.iter().map(|parent| &self.jobs[parent]).collect();
            let is_hopeless = parents.iter().any(|parent| parent.is_broken());
            let is_ready = parents.iter().all(|parent| parent.is_over);
            let has_one_not_needed = parents.iter().any(|parent| parent.is_not_needed());
            let job = self.jobs.get_mut(&id).expect("it was found");
            if is_hopeless {
                job.end(JobStatus::Skipped);
                job.upstream_failed = true;
            } else if is_ready && has_one_not_needed {
                (job.status, job.is_undecided) = (JobStatus::Waiting, true);
            } else if is_ready {
                keys.extend(self.make_ready(id));
            }
        }
        keys
    }

    /// Decides about the jobs that wait for a decision. All of them have a parent that was not needed, and so they are not
    /// needed either. Returns how many there were.
    pub fn decide_waiting(&mut self, now_ms: i64) -> i64 {
        let is_undecided = |job: &&Job| job.status == JobStatus::Waiting && job.is_undecided;
        let undecided: Vec<i64> = self.jobs.values().filter(is_undecided).map(|job| job.id).collect();
        for id in &undecided {
            let job = self.jobs.get_mut(id).expect("it waits");
            job.end(JobStatus::Skipped);
            if let Some(run_id) = job.run_id {
                self.start_run(run_id, now_ms);
                assert!(self.propagate(run_id).is_empty(), "no child becomes ready");
            }
        }
        undecided.len() as i64
    }

    /// Promotes a job. If it has to wait for its key, returns the key.
    pub(super) fn make_ready(&mut self, id: i64) -> Option<String> {
        let is_fifo = self.is_fifo(&self.jobs[&id].rules.queue);
        let job = self.jobs.get_mut(&id).expect("it was found");
        if is_fifo {
            job.priority = 0;
        }
        let key = job.rules.key.as_ref().map(|key| key.name.clone());
        job.status = if key.is_some() { JobStatus::Waiting } else { JobStatus::Pending };
        job.is_undecided = false;
        key
    }

    /// The number of unfinished parents of a blocked job.
    pub fn blocked_by(&self, job: &Job) -> i64 {
        job.parents.iter().filter(|parent| !self.jobs[parent].is_over).count() as i64
    }
}

fn new_job(id: i64, run_id: Option<i64>, rules: JobRules, parents: Vec<i64>, due_ms: i64) -> Job {
    Job {
        id,
        run_id,
        parents,
        status: JobStatus::Blocked,
        attempt: 0,
        failures: 0,
        interruptions: 0,
        priority: rules.priority,
        due: (due_ms, due_ms),
        owner: None,
        is_stopping: false,
        is_over: false,
        is_undecided: false,
        upstream_failed: false,
        output: None,
        kept_attempts: BTreeMap::new(),
        retries: 0,
        rules,
    }
}
