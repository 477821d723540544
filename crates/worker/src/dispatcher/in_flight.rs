//! The attempts in flight: claimed by this worker, and their ends not written.
//!
//! Only the dispatcher claims and finishes. So it knows the set exactly and can compare it with the tables. The two
//! differ if the answer to a commit was lost, or if a commit was lost in a failover to another server.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::shared::AttemptKey;

/// Ends that are remembered, at most. Fewer are lost in a failover.
const ENDED_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// The worker id under which each attempt was claimed.
    worker_ids: HashMap<AttemptKey, i64>,
    ended: HashSet<AttemptKey>,
    /// The same attempts, the oldest end first.
    ended_order: VecDeque<AttemptKey>,
}

/// Where the tables and this worker differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Running under this worker by the tables, and unknown here: the answer to the claim was lost.
    pub(super) unstarted: Vec<AttemptKey>,
    /// Running under this worker by the tables, and ended here: the end was lost in a failover.
    pub(super) unended: Vec<AttemptKey>,
    /// Running under this worker by the tables, but under another attempt number than here: another program changed
    /// the number, and the end was refused.
    pub(super) renumbered: Vec<AttemptKey>,
    /// In flight here, and by the tables no longer this worker's.
    pub(super) lost: Vec<AttemptKey>,
}

impl InFlight {
    /// How many there are, of all worker ids.
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.worker_ids.len()).unwrap_or(i64::MAX)
    }

    /// Adds a claimed attempt. Returns `false` if it is in flight already, because the first claim was lost in a
    /// failover.
    pub(super) fn add(&mut self, key: AttemptKey, worker_id: i64) -> bool {
        self.worker_ids.insert(key, worker_id).is_none()
    }

    /// Removes an attempt whose end was written, or refused because another worker owns the job. The end is remembered.
    pub(super) fn end(&mut self, key: AttemptKey) {
        self.worker_ids.remove(&key);
        if self.ended.insert(key) {
            self.ended_order.push_back(key);
        }
        if self.ended_order.len() > ENDED_MAX
            && let Some(oldest) = self.ended_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    /// Removes an attempt that did not begin.
    pub(super) fn remove(&mut self, key: AttemptKey) {
        self.worker_ids.remove(&key);
    }

    /// Compares the attempts in flight under a worker id with those that run under this id by the tables. `refused`
    /// are the jobs whose ends were refused since the last comparison.
    pub(super) fn compare(
        &self,
        worker_id: i64,
        in_tables: &HashSet<AttemptKey>,
        refused: &HashSet<i64>,
    ) -> Difference {
        let here: HashSet<i64> = self.worker_ids.keys().map(|(job_id, _attempt)| *job_id).collect();
        let unknown = in_tables.iter().filter(|key| !self.worker_ids.contains_key(*key)).copied();
        // An attempt that still runs here under another number is in `lost`, and is stopped first.
        let unknown = unknown.filter(|(job_id, _attempt)| !here.contains(job_id));
        let (renumbered, unknown): (Vec<AttemptKey>, Vec<AttemptKey>) =
            unknown.partition(|key| refused.contains(&key.0) && !self.ended.contains(key));
        let (unended, unstarted) = unknown.into_iter().partition(|key| self.ended.contains(key));
        let own = self.worker_ids.iter().filter(|(_key, owner)| **owner == worker_id);
        let lost = own.map(|(key, _owner)| *key).filter(|key| !in_tables.contains(key)).collect();
        Difference { unstarted, unended, renumbered, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: i64 = 5;

    fn compare(in_flight: &InFlight, in_tables: &[AttemptKey]) -> Difference {
        in_flight.compare(WORKER, &in_tables.iter().copied().collect(), &HashSet::new())
    }

    #[test]
    fn differences_between_the_tables_and_memory() {
        let mut in_flight = InFlight::default();
        for job in 1..=3 {
            assert!(in_flight.add((job, 1), WORKER));
        }
        in_flight.add((9, 1), WORKER - 1);
        in_flight.end((3, 1));
        assert_eq!(in_flight.count(), 3);
        let same = Difference { unstarted: vec![], unended: vec![], renumbered: vec![], lost: vec![] };
        assert_eq!(
            compare(&in_flight, &[(1, 1), (2, 1)]),
            same,
            "attempts of another worker id do not count"
        );
        let found = compare(&in_flight, &[(1, 1), (3, 1), (4, 1), (3, 2)]);
        assert_eq!((found.unended, found.lost), (vec![(3, 1)], vec![(2, 1)]));
        let unstarted: HashSet<AttemptKey> = found.unstarted.into_iter().collect();
        assert_eq!(unstarted, HashSet::from([(4, 1), (3, 2)]), "another attempt of a job that has ended");
    }

    #[test]
    fn an_attempt_under_another_number_is_not_taken_for_one_that_never_began() {
        let mut in_flight = InFlight::default();
        in_flight.add((1, 1), WORKER);
        let found = compare(&in_flight, &[(1, 7)]);
        assert_eq!(
            (found.lost, found.unstarted),
            (vec![(1, 1)], vec![]),
            "it is stopped before anything else"
        );
        in_flight.end((1, 1));
        let found = in_flight.compare(WORKER, &HashSet::from([(1, 7)]), &HashSet::from([1]));
        assert_eq!((found.renumbered, found.unstarted), (vec![(1, 7)], vec![]));
    }

    #[test]
    fn a_second_claim_of_an_attempt_in_flight_is_noticed() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.add((1, 1), WORKER));
        assert!(!in_flight.add((1, 1), WORKER));
        in_flight.remove((1, 1));
        assert_eq!(compare(&in_flight, &[(1, 1)]).unstarted, [(1, 1)], "it never began");
    }

    #[test]
    fn ends_are_remembered_up_to_a_limit() {
        let mut in_flight = InFlight::default();
        for job in 0..=ENDED_MAX as i64 {
            in_flight.add((job, 1), WORKER);
            in_flight.end((job, 1));
            in_flight.end((job, 1));
        }
        let found = compare(&in_flight, &[(0, 1), (1, 1), (ENDED_MAX as i64, 1)]);
        assert_eq!((found.unstarted, found.unended.len()), (vec![(0, 1)], 2));
        assert_eq!((in_flight.ended.len(), in_flight.ended_order.len()), (ENDED_MAX, ENDED_MAX));
    }
}
