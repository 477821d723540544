//! Scripts: the results of all executions of a job are decided before it runs, so that its end can be computed.

use std::collections::BTreeMap;

use fastrand::Rng;
use windlass_engine::JobStatus;

use super::{Job, Oracle};

/// The result of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptedResult {
    Success,
    Failure,
    /// A failure that is not retried.
    FinalFailure,
    Timeout,
}

/// The results of a job's executions. They depend on how often the job was retried by a person and on its failures
/// since, but not on interruptions: an interrupted execution is repeated with the same result.
#[derive(Debug, Clone, Copy)]
pub struct Script {
    seed: u64,
}

impl Script {
    pub fn new(run_seed: u64, job_name: &str) -> Script {
        let seed = job_name.bytes().fold(run_seed, |seed, byte| mix(seed, u64::from(byte)));
        Script { seed }
    }

    pub fn result(&self, retries: u64, failures: i64) -> ScriptedResult {
        match Rng::with_seed(mix(mix(self.seed, retries), failures.unsigned_abs())).u8(0..13) {
            0..9 => ScriptedResult::Success,
            9..11 => ScriptedResult::Failure,
            11 => ScriptedResult::Timeout,
            _ => ScriptedResult::FinalFailure,
        }
    }

    /// The end of a job that nobody retried, and its failures, if nobody interferes.
    fn end(&self, max_attempts: i64) -> (JobStatus, i64) {
        for failures in 0..max_attempts {
            match self.result(0, failures) {
                ScriptedResult::Success => return (JobStatus::Successful, failures),
                ScriptedResult::FinalFailure => return (JobStatus::Failed, failures + 1),
                ScriptedResult::Failure | ScriptedResult::Timeout => {}
            }
        }
        (JobStatus::Failed, max_attempts)
    }
}

fn mix(seed: u64, value: u64) -> u64 {
    (seed ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

impl Oracle {
    /// How a run ends by its workflow and its script alone, whatever the order and the deaths of workers were. `None`
    /// for a run whose course somebody has changed.
    pub fn scripted_end(&self, run_id: i64) -> Option<BTreeMap<i64, (JobStatus, i64)>> {
        let is_by_script = |job: &Job| {
            let may_interrupt =
                if job.rules.fails_when_interrupted { 0 } else { job.rules.max_interruptions };
            job.retries == 0 && job.interruptions <= may_interrupt
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
