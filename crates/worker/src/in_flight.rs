//! The attempts that a worker answers for: claimed, and their ends not written.
//!
//! Only the dispatcher claims and finishes, so it knows the set exactly, and can compare it with the tables.
//! They differ when the answer to a commit was lost, or a server that took another's place never got it.

use std::collections::{HashMap, HashSet, VecDeque};

/// Ends that are remembered: more than a server that takes another's place can have missed.
const ENDED_MAX: usize = 10_000;

/// A job and the number of the attempt.
pub(super) type Key = (i64, i64);

#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// By the identity under which each was claimed.
    worker_ids: HashMap<Key, i64>,
    ended: HashSet<Key>,
    /// The same, the oldest first.
    ended_order: VecDeque<Key>,
}

/// Where the tables and this worker differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The tables say that it is ours, and nothing of it ever was: the answer to its claim was lost.
    pub(super) unstarted: Vec<Key>,
    /// The tables say that it is ours, and we were told that its end was written: that was lost.
    pub(super) unended: Vec<Key>,
    /// The tables say that another attempt of it is ours than the one that ran here: another program wrote the
    /// number, and the end was refused for it.
    pub(super) renumbered: Vec<Key>,
    /// It is not ours any more.
    pub(super) lost: Vec<Key>,
}

impl InFlight {
    /// How many there are, of all identities.
    pub(super) fn count(&self) -> i64 {
        i64::try_from(self.worker_ids.len()).unwrap_or(i64::MAX)
    }

    /// An attempt was claimed. `false`: it is among them already, because a server that took another's place
    /// never got its claim.
    pub(super) fn add(&mut self, key: Key, worker_id: i64) -> bool {
        self.worker_ids.insert(key, worker_id).is_none()
    }

    /// The end of an attempt was written, or refused because it is not ours any more.
    pub(super) fn end(&mut self, key: Key) {
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

    /// An attempt that nobody began is not ours any more.
    pub(super) fn drop(&mut self, key: Key) {
        self.worker_ids.remove(&key);
    }

    /// Compares it with the attempts that run under an identity by the tables. `refused` are the jobs whose ends were
    /// refused since the last in flight check.
    pub(super) fn compare(
        &self,
        worker_id: i64,
        in_tables: &HashSet<Key>,
        refused: &HashSet<i64>,
    ) -> Difference {
        let here: HashSet<i64> = self.worker_ids.keys().map(|(job_id, _attempt)| *job_id).collect();
        let unknown = in_tables.iter().filter(|key| !self.worker_ids.contains_key(*key)).copied();
        // What still runs here under another number is among the lost, and is stopped first.
        let unknown = unknown.filter(|(job_id, _attempt)| !here.contains(job_id));
        let (renumbered, unknown): (Vec<Key>, Vec<Key>) =
            unknown.partition(|key| refused.contains(&key.0) && !self.ended.contains(key));
        let (unended, unstarted) = unknown.into_iter().partition(|key| self.ended.contains(key));
        let ours = self.worker_ids.iter().filter(|(_key, owner)| **owner == worker_id);
        let lost = ours.map(|(key, _owner)| *key).filter(|key| !in_tables.contains(key)).collect();
        Difference { unstarted, unended, renumbered, lost }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: i64 = 5;

    fn compare(in_flight: &InFlight, in_tables: &[Key]) -> Difference {
        in_flight.compare(WORKER, &in_tables.iter().copied().collect(), &HashSet::new())
    }

    #[test]
    fn what_the_tables_and_memory_disagree_on() {
        let mut in_flight = InFlight::default();
        for job in 1..=3 {
            assert!(in_flight.add((job, 1), WORKER));
        }
        in_flight.add((9, 1), WORKER - 1);
        in_flight.end((3, 1));
        assert_eq!(in_flight.count(), 3);
        let same = Difference { unstarted: vec![], unended: vec![], renumbered: vec![], lost: vec![] };
        assert_eq!(compare(&in_flight, &[(1, 1), (2, 1)]), same, "another identity's is not looked for");
        let found = compare(&in_flight, &[(1, 1), (3, 1), (4, 1), (3, 2)]);
        assert_eq!((found.unended, found.lost), (vec![(3, 1)], vec![(2, 1)]));
        let unstarted: HashSet<Key> = found.unstarted.into_iter().collect();
        assert_eq!(unstarted, HashSet::from([(4, 1), (3, 2)]), "another attempt is another thing");
    }

    #[test]
    fn another_number_of_an_attempt_is_no_attempt_that_never_began() {
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
    fn a_claim_of_what_runs_already_is_noticed() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.add((1, 1), WORKER));
        assert!(!in_flight.add((1, 1), WORKER));
        in_flight.drop((1, 1));
        assert_eq!(compare(&in_flight, &[(1, 1)]).unstarted, [(1, 1)], "it never began");
    }

    #[test]
    fn ends_are_remembered_up_to_a_limit_the_newest_longest() {
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
