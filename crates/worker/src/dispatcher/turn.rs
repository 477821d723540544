//! One turn of the dispatcher: collect results, decide how many jobs to claim, write and claim.

use std::sync::MutexGuard;

use super::STUCK_MS;
use super::state::{DispatcherState, NextClaim};
use crate::registration::register;
use crate::shared::{AddedBy, EndedAttempt, Mode, Shared};
use windlass_db::error::Result;
use windlass_engine::status::WorkerStatus;
use windlass_system::wake_ups::WakeUps;

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// Something was done, and more may be left.
    MoreToDo,
    /// There was nothing to do.
    NothingToDo,
    /// The worker was told to end, and nothing of it is left.
    WorkerHasEnded,
}

/// Whether ends of attempts are written for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteTry {
    First,
    /// Some of them were written before, and the write failed. It may have been committed all the same.
    Repeated,
}

/// The dispatcher's role, held by one thread for one turn.
pub(super) struct Turn<'a> {
    pub(super) shared: &'a Shared,
    pub(super) state: MutexGuard<'a, DispatcherState>,
    /// Whose thread has the role.
    pub(super) by: AddedBy,
}

impl Turn<'_> {
    /// Notes whether there may be jobs to claim, by the wake-ups or because it is time to look.
    pub(super) fn hear(&mut self, wake_ups: WakeUps) {
        if wake_ups.intersects(WakeUps::PENDING)
            || self.shared.clock().monotonic_ms() >= self.state.poll_at_ms
        {
            self.state.next_claim = NextClaim::Now;
        }
    }

    /// A turn of the dispatcher's own thread. It also ends the worker.
    pub(super) fn make_and_end_worker_if_done(&mut self) -> Result<TurnEnd> {
        self.give_back_stuck();
        let end = self.make()?;
        if self.shared.mode() == Mode::Working || self.state.in_flight.count() > 0 {
            return Ok(end);
        }
        self.ask("end a worker", |shared| {
            shared.store.for_workers().set_status(shared.worker_id(), WorkerStatus::Stopped)
        })?;
        Ok(TurnEnd::WorkerHasEnded)
    }

    /// Writes the results that wait and claims jobs, both in one transaction.
    pub(super) fn make(&mut self) -> Result<TurnEnd> {
        if self.shared.running.is_fenced(self.shared.worker_id()) {
            self.register_anew()?;
        }
        let write = if self.state.unwritten.is_empty() { WriteTry::First } else { WriteTry::Repeated };
        // Ends that a failed write may have committed are written again first, and compared after that.
        if write == WriteTry::First {
            self.compare_in_flight_if_due()?;
        }
        let mut ended = self.collect_results();
        if self.shared.mode() != Mode::Working || self.is_pausing() {
            let prefetched = self.shared.prefetched.take_all();
            ended.extend(prefetched.into_iter().map(EndedAttempt::unstarted));
        }
        let mut ends = std::mem::take(&mut self.state.unwritten);
        ends.extend(ended.into_iter().map(|ended| self.decide(ended)));
        // Attempts that have ended make room in the transaction that finishes them.
        let claimable = self.claimable(self.state.in_flight.count() - ends.len() as i64);
        if ends.is_empty() && !self.finds_jobs(claimable)? {
            return Ok(TurnEnd::NothingToDo);
        }
        self.finish_and_claim(ends, claimable, write)?;
        Ok(TurnEnd::MoreToDo)
    }

    fn collect_results(&mut self) -> Vec<EndedAttempt> {
        let batch = self.shared.results.take();
        self.state.prefetch.observe_times(batch.executed, batch.total_us);
        self.state.prefetch.observe_results(batch.executed, batch.total_bytes);
        batch.ended
    }

    /// Gives prefetched jobs back that no executor took in time: other workers may be free while a long job runs here.
    fn give_back_stuck(&mut self) {
        let now_ms = self.shared.clock().monotonic_ms();
        let stuck = self.shared.prefetched.take_stuck(now_ms, STUCK_MS);
        if !stuck.is_empty() {
            self.state.prefetch.forget_times();
        }
        for owned in stuck {
            let now_us = self.shared.clock().monotonic_us();
            let _written_by_this_turn = self.shared.results.add(EndedAttempt::unstarted(owned), 0, now_us);
        }
    }

    /// Goes on as a new worker after this one was fenced. What still runs is stopped, and what did not start is
    /// dropped, because the jobs belong to others now.
    pub(super) fn register_anew(&mut self) -> Result<()> {
        let fenced = self.shared.worker_id();
        self.shared.running.fence(fenced);
        for owned in self.shared.prefetched.take_all() {
            self.state.in_flight.remove(owned.key());
        }
        let registration = self.ask("register a worker", |shared| {
            register(&shared.store, shared.handlers.kinds(), &shared.options)
        })?;
        self.shared.become_worker(registration);
        self.state.next_claim = NextClaim::Now;
        let worker_id = registration.worker_id;
        tracing::warn!(fenced, worker_id, "the worker was fenced: registered as a new worker");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::shared::AddedBy;
    use crate::test_worker::TestWorker;

    #[test]
    fn few_jobs_are_prefetched_if_their_payloads_or_results_are_large() {
        let large = format!("\"{}\"", "x".repeat(2 << 20));
        for (payload, output) in [(large.as_str(), None), ("null", Some(large.clone()))] {
            let worker = TestWorker::new(1);
            worker.enqueue(20, payload);
            worker.turn(AddedBy::Dispatcher);
            assert_eq!(worker.shared.prefetched.len(), 1, "nothing is known yet");
            worker.end(worker.take(), output);
            worker.state().prefetch.observe_times(1, 0);
            worker.turn(AddedBy::Dispatcher);
            assert_eq!(worker.shared.prefetched.len(), 8, "one runs next, and 7 of these make 16 MiB");
        }
    }
}
