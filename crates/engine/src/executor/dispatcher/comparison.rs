//! Comparing what this worker runs with what the tables say that it runs.
//!
//! A commit whose answer was lost may have claimed jobs that nobody here knows of; a server that took
//! another's place may have lost a claim, or an end. Such a row would stay RUNNING for ever under a worker
//! that is alive. No race is possible: nobody but the dispatcher claims and finishes under its worker's
//! id, and here it does neither. Others can only take jobs away, by fencing; then what is lost is lost.

use std::collections::{HashMap, HashSet};

use super::super::outstanding::{Difference, Key};
use super::Dispatcher;
use crate::error::{Error, Result};
use crate::store::{Claims, Finish};
use crate::transition::{Facts, Outcome};

/// How often it is compared when nothing went wrong that was noticed. After an error it is at once.
pub(super) const INTERVAL_MS: i64 = 30_000;

impl Dispatcher<'_> {
    pub(super) fn compare_if_due(&mut self) -> Result<()> {
        let now_ms = self.shared.store.clock().monotonic_ms();
        if now_ms < self.desk.compare_at_ms {
            return Ok(());
        }
        let compared = self.compare();
        self.desk.compare_at_ms = now_ms + INTERVAL_MS;
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
        let rows = self.retrying("look at what runs here", |shared| shared.store.claimed_by(worker_id))?;
        let in_tables: HashMap<Key, (Option<i64>, Facts)> = rows
            .into_iter()
            .map(|(job_id, run_id, facts)| ((job_id, facts.attempt), (run_id, facts)))
            .collect();
        let keys: HashSet<Key> = in_tables.keys().copied().collect();
        let Difference { unstarted, unended, lost } = self.desk.outstanding.compare(worker_id, &keys);
        for (job_id, attempt) in lost {
            tracing::warn!(job_id, attempt, "the job is not this worker's any more: stopping it");
            self.give_up((job_id, attempt));
        }
        let unstarted = unstarted.into_iter().map(|key| (key, Outcome::Unstarted));
        let unended = unended.into_iter().map(|key| (key, ended()));
        let finishes = unstarted.chain(unended).filter_map(|(key, outcome)| {
            let (run_id, facts) = in_tables.get(&key)?;
            tracing::warn!(
                job_id = key.0,
                attempt = key.1,
                "claimed by this worker and not known to it: given back"
            );
            Some(self.end_of((key.0, *run_id), worker_id, facts, outcome))
        });
        let finishes: Vec<Finish> = finishes.collect();
        if finishes.is_empty() {
            return Ok(());
        }
        self.retrying("give jobs back", |shared| shared.store.finish_and_claim(finishes.clone(), None))
            .map(|(_finished, _claims): (_, Claims)| ())
    }

    /// Somebody else may own it. What waits in memory is dropped, what runs is stopped; its end will be
    /// refused.
    fn give_up(&mut self, key: Key) {
        match self.shared.held.take_one(key) {
            Some(_held) => self.desk.outstanding.drop(key),
            None => self.shared.running.lose_one(key),
        }
    }
}

/// It ran here once, and only the tables know nothing of its end.
fn ended() -> Outcome {
    Outcome::Interrupted { error: "the database lost the record of its end".to_owned() }
}
