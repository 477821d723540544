//! The graph of a workflow: which job needs which. Nothing here is recursive, so the longest chain of jobs does not overflow
//! the stack.

use std::collections::VecDeque;

use petgraph::Direction;
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::model::Workflow;

/// The jobs of a workflow, by their index. An edge goes from a job to each job that needs it.
#[derive(Debug, Clone)]
pub struct Graph {
    graph: DiGraph<(), ()>,
}

impl Graph {
    /// The graph of a workflow.
    pub fn new(workflow: &Workflow) -> Graph {
        Graph::from_needs(workflow.jobs.iter().map(|job| job.needs.as_slice()))
    }

    /// The graph in which job i needs the jobs in the i-th list. Indices of jobs that do not exist are ignored.
    pub fn from_needs<'n>(needs: impl ExactSizeIterator<Item = &'n [usize]>) -> Graph {
        let jobs = needs.len();
        let mut graph = DiGraph::with_capacity(jobs, 2 * jobs);
        for _ in 0..jobs {
            graph.add_node(());
        }
        for (job, needs) in needs.enumerate() {
            for needed in needs.iter().filter(|needed| **needed < jobs) {
                graph.add_edge(NodeIndex::new(*needed), NodeIndex::new(job), ());
            }
        }
        Graph { graph }
    }

    /// The number of jobs.
    pub fn job_count(&self) -> usize {
        self.graph.node_count()
    }

    /// The number of needs of all jobs together.
    pub fn edge_count(&self) -> usize {
        self.graph.edge_count()
    }

    /// The jobs in an order in which each job comes after the jobs that it needs. Jobs in a cycle, and jobs that need them,
    /// are left out.
    pub fn order(&self) -> Vec<usize> {
        self.layers().concat()
    }

    /// The jobs in layers. Jobs in the first layer need nothing. A job in another layer needs at least one job of the layer
    /// before, and none of a later layer. Within a layer the jobs are in the order of the file.
    pub fn layers(&self) -> Vec<Vec<usize>> {
        let mut unfinished: Vec<usize> =
            self.graph.node_indices().map(|job| self.neighbours(job, Direction::Incoming).count()).collect();
        let mut layer: Vec<usize> = (0..unfinished.len()).filter(|job| unfinished[*job] == 0).collect();
        let mut layers = Vec::new();
        while !layer.is_empty() {
            let mut next = Vec::new();
            for job in &layer {
                for child in self.neighbours(NodeIndex::new(*job), Direction::Outgoing) {
                    unfinished[child.index()] -= 1;
                    if unfinished[child.index()] == 0 {
                        next.push(child.index());
                    }
                }
            }
            next.sort_unstable();
            layers.push(std::mem::replace(&mut layer, next));
        }
        layers
    }

    /// All jobs that this job needs, directly or not, ascending.
    pub fn ancestors(&self, job: usize) -> Vec<usize> {
        self.reachable(job, Direction::Incoming)
    }

    /// All jobs that need this job, directly or not, ascending.
    pub fn descendants(&self, job: usize) -> Vec<usize> {
        self.reachable(job, Direction::Outgoing)
    }

    fn reachable(&self, job: usize, direction: Direction) -> Vec<usize> {
        let mut seen = vec![false; self.job_count()];
        let mut pending = vec![NodeIndex::new(job)];
        let mut found = Vec::new();
        while let Some(node) = pending.pop() {
            for next in self.neighbours(node, direction) {
                if !std::mem::replace(&mut seen[next.index()], true) {
                    found.push(next.index());
                    pending.push(next);
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// For each pair, whether the first job is an ancestor of the second. The graph must have no cycles.
    ///
    /// One pass over the graph answers for 128 different first jobs.
    pub fn are_ancestors(&self, pairs: &[(usize, usize)]) -> Vec<bool> {
        let mut answers = vec![false; pairs.len()];
        if pairs.is_empty() {
            return answers;
        }
        let order = self.order();
        let mut by_first: Vec<usize> = (0..pairs.len()).collect();
        by_first.sort_unstable_by_key(|at| pairs[*at].0);
        let groups: Vec<&[usize]> = by_first.chunk_by(|a, b| pairs[*a].0 == pairs[*b].0).collect();
        for batch in groups.chunks(128) {
            let firsts: Vec<usize> = batch.iter().map(|group| pairs[group[0]].0).collect();
            let reached = self.reached_from(&firsts, &order);
            for (bit, group) in batch.iter().enumerate() {
                for at in *group {
                    answers[*at] = reached[pairs[*at].1] & (1 << bit) != 0;
                }
            }
        }
        answers
    }

    /// A mask for each job. Bit i is set if the i-th job of `firsts` is an ancestor. `firsts` has at most 128 jobs.
    fn reached_from(&self, firsts: &[usize], order: &[usize]) -> Vec<u128> {
        let mut start = vec![0_u128; self.job_count()];
        for (bit, first) in firsts.iter().enumerate() {
            start[*first] |= 1 << bit;
        }
        let mut reached = vec![0_u128; self.job_count()];
        for job in order {
            let passed_on = reached[*job] | start[*job];
            if passed_on != 0 {
                for child in self.neighbours(NodeIndex::new(*job), Direction::Outgoing) {
                    reached[child.index()] |= passed_on;
                }
            }
        }
        reached
    }

    /// At most `limit` cycles. A cycle is a path in which every job needs the next, and the last job needs the first.
    ///
    /// If there are fewer cycles than `limit`, the graph has no cycle after the first need of each is removed.
    pub fn cycles(&self, limit: usize) -> Vec<Vec<usize>> {
        let mut cycles = Vec::new();
        if self.order().len() == self.job_count() {
            return cycles;
        }
        let mut rest = self.clone();
        while cycles.len() < limit {
            let mut groups = rest.groups_with_cycles();
            if groups.is_empty() {
                break;
            }
            groups.sort_unstable_by_key(|group| group.iter().min().copied());
            for group in groups.iter().take(limit - cycles.len()) {
                let cycle = rest.shortest_cycle(group);
                rest.remove_need(cycle[0], cycle[1 % cycle.len()]);
                cycles.push(cycle);
            }
        }
        cycles
    }

    /// The groups of jobs that all need each other, directly or not.
    fn groups_with_cycles(&self) -> Vec<Vec<usize>> {
        kosaraju_scc(&self.graph)
            .into_iter()
            .filter(|group| group.len() > 1 || self.graph.contains_edge(group[0], group[0]))
            .map(|group| group.into_iter().map(NodeIndex::index).collect())
            .collect()
    }

    /// The shortest path from the group's first job along needs back to itself.
    fn shortest_cycle(&self, group: &[usize]) -> Vec<usize> {
        let start = group.iter().min().copied().unwrap_or(0);
        let mut came_from: Vec<Option<usize>> = vec![None; self.job_count()];
        let mut pending = VecDeque::from([start]);
        while let Some(job) = pending.pop_front() {
            let mut needs: Vec<usize> =
                self.neighbours(NodeIndex::new(job), Direction::Incoming).map(NodeIndex::index).collect();
            needs.sort_unstable();
            for needed in needs {
                if needed == start {
                    return path_back(&came_from, start, job);
                }
                if came_from[needed].is_none() {
                    came_from[needed] = Some(job);
                    pending.push_back(needed);
                }
            }
        }
        vec![start]
    }

    fn remove_need(&mut self, job: usize, needed: usize) {
        let (from, to) = (NodeIndex::new(needed), NodeIndex::new(job));
        while let Some(edge) = self.graph.find_edge(from, to) {
            self.graph.remove_edge(edge);
        }
    }

    fn neighbours(&self, job: NodeIndex, direction: Direction) -> impl Iterator<Item = NodeIndex> {
        self.graph.neighbors_directed(job, direction)
    }
}

/// The path from `start` to `last`. `came_from` has the job before each job.
fn path_back(came_from: &[Option<usize>], start: usize, last: usize) -> Vec<usize> {
    let mut path = vec![last];
    let mut at = last;
    while at != start
        && let Some(previous) = came_from[at]
    {
        path.push(previous);
        at = previous;
    }
    path.reverse();
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(needs: &[&[usize]]) -> Graph {
        Graph::from_needs(needs.iter().copied())
    }

    #[test]
    fn a_job_is_in_the_layer_of_its_longest_path() {
        let graph = graph(&[&[], &[0], &[0, 1], &[]]);
        assert_eq!(graph.layers(), vec![vec![0, 3], vec![1], vec![2]]);
        assert_eq!(graph.ancestors(2), vec![0, 1]);
        assert_eq!(graph.descendants(0), vec![1, 2]);
        assert_eq!((graph.job_count(), graph.edge_count()), (4, 3));
    }

    #[test]
    fn many_pairs_are_answered_at_once() {
        let needs: Vec<Vec<usize>> =
            (0..400_usize).map(|job| job.checked_sub(2).into_iter().collect()).collect();
        let graph = Graph::from_needs(needs.iter().map(Vec::as_slice));
        let pairs: Vec<(usize, usize)> = (0..400).flat_map(|a| [(a, 399), (a, 398), (a, a)]).collect();
        for (pair, answer) in pairs.iter().zip(graph.are_ancestors(&pairs)) {
            let expected = pair.0 < pair.1 && pair.0 % 2 == pair.1 % 2;
            assert_eq!(answer, expected, "{pair:?}");
        }
    }

    #[test]
    fn cycles_are_paths_along_needs() {
        assert_eq!(graph(&[&[1], &[2], &[0]]).cycles(9), vec![vec![0, 1, 2]]);
        assert_eq!(graph(&[&[], &[0]]).cycles(9), Vec::<Vec<usize>>::new());
        assert_eq!(graph(&[&[0]]).cycles(9), vec![vec![0]]);
        // Two cycles share a job, and one cycle is separate.
        let tangled = graph(&[&[1, 2], &[0], &[0], &[4], &[3]]);
        assert_eq!(tangled.cycles(9), vec![vec![0, 1], vec![3, 4], vec![0, 2]]);
        assert_eq!(tangled.cycles(2).len(), 2);
    }

    #[test]
    fn the_longest_chain_does_not_overflow_the_stack() {
        let jobs = crate::limits::JOBS;
        let needs: Vec<Vec<usize>> = (0..jobs).map(|job| job.checked_sub(1).into_iter().collect()).collect();
        let chain = Graph::from_needs(needs.iter().map(Vec::as_slice));
        assert_eq!(chain.layers().len(), jobs);
        assert_eq!(chain.ancestors(jobs - 1).len(), jobs - 1);
        assert_eq!(chain.are_ancestors(&[(0, jobs - 1), (jobs - 1, 0)]), vec![true, false]);
        let mut cycle = needs;
        cycle[0].push(jobs - 1);
        let cycle = Graph::from_needs(cycle.iter().map(Vec::as_slice));
        assert_eq!(cycle.cycles(3)[0].len(), jobs);
    }
}
