//! Comparing what this worker runs with what the tables say that it runs.
//!
//! A commit whose answer was lost may have claimed jobs that nobody here knows of; a server that took
//! another's place may have lost a claim, or an end. Such a row would stay RUNNING for ever under a worker
//! that is alive. No race is possible: nobody but the dispatcher claims and finishes under its worker's
//! id, and here it does neither. Others can only take jobs away, by fencing; then what is lost is lost.

use std::collections::{HashMap, HashSet};

use super::super::in_flight::{Difference, Key};
use super::{Dispatcher, Room};
use windlass_db::error::{Error, Result};
use windlass_engine::store::Finish;
use windlass_engine::transition::{Outcome, RetryState};

/// How often it is compared when nothing went wrong that was noticed. After an error it is at once.
pub(super) const INTERVAL_MS: i64 = 30_000;

impl Dispatcher<'_> {
    pub(super) fn check_if_due(&mut self) -> Result<()> {
        let now_ms = self.shared.store.clock().monotonic_ms();
        if now_ms < self.desk.check_at_ms {
            return Ok(());
        }
        let compared = self.compare();
        self.desk.check_at_ms = now_ms + INTERVAL_MS;
        match compared {
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) => {
                // One row that can't be read must not end the worker.
                tracing::error!(%error, "what runs could not be compared with the tables");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn compare(&mut self) -> Result<()> {
        let worker_id = self.shared.worker_id();
        let rows = self
            .retrying("look at what runs here", |shared| shared.store.for_workers().claimed_by(worker_id))?;
        let in_tables: HashMap<Key, (Option<i64>, RetryState)> = rows
            .into_iter()
            .map(|(job_id, run_id, retry_state)| ((job_id, retry_state.attempt), (run_id, retry_state)))
            .collect();
        let keys: HashSet<Key> = in_tables.keys().copied().collect();
        let refused = std::mem::take(&mut self.desk.refused);
        let Difference { unstarted, unended, renumbered, lost } =
            self.desk.in_flight.compare(worker_id, &keys, &refused);
        for (job_id, attempt) in lost {
            tracing::warn!(job_id, attempt, "the job is not this worker's any more: stopping it");
            self.give_up((job_id, attempt));
        }
        let unstarted = unstarted.into_iter().map(|key| (key, Outcome::Unstarted));
        let unended = unended.into_iter().map(|key| (key, ended()));
        let renumbered = renumbered.into_iter().map(|key| (key, rewritten()));
        let finishes = unstarted.chain(unended).chain(renumbered).filter_map(|(key, outcome)| {
            let (run_id, retry_state) = in_tables.get(&key)?;
            tracing::warn!(
                job_id = key.0,
                attempt = key.1,
                "claimed by this worker and not known to it: given back"
            );
            Some(self.end_of((key.0, *run_id), worker_id, retry_state, outcome))
        });
        let finishes: Vec<Finish> = finishes.collect();
        if finishes.is_empty() {
            return Ok(());
        }
        // One that the database refuses must not keep the others from being given back.
        self.write(finishes, Room { limit: 0, idle: 0 }).map(|(_finished, _claims)| ())
    }

    /// Somebody else may own it. What waits in memory is dropped, what runs is stopped; its end will be
    /// refused.
    fn give_up(&mut self, key: Key) {
        match self.shared.prefetched.take_one(key) {
            Some(_held) => self.desk.in_flight.drop(key),
            None => self.shared.running.lose_one(key),
        }
    }
}

/// It ran here once, and only the tables know nothing of its end.
fn ended() -> Outcome {
    Outcome::Interrupted { error: "the database lost the record of its end".to_owned() }
}

/// It ran here under another number. It counts: a job that writes to its own row would be repeated for ever.
fn rewritten() -> Outcome {
    let error = "another program changed the attempt in its row while it ran: its result was discarded";
    Outcome::Interrupted { error: error.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::super::prefetch_buffer::AddedBy;
    use super::super::super::sample::Sample;
    use super::super::tests::turn;
    use super::*;
    use windlass_db::{Database, Recovery};
    use windlass_engine::status::JobStatus;

    /// Its row would stay RUNNING under a worker that is alive, and a job that always does so would never end.
    #[test]
    fn an_attempt_that_another_program_renumbered_is_an_interruption() {
        let sample = Sample::new(1);
        let shared = &sample.shared;
        sample.enqueue(1, "null");
        turn(&sample, AddedBy::Dispatcher);
        let owned = sample.take();
        let raise = "UPDATE jobs SET attempt = attempt + 6";
        let raised = sample.database.write(
            "raise",
            Box::new(move |connection| connection.batch(raise)),
            Recovery::Report,
        );
        raised.expect("it is raised");
        sample.add_end(owned, None);
        turn(&sample, AddedBy::Dispatcher);
        assert_eq!(
            shared.store.jobs().get(1).expect("it is there").status,
            JobStatus::Running,
            "the end is refused"
        );
        turn(&sample, AddedBy::Dispatcher);
        let job = shared.store.jobs().get(1).expect("it is there");
        assert_eq!((job.status, job.attempt, job.interruptions), (JobStatus::Pending, 7, 1));
    }

    #[test]
    fn one_that_the_database_refuses_keeps_no_other_from_being_given_back() {
        let sample = Sample::new(2);
        let shared = &sample.shared;
        sample.enqueue(2, "null");
        // The answer to this claim is lost.
        let request = super::super::request(shared, Room { limit: 2, idle: 2 });
        let _lost = shared.store.for_workers().claim(request).expect("it is claimed");
        let refuse = "CREATE TRIGGER refuses BEFORE UPDATE ON jobs WHEN new.id = 1
                      BEGIN SELECT RAISE(ABORT, 'not this one'); END";
        sample
            .database
            .write("make a trigger", Box::new(move |connection| connection.batch(refuse)), Recovery::Report)
            .expect("made");
        let desk = shared.desk.lock().expect("nobody panicked");
        Dispatcher { shared, desk, by: AddedBy::Dispatcher }.compare().expect("it goes on");
        let status = |job_id| shared.store.jobs().get(job_id).expect("it is there").status;
        assert_eq!((status(1), status(2)), (JobStatus::Running, JobStatus::Pending));
    }
}
