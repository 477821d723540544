//! The ends of attempts: who may finish an attempt, what happens to its job, and what is counted.

use std::collections::BTreeSet;

use windlass_engine::JobStatus;
use windlass_engine::store::LogLine;
use windlass_engine::transition::{Outcome, Repeat};

use super::{Job, Oracle};

/// What a worker says about the end of an attempt.
#[derive(Debug, Clone)]
pub struct End {
    pub job_id: i64,
    pub attempt: i64,
    pub worker_id: i64,
    pub outcome: Outcome,
    pub lines: Vec<LogLine>,
}

impl Oracle {
    /// Finishes attempts. Returns the jobs that do not belong to the worker any more.
    pub fn finish(&mut self, ends: &[End], now_ms: i64) -> Vec<i64> {
        let (mut conflicts, mut run_ids, mut keys) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for end in ends {
            let job = self.jobs.get_mut(&end.job_id).expect("only known jobs are claimed");
            if !job.is_owned_by(end.worker_id, end.attempt) {
                conflicts.push(end.job_id);
                continue;
            }
            if !end.outcome.has_begun() {
                // The attempt's number can be used again.
                self.owners.remove(&(end.job_id, end.attempt));
            }
            end_attempt(job, &end.outcome, now_ms);
            run_ids.extend(job.run_id);
            if job.status != JobStatus::Pending {
                keys.extend(job.rules.key.as_ref().map(|key| key.name.clone()));
            }
            if let (Outcome::Cancelled { .. }, Some(run_id)) = (&end.outcome, job.run_id) {
                self.touch(run_id);
            }
            self.append(&end.lines);
        }
        for run_id in run_ids {
            keys.extend(self.propagate(run_id));
        }
        self.admit_all(&keys);
        conflicts
    }

    /// Records an end that another program wrote. Returns whether the attempt was its own.
    pub fn report(&mut self, end: &End) -> bool {
        let job = self.jobs.get_mut(&end.job_id).expect("only known jobs are claimed");
        if !job.is_owned_by(end.worker_id, end.attempt) {
            return false;
        }
        job.status = match &end.outcome {
            Outcome::Successful { output } => {
                job.output.clone_from(output);
                JobStatus::Successful
            }
            Outcome::Cancelled { .. } => JobStatus::Cancelled,
            Outcome::Failed { repeat, .. } => {
                if *repeat == Repeat::Pointless {
                    job.rules.max_attempts = job.failures + 1;
                }
                JobStatus::Failed
            }
            Outcome::Skipped { .. }
            | Outcome::Again { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Unstarted
            | Outcome::OutOfResources { .. } => {
                panic!("another program can't report {:?}", end.outcome)
            }
        };
        true
    }

    /// Applies the consequences of reported ends. Returns how many there were.
    pub fn apply_reports(&mut self, now_ms: i64) -> i64 {
        let reported: Vec<i64> =
            self.jobs.values().filter(|job| job.is_reported()).map(|job| job.id).collect();
        let mut ends = Vec::new();
        for id in reported {
            let job = self.jobs.get_mut(&id).expect("it was found");
            let error = || "reported".to_owned();
            let outcome = if job.status == JobStatus::Successful {
                Outcome::Successful { output: job.output.clone() }
            } else if job.status == JobStatus::Failed {
                Outcome::Failed { error: error(), repeat: Repeat::Allowed }
            } else {
                Outcome::Cancelled { error: error() }
            };
            job.status = JobStatus::Running;
            let worker_id = job.owner.expect("it was claimed");
            ends.push(End { job_id: id, attempt: job.attempt, worker_id, outcome, lines: Vec::new() });
        }
        assert!(self.finish(&ends, now_ms).is_empty(), "a reported job has an owner");
        ends.len() as i64
    }
}

fn end_attempt(job: &mut Job, outcome: &Outcome, now_ms: i64) {
    job.output = None;
    let record = match outcome {
        Outcome::Successful { output } => {
            job.output.clone_from(output);
            job.status = JobStatus::Successful;
            None
        }
        Outcome::Failed { repeat, .. } => {
            fail(job, *repeat, now_ms);
            Some("failed")
        }
        Outcome::Skipped { .. } | Outcome::Again { .. } => panic!("the simulated jobs have no conditions"),
        Outcome::TimedOut { .. } => {
            fail(job, Repeat::Allowed, now_ms);
            Some("timed_out")
        }
        Outcome::Cancelled { .. } => {
            job.status = JobStatus::Cancelled;
            Some("cancelled")
        }
        Outcome::Interrupted { .. } => {
            job.interruptions += 1;
            let is_too_often = job.interruptions > job.rules.max_interruptions;
            let is_final = job.rules.fails_when_interrupted || is_too_often;
            job.status = if is_final { JobStatus::Failed } else { JobStatus::Pending };
            Some("interrupted")
        }
        Outcome::Unstarted | Outcome::OutOfResources { .. } => {
            job.status = JobStatus::Pending;
            None
        }
    };
    if let (Some(record), Some(worker_id)) = (record, job.owner) {
        job.kept_attempts.insert(job.attempt, (worker_id, record));
    }
    if !outcome.has_begun() {
        job.attempt -= 1;
    }
    // A job that was asked to stop is not retried.
    if job.is_stopping && !job.status.is_terminal() {
        job.status = JobStatus::Cancelled;
    }
    job.is_over = job.status.is_terminal();
}

fn fail(job: &mut Job, repeat: Repeat, now_ms: i64) {
    job.failures += 1;
    if repeat == Repeat::Pointless || job.failures >= job.rules.max_attempts {
        job.status = JobStatus::Failed;
        return;
    }
    let factor = job.rules.factor.powi(i32::try_from(job.failures - 1).expect("few failures"));
    let pause_ms = (job.rules.delay_ms as f64 * factor).min(job.rules.max_delay_ms as f64);
    let (least, most) = (pause_ms * (1.0 - job.rules.jitter), pause_ms * (1.0 + job.rules.jitter));
    job.status = JobStatus::Scheduled;
    job.due = (now_ms + least.floor() as i64, now_ms + most.ceil() as i64);
}
