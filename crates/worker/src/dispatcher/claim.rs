//! Claiming: how many jobs, when, and what happens to the claimed ones.

use super::operator_log;
use super::state::{NextClaim, POLL_MS, Prefetching};
use super::turn::Turn;
use crate::registration::worker_capabilities;
use crate::shared::{Mode, Shared};
use windlass_db::error::Result;
use windlass_engine::store::{ClaimRequest, ClaimedJob, Claims};

/// How many jobs may be claimed, and how many of them would start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimable {
    pub(super) limit: usize,
    pub(super) idle_threads: usize,
}

impl Claimable {
    pub(super) const NONE: Claimable = Claimable { limit: 0, idle_threads: 0 };

    /// Whether the claim can wait for the next results, to share a transaction with them. It can if more jobs wait in
    /// memory than may be claimed. It can't if a thread is idle, because the next result may be far away.
    fn can_wait(self, prefetched: usize) -> bool {
        self.limit == 0 || (self.idle_threads == 0 && prefetched > self.limit)
    }
}

impl Turn<'_> {
    /// How many jobs may be claimed if `in_flight` jobs are in flight.
    pub(super) fn claimable(&self, in_flight: i64) -> Claimable {
        let claim_max = self.shared.store.for_workers().claim_max();
        let count = |jobs: i64| usize::try_from(jobs).unwrap_or(0).min(claim_max);
        match self.shared.mode() {
            Mode::Working if self.shared.lease_is_over() || self.is_pausing() => Claimable::NONE,
            Mode::Working => {
                let threads = self.shared.options.threads;
                let prefetch = match self.state.prefetching {
                    Prefetching::Allowed => self.state.prefetch.prefetch(threads, claim_max as i64),
                    Prefetching::Forbidden => 0,
                };
                Claimable {
                    limit: count(threads + prefetch - in_flight),
                    idle_threads: count(threads - in_flight),
                }
            }
            Mode::Draining | Mode::Leaving => Claimable::NONE,
        }
    }

    /// Whether the last claim got all that it asked for, and more jobs may be claimed.
    pub(super) fn may_claim_more(&self) -> bool {
        self.state.next_claim == NextClaim::Now && self.claimable(self.state.in_flight.count()).limit > 0
    }

    /// Whether there is something to claim now. It reads without a write lock, because several idle workers may wake
    /// for one job.
    pub(super) fn finds_jobs(&mut self, claimable: Claimable) -> Result<bool> {
        if claimable.can_wait(self.shared.prefetched.len()) || self.state.next_claim == NextClaim::AfterWakeUp
        {
            return Ok(false);
        }
        let found = self.ask("look for jobs", |shared| {
            shared.store.for_workers().has_claimable(&request(shared, claimable))
        })?;
        if !found {
            self.state.next_claim = NextClaim::AfterWakeUp;
            self.state.poll_at_ms = self.shared.clock().monotonic_ms() + POLL_MS;
        }
        Ok(found)
    }

    /// Takes in the answer to a claim.
    pub(super) fn take_in(&mut self, claims: Claims, claimable: Claimable) -> Result<()> {
        let jobs = match claims {
            Claims::Fenced => return self.register_anew(),
            Claims::Jobs(jobs) => jobs,
        };
        let got_fewer = claimable.limit > 0 && jobs.len() < claimable.limit;
        self.state.next_claim = if got_fewer { NextClaim::AfterWakeUp } else { NextClaim::Now };
        if claimable.limit > 0 {
            self.state.poll_at_ms = self.shared.clock().monotonic_ms() + POLL_MS;
        }
        if jobs.iter().any(|job| job.has_overtaken) {
            self.state.prefetching = Prefetching::Forbidden;
        } else if claimable.idle_threads > 0 {
            self.state.prefetching = Prefetching::Allowed;
        }
        self.prefetch(jobs);
        Ok(())
    }

    /// Puts claimed jobs where executors take them.
    fn prefetch(&mut self, jobs: Vec<ClaimedJob>) {
        let worker_id = self.shared.worker_id();
        let payload_bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
        self.state.prefetch.observe_payloads(jobs.len() as i64, payload_bytes as i64);
        jobs.iter().for_each(operator_log::run_started);
        // A server that took another one's place may have lost a claim, and claim a job that runs here already.
        let new: Vec<ClaimedJob> = jobs
            .into_iter()
            .filter(|job| self.state.in_flight.add((job.id, job.retry_state.attempt), worker_id))
            .collect();
        if !new.is_empty() {
            self.shared.prefetch(new, self.by);
        }
    }
}

/// A claim by this worker.
pub(super) fn request(shared: &Shared, Claimable { limit, idle_threads }: Claimable) -> ClaimRequest {
    // The lease may have ended since the number was decided, while the database did not answer.
    let limit = if shared.lease_is_over() { 0 } else { limit };
    ClaimRequest {
        worker_id: shared.worker_id(),
        scope: shared.options.scope.clone(),
        worker_capabilities: worker_capabilities(shared.handlers.kinds(), &shared.options),
        limit,
        idle_threads,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_jobs_are_not_claimed_while_many_wait_unless_a_thread_is_idle() {
        for (limit, idle_threads, prefetched, can_wait) in [
            (0, 0, 0, true),
            (8, 0, 1_000, true),
            (8, 0, 8, false),
            (8, 0, 0, false),
            // These 6 were just claimed and are about to start, and other threads have nothing to do.
            (2, 2, 6, false),
            (9, 1, 1_000, false),
        ] {
            let claimable = Claimable { limit, idle_threads };
            assert_eq!(claimable.can_wait(prefetched), can_wait, "{claimable:?} {prefetched}");
        }
    }
}
