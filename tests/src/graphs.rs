//! Random acyclic graphs as workflow files.

use std::collections::BTreeSet;

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A graph: for each job, the earlier jobs that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Parents of each job, as indices below its own.
    pub parents: Vec<BTreeSet<usize>>,
}

impl Graph {
    /// A graph of `jobs` jobs with `edges` edges, or as many as fit.
    #[must_use]
    pub fn random(rng: &mut Rng, jobs: usize, edges: usize) -> Graph {
        let mut parents = vec![BTreeSet::new(); jobs];
        let most = jobs * jobs.saturating_sub(1) / 2;
        let mut left = edges.min(most);
        while left > 0 {
            let child = rng.usize(1..jobs);
            // Near parents make deep graphs, far ones wide fan-outs. The tests need both.
            let nearest = if rng.bool() { child.saturating_sub(8) } else { 0 };
            if parents[child].insert(rng.usize(nearest..child)) {
                left -= 1;
            }
        }
        Graph { parents }
    }

    /// Each job needs the one before.
    #[must_use]
    pub fn chain(jobs: usize) -> Graph {
        Graph { parents: (0..jobs).map(|job| job.checked_sub(1).into_iter().collect()).collect() }
    }

    /// The number of edges.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.parents.iter().map(BTreeSet::len).sum()
    }

    /// The graph as a workflow file in JSON. `job` returns the definition of the job with this index.
    #[must_use]
    pub fn workflow(&self, name: &str, job: impl Fn(usize) -> Value) -> String {
        let mut jobs = Map::new();
        for (index, parents) in self.parents.iter().enumerate() {
            let mut entry = job(index);
            entry["needs"] = parents.iter().map(|parent| job_name(*parent)).collect();
            jobs.insert(job_name(index), entry);
        }
        json!({ "name": name, "jobs": jobs }).to_string()
    }
}

/// The name of the job of an index.
#[must_use]
pub fn job_name(index: usize) -> String {
    format!("job_{index:04}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_graph_with_all_its_edges() {
        let graph = |seed| Graph::random(&mut Rng::with_seed(seed), 50, 150);
        assert_eq!(graph(1), graph(1));
        assert_ne!(graph(1), graph(2));
        assert_eq!(graph(1).edges(), 150);
    }

    #[test]
    fn more_edges_than_fit_give_the_full_graph() {
        assert_eq!(Graph::random(&mut Rng::with_seed(1), 4, 100).edges(), 6);
        assert_eq!(Graph::random(&mut Rng::with_seed(1), 1, 3).edges(), 0);
    }

    #[test]
    fn a_chain_has_one_edge_less_than_jobs() {
        assert_eq!(Graph::chain(40).edges(), 39);
    }
}
