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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sighting {
    heartbeats: i64,
    /// When this count was first seen, by the observer's monotonic clock.
    since_ms: i64,
}

impl Watchman {
    /// Looks at every worker once; fences the dead and takes their jobs back.
    ///
    /// # Errors
    /// The database's.
    pub fn look(&mut self, store: &Store) -> Result<Rescued> {
        let workers = store.live_workers()?;
        let now_ms = store.clock().monotonic_ms();
        self.seen.retain(|id, _sighting| workers.iter().any(|worker| worker.id == *id));
        let dead: Vec<(i64, i64)> = workers
            .iter()
            .filter(|worker| {
                let since_ms = self.sight(worker, now_ms);
                is_dead(fate(worker.pid, &worker.process), now_ms - since_ms, worker.lease_ms)
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

    /// Since when the worker has not moved.
    fn sight(&mut self, worker: &Worker, now_ms: i64) -> i64 {
        let fresh = Sighting { heartbeats: worker.heartbeats, since_ms: now_ms };
        let sighting = self.seen.entry(worker.id).or_insert(fresh);
        if sighting.heartbeats != worker.heartbeats {
            *sighting = fresh;
        }
        sighting.since_ms
    }
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
