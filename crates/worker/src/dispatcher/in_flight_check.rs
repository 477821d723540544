//! Compares the attempts in flight with the tables, and repairs the difference.
//!
//! A commit whose answer was lost may have claimed jobs that this process does not know. A claim or an end may be lost in
//! a failover to another server. Such a row would stay RUNNING for ever, because the worker is alive.
//! No race is possible: only the dispatcher claims and finishes under its worker id, and it does neither meanwhile.
//! Others can only take jobs away by fencing the worker.

use std::collections::{HashMap, HashSet};

use super::claim::Claimable;
use super::in_flight::Difference;
use super::state::CHECK_INTERVAL_MS;
use super::turn::Turn;
use crate::shared::AttemptKey;
use windlass_db::error::{Error, Result};
use windlass_engine::store::Finish;
use windlass_engine::transition::{Outcome, RetryState};

impl Turn<'_> {
    pub(super) fn compare_in_flight_if_due(&mut self) -> Result<()> {
        let now_ms = self.shared.clock().monotonic_ms();
        if now_ms < self.state.check_at_ms {
            return Ok(());
        }
        let compared = self.compare_in_flight();
        self.state.check_at_ms = now_ms + CHECK_INTERVAL_MS;
        match compared {
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) => {
                // One row that can't be read must not end the worker.
                tracing::error!(%error, "the attempts in flight could not be compared with the tables");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn compare_in_flight(&mut self) -> Result<()> {
        let worker_id = self.shared.worker_id();
        let rows = self.ask("compare the attempts in flight", |shared| {
            shared.store.for_workers().claimed_by(worker_id)
        })?;
        let in_tables: HashMap<AttemptKey, (Option<i64>, RetryState)> = rows
            .into_iter()
            .map(|(job_id, run_id, retry_state)| ((job_id, retry_state.attempt), (run_id, retry_state)))
            .collect();
        let keys: HashSet<AttemptKey> = in_tables.keys().copied().collect();
        let refused = std::mem::take(&mut self.state.refused);
        let Difference { unstarted, unended, renumbered, lost } =
            self.state.in_flight.compare(worker_id, &keys, &refused);
        for (job_id, attempt) in lost {
            tracing::warn!(job_id, attempt, "the job does not belong to this worker any more: stopping it");
            self.drop_or_stop((job_id, attempt));
        }
        let unstarted = unstarted.into_iter().map(|key| (key, Outcome::Unstarted));
        let unended = unended.into_iter().map(|key| (key, lost_end()));
        let renumbered = renumbered.into_iter().map(|key| (key, renumbered_attempt()));
        let finishes = unstarted.chain(unended).chain(renumbered).filter_map(|(key, outcome)| {
            let (run_id, retry_state) = in_tables.get(&key)?;
            tracing::warn!(
                job_id = key.0,
                attempt = key.1,
                "claimed by this worker and unknown to it: given back"
            );
            Some(self.decide_row((key.0, *run_id), worker_id, retry_state, outcome))
        });
        let finishes: Vec<Finish> = finishes.collect();
        if finishes.is_empty() {
            return Ok(());
        }
        // A row that the database refuses must not keep the others from being given back.
        self.write(finishes, Claimable::NONE).map(|(_finished, _claims)| ())
    }

    /// Another worker may own the job. A prefetched attempt is dropped. A running one is stopped, and its end will be
    /// refused.
    fn drop_or_stop(&mut self, key: AttemptKey) {
        match self.shared.prefetched.take_one(key) {
            Some(_prefetched) => self.state.in_flight.remove(key),
            None => self.shared.running.fence_one(key),
        }
    }
}

/// The attempt has ended here, and the tables do not know it.
fn lost_end() -> Outcome {
    Outcome::Interrupted { error: "the database lost the end of the attempt".to_owned() }
}

/// The attempt ran here under another number. It counts as an interruption, because a job that changes its own row
/// would otherwise be repeated for ever.
fn renumbered_attempt() -> Outcome {
    let error = "another program changed the attempt in its row while it ran: its result was discarded";
    Outcome::Interrupted { error: error.to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::dispatcher::claim::{Claimable, request};
    use crate::shared::AddedBy;
    use crate::test_worker::TestWorker;
    use windlass_engine::status::JobStatus;
    use windlass_test_database::Access;

    /// Its row would stay RUNNING under a worker that is alive, and a job that always does so would never end.
    #[test]
    fn an_attempt_that_another_program_renumbered_is_an_interruption() {
        let worker = TestWorker::new(1);
        let job = || worker.shared.store.jobs().get(1).expect("the job exists");
        worker.enqueue(1, "null");
        worker.turn(AddedBy::Dispatcher);
        let owned = worker.take();
        worker.execute_sql("UPDATE jobs SET attempt = attempt + 6");
        worker.end(owned, None);
        worker.turn(AddedBy::Dispatcher);
        assert_eq!(job().status, JobStatus::Running, "the end is refused");
        worker.turn(AddedBy::Dispatcher);
        assert_eq!((job().status, job().attempt, job().interruptions), (JobStatus::Pending, 7, 1));
    }

    #[test]
    fn a_row_that_the_database_refuses_keeps_no_other_from_being_given_back() {
        let worker = TestWorker::new(2);
        let shared = &worker.shared;
        worker.enqueue(2, "null");
        let claimable = Claimable { limit: 2, idle_threads: 2 };
        let _answer_is_lost =
            shared.store.for_workers().claim(request(shared, claimable)).expect("the jobs are claimed");
        worker.test_database.sql(Access::Write).execute_either(
            "CREATE TRIGGER refuses BEFORE UPDATE ON jobs WHEN new.id = 1
             BEGIN SELECT RAISE(ABORT, 'not this one'); END",
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'not this one'; END $$;
             CREATE TRIGGER refuses BEFORE UPDATE ON jobs FOR EACH ROW WHEN (new.id = 1)
             EXECUTE FUNCTION refuse()",
        );
        worker.with_turn(AddedBy::Dispatcher, |turn| turn.compare_in_flight()).expect("the worker goes on");
        let status = |job_id| shared.store.jobs().get(job_id).expect("the job exists").status;
        assert_eq!((status(1), status(2)), (JobStatus::Running, JobStatus::Pending));
    }
}
