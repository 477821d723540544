//! Workers: leases, fences, and what happens to the jobs of dead workers.

use std::collections::BTreeSet;

use windlass_engine::JobStatus;
use windlass_engine::transition::Outcome;

use super::{End, Job, Oracle, Worker};

impl Oracle {
    pub fn register(&mut self, worker_id: i64) {
        let before = self.workers.insert(worker_id, Worker { is_alive: true, heartbeats: 0 });
        assert!(before.is_none(), "the id of {before:?} was used again");
    }

    pub fn is_alive(&self, worker_id: i64) -> bool {
        self.workers.get(&worker_id).is_some_and(|worker| worker.is_alive)
    }

    /// Renews a lease. Returns `false` if the worker is fenced.
    pub fn heartbeat(&mut self, worker_id: i64) -> bool {
        let Some(worker) = self.workers.get_mut(&worker_id).filter(|worker| worker.is_alive) else {
            return false;
        };
        worker.heartbeats += 1;
        true
    }

    /// Stops a worker normally. Returns `false` if it is fenced.
    pub fn stop_worker(&mut self, worker_id: i64) -> bool {
        let Some(worker) = self.workers.get_mut(&worker_id).filter(|worker| worker.is_alive) else {
            return false;
        };
        worker.is_alive = false;
        true
    }

    /// Fences the workers that have not renewed their lease since they were seen, and takes back the jobs of all
    /// workers that are not alive. Returns how many of each.
    pub fn rescue(&mut self, seen: &[(i64, i64)], now_ms: i64) -> (i64, i64) {
        let mut fenced = 0;
        for (worker_id, heartbeats) in seen {
            if let Some(worker) = self.workers.get_mut(worker_id)
                && worker.is_alive
                && worker.heartbeats == *heartbeats
            {
                worker.is_alive = false;
                fenced += 1;
            }
        }
        let ends: Vec<End> = self
            .jobs
            .values()
            .filter(|job| job.status == JobStatus::Running)
            .filter_map(|job| Some((job, job.owner?)))
            .filter(|(_job, owner)| !self.is_alive(*owner))
            .map(|(job, owner)| End {
                job_id: job.id,
                attempt: job.attempt,
                worker_id: owner,
                outcome: Outcome::Interrupted { error: String::new() },
                lines: Vec::new(),
            })
            .collect();
        assert!(self.finish(&ends, now_ms).is_empty(), "dead workers owned them");
        (fenced, ends.len() as i64)
    }

    /// The attempts that a worker owns, as (job, attempt).
    pub fn claimed_by(&self, worker_id: i64) -> BTreeSet<(i64, i64)> {
        self.owned_by(worker_id).map(|job| (job.id, job.attempt)).collect()
    }

    /// The jobs of a worker that were asked to stop.
    pub fn cancel_requests(&self, worker_id: i64) -> BTreeSet<i64> {
        self.owned_by(worker_id).filter(|job| job.is_stopping).map(|job| job.id).collect()
    }

    fn owned_by(&self, worker_id: i64) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(move |job| job.status == JobStatus::Running && job.owner == Some(worker_id))
    }
}
