//! The failure detector reads the workers, and later fences those that were silent. A worker may have renewed its
//! lease in between.

use std::collections::BTreeMap;

use crate::world::World;

/// How long a worker may be silent.
const LEASE_MS: i64 = 1_000;

/// The heartbeats seen of each worker, and since when there were no more.
#[derive(Default)]
pub struct FailureDetector {
    seen: BTreeMap<i64, (i64, i64)>,
}

impl World {
    pub fn read_workers(&mut self) {
        let workers = self.store.workers().live().unwrap();
        let found: BTreeMap<i64, i64> = workers.iter().map(|worker| (worker.id, worker.heartbeats)).collect();
        let alive = self.oracle.workers.iter().filter(|(_id, worker)| worker.is_alive);
        let expected: BTreeMap<i64, i64> = alive.map(|(id, worker)| (*id, worker.heartbeats)).collect();
        assert_eq!(found, expected, "the live workers, with their heartbeats");
        let now_ms = self.clock.monotonic_ms();
        self.detector.seen.retain(|id, _sighting| found.contains_key(id));
        for (id, heartbeats) in found {
            let sighting = self.detector.seen.entry(id).or_insert((heartbeats, now_ms));
            if sighting.0 != heartbeats {
                *sighting = (heartbeats, now_ms);
            }
        }
    }

    /// Fences some of the workers that were silent for their lease when they were last read. They may have renewed it
    /// since.
    pub fn rescue(&mut self) {
        let now_ms = self.clock.monotonic_ms();
        let mut dead: Vec<(i64, i64)> = self
            .detector
            .seen
            .iter()
            .filter(|(_id, (_heartbeats, since_ms))| now_ms - since_ms >= LEASE_MS)
            .map(|(id, (heartbeats, _since_ms))| (*id, *heartbeats))
            .collect();
        dead.retain(|_worker| self.one_in(3));
        self.rescue_workers(dead);
    }

    pub fn rescue_workers(&mut self, dead: Vec<(i64, i64)>) {
        let seen = dead.clone();
        self.call(
            format!("the failure detector fences {dead:?}, as (worker, heartbeats)"),
            |store| store.for_scheduler().rescue(dead).map(|rescued| (rescued.fenced, rescued.jobs)),
            |oracle, now_ms| Ok(oracle.rescue(&seen, now_ms)),
        );
    }
}
