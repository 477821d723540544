//! Concurrency keys: which job gets a slot, which is skipped, and which is cancelled for another.

use std::collections::BTreeSet;

use windlass_engine::JobStatus;
use windlass_workflow::model::OnFull;

use super::{Job, Oracle};

impl Oracle {
    /// Gives the free slots of these keys to waiting jobs.
    pub(super) fn admit_all(&mut self, keys: &BTreeSet<String>) {
        for key in keys {
            let cancelled = self.holders_to_cancel(key);
            self.admit(key, &cancelled);
        }
    }

    /// Handles all keys, which is the scheduler's part.
    pub fn admit_waiting(&mut self) {
        for key in self.keys() {
            let cancelled = self.holders_to_cancel(&key);
            let admitted = self.admit(&key, &cancelled);
            let is_left = |job: &&Job| job.waits_for_key(&key) && !cancelled.contains(&job.id);
            let left: Vec<i64> = self.jobs.values().filter(is_left).map(|job| job.id).collect();
            for id in left.into_iter().filter(|id| !admitted.contains(id)) {
                self.skip_if_key_is_full(id);
            }
            for id in cancelled {
                let _one_that_ended_has_made_room = self.cancel_job(id);
            }
        }
    }

    /// In the order of claiming. The first job that finds no free slot blocks the jobs behind it.
    fn admit(&mut self, key: &str, cancelled: &[i64]) -> Vec<i64> {
        let mut waiting: Vec<&Job> = self.jobs.values().filter(|job| job.waits_for_key(key)).collect();
        waiting.retain(|job| !cancelled.contains(&job.id));
        waiting.sort_by_key(|job| job.rank());
        let held = self.jobs.values().filter(|job| job.holds_key(key)).count() as i64;
        let limit = limit_of(&waiting);
        let room = usize::try_from(limit - held).unwrap_or(0);
        let admitted: Vec<i64> = waiting.iter().take(room).map(|job| job.id).collect();
        for id in &admitted {
            let is_fifo = self.is_fifo(&self.jobs[id].rules.queue);
            let job = self.jobs.get_mut(id).expect("it waits");
            job.status = JobStatus::Pending;
            job.priority = if is_fifo { 0 } else { job.priority };
        }
        admitted
    }

    /// The holders that are cancelled for newer jobs with `cancel_oldest`: of both, the newest stay.
    fn holders_to_cancel(&self, key: &str) -> Vec<i64> {
        let cancels =
            |job: &Job| job.rules.key.as_ref().is_some_and(|key| key.on_full == OnFull::CancelOldest);
        let impatient: Vec<&Job> =
            self.jobs.values().filter(|job| job.waits_for_key(key) && cancels(job)).collect();
        if impatient.is_empty() {
            return Vec::new();
        }
        let may = usize::try_from(limit_of(&impatient)).expect("a limit is positive");
        let holders = self.jobs.values().filter(|job| job.holds_key(key) && !job.is_stopping);
        let alive: BTreeSet<i64> = holders.chain(impatient).map(|job| job.id).collect();
        let surplus = alive.len().saturating_sub(may);
        alive.into_iter().take(surplus).collect()
    }

    /// A job that had an attempt before was accepted, so it is not skipped.
    fn skip_if_key_is_full(&mut self, id: i64) {
        let job = self.jobs.get_mut(&id).expect("it waits");
        let skips = job.rules.key.as_ref().is_some_and(|key| key.on_full == OnFull::Skip);
        if skips && job.attempt == 0 {
            job.end(JobStatus::Skipped);
            if let Some(run_id) = job.run_id {
                self.touch(run_id);
                self.propagate(run_id);
            }
        }
    }
}

fn limit_of(jobs: &[&Job]) -> i64 {
    jobs.iter().filter_map(|job| Some(job.rules.key.as_ref()?.limit)).next().unwrap_or(1)
}
