//! What the executions of a job come to, decided before anything runs, and the ends that follow from it alone.

use std::collections::BTreeMap;

use fastrand::Rng;
use windlass_engine::JobStatus;

use super::{Job, Oracle};

/// What one execution comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripted {
    Success,
    Failure,
    /// A failure that another attempt would only repeat.
    FinalFailure,
    Timeout,
}

/// The results of a job's executions. They depend on the life of the job and on its failures in it, and not on
/// interruptions: an execution that was cut off is done again and comes to the same.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    seed: u64,
}

impl Script {
    pub fn new(run_seed: u64, job_name: &str) -> Script {
        let seed = job_name.bytes().fold(run_seed, |seed, byte| mix(seed, u64::from(byte)));
        Script { seed }
    }

    pub fn result(&self, life: u64, failures: i64) -> Scripted {
        match Rng::with_seed(mix(mix(self.seed, life), failures.unsigned_abs())).u8(0..13) {
            0..9 => Scripted::Success,
            9..11 => Scripted::Failure,
            11 => Scripted::Timeout,
            _ => Scripted::FinalFailure,
        }
    }

    /// The end of a job in its first life, and its failures, when nobody interferes.
    fn end(&self, max_attempts: i64) -> (JobStatus, i64) {
        for failures in 0..max_attempts {
            match self.result(0, failures) {
                Scripted::Success => return (JobStatus::Successful, failures),
                Scripted::FinalFailure => return (JobStatus::Failed, failures + 1),
                Scripted::Failure | Scripted::Timeout => {}
            }
        }
        (JobStatus::Failed, max_attempts)
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

impl Oracle {
    /// How a run ends by its workflow and its script alone: whatever the order, the workers and their deaths were.
    /// `None` for a run that somebody or something else has decided about.
    pub fn scripted_end(&self, run_id: i64) -> Option<BTreeMap<i64, (JobStatus, i64)>> {
        let is_by_script = |job: &Job| {
            let may_interrupt =
                if job.rules.fails_when_interrupted { 0 } else { job.rules.max_interruptions };
            job.life == 0 && job.interruptions <= may_interrupt
        };
        if self.runs[&run_id].is_touched || !self.jobs_of(run_id).all(is_by_script) {
            return None;
        }
        let mut ends: BTreeMap<i64, (JobStatus, i64)> = BTreeMap::new();
        for job in self.jobs_of(run_id) {
            let is_satisfied = |parent: &i64| {
                let status = ends[parent].0;
                status == JobStatus::Successful
                    || (status == JobStatus::Failed && self.jobs[parent].rules.allow_failure)
            };
            let end = if job.parents.iter().all(is_satisfied) {
                job.rules.script.end(job.rules.max_attempts)
            } else {
                (JobStatus::Skipped, 0)
            };
            ends.insert(job.id, end);
        }
        Some(ends)
    }
}
