//! Who is dead: a decision from what is seen of a worker, by nobody's wall clock.
//!
//! A worker's lease is measured by its observer: as long as the count of its heartbeats moves within
//! the lease, it lives. No two clocks are ever compared, so neither skew between hosts nor a jump of
//! the wall clock can kill a healthy worker. On its own host a worker whose process is gone is dead at
//! once.

use std::collections::HashMap;

use windlass_engine::process::{Fate, fate};
use windlass_engine::store::{Rescued, Worker};
use windlass_engine::{Result, Store};

/// Remembers what was seen of each worker.
#[derive(Debug, Default)]
pub struct Watchman {
    seen: HashMap<i64, Sighting>,
    /// When it looked last, by its monotonic clock.
    looked_at_ms: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sighting {
    heartbeats: i64,
    /// For how long this count was seen to stand still.
    silent_ms: i64,
}

/// Silence that one look may add, whatever time has passed since the last: an observer that was
/// stopped itself, or could not read, has not seen that anybody was silent.
const CREDIT_MAX_MS: i64 = 600;

impl Watchman {
    /// Looks at every worker once; fences the dead and takes their jobs back.
    ///
    /// # Errors
    /// The database's.
    pub fn look(&mut self, store: &Store) -> Result<Rescued> {
        let workers = store.live_workers()?;
        let now_ms = store.clock().monotonic_ms();
        let passed_ms = now_ms - self.looked_at_ms.replace(now_ms).unwrap_or(now_ms);
        self.seen.retain(|id, _sighting| workers.iter().any(|worker| worker.id == *id));
        let dead: Vec<(i64, i64)> = workers
            .iter()
            .filter(|worker| {
                let silent_ms = self.sight(worker, passed_ms);
                is_dead(fate(worker.pid, &worker.process, store.reach()), silent_ms, worker.lease_ms)
            })
            .map(|worker| (worker.id, worker.heartbeats))
            .collect();
        if dead.is_empty() && !store.has_orphans()? {
            return Ok(Rescued::default());
        }
        let rescued = store.rescue(dead)?;
        if rescued != Rescued::default() {
            tracing::info!(
                workers = rescued.fenced,
                jobs = rescued.jobs,
                "took back the jobs of dead workers"
            );
        }
        Ok(rescued)
    }

    /// For how long the worker was seen not to move.
    fn sight(&mut self, worker: &Worker, passed_ms: i64) -> i64 {
        let fresh = Sighting { heartbeats: worker.heartbeats, silent_ms: 0 };
        let sighting = self.seen.entry(worker.id).or_insert(fresh);
        if sighting.heartbeats != worker.heartbeats {
            *sighting = fresh;
        } else {
            // Two looks at least, so that who watches itself has had a chance to renew.
            sighting.silent_ms += passed_ms.min(CREDIT_MAX_MS).min(worker.lease_ms / 2);
        }
        sighting.silent_ms
    }
}

/// The workers that count as alive although their processes on this machine are gone: nobody has looked yet. Changes
/// nothing.
///
/// # Errors
/// The database's.
pub fn gone_workers(store: &Store) -> Result<Vec<i64>> {
    let workers = store.live_workers()?;
    let is_gone = |worker: &&Worker| fate(worker.pid, &worker.process, store.reach()) == Fate::Gone;
    Ok(workers.iter().filter(is_gone).map(|worker| worker.id).collect())
}

fn is_dead(fate: Fate, silent_ms: i64, lease_ms: i64) -> bool {
    match fate {
        Fate::Gone => true,
        Fate::Lives | Fate::Unknown => silent_ms >= lease_ms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_is_who_is_gone_or_silent_for_a_lease() {
        assert!(is_dead(Fate::Gone, 0, 30_000), "at once on the same host");
        assert!(!is_dead(Fate::Lives, 29_999, 30_000));
        assert!(is_dead(Fate::Lives, 30_000, 30_000), "stopped, but there");
        assert!(!is_dead(Fate::Unknown, 0, 30_000), "on another host");
        assert!(is_dead(Fate::Unknown, 30_000, 30_000));
    }
}
