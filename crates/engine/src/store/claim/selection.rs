//! Selecting the most urgent jobs that the request and the limits of their queues allow.

use crate::store::claim::candidates::{
    first_of_queue, lock_jobs, read_candidates, read_candidates_of_run, read_jobs, read_jobs_of_run,
    read_partition,
};
use crate::store::claim::partition::{Candidate, ClaimPosition};
use crate::store::claim::request::{CLAIM_MAX, ClaimRequest, Scope};
use crate::store::queues::rules::{Allowance, Counting, QueueRules, allowances};
use std::collections::{HashMap, HashSet};
use windlass_db::error::Result;
use windlass_db::{Connection, Writers};
use windlass_system::wake_ups::WakeUps;

/// How often one claim reads further jobs of a run, because the jobs before are in full queues or not for this worker.
const RUN_ROUNDS: usize = 16;

/// The jobs that a claim may take.
#[derive(Default)]
pub(in crate::store) struct SelectedJobs {
    /// The most urgent first.
    pub(in crate::store) positions: Vec<ClaimPosition>,
    /// The queues with rules, each with its jobs among the positions. Each claim from these queues must be recorded.
    pub(in crate::store) limited: Vec<(QueueRules, Vec<i64>)>,
}

/// Selects and locks the most urgent claimable jobs of the request. `ready` are jobs that became ready in this transaction,
/// are in queues without rules, and are for the request. `candidates` has the candidate of each partition, unless the
/// request is by runs.
pub(in crate::store) fn select_jobs(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    ready: &[ClaimPosition],
    mut candidates: Vec<Candidate>,
    now_ms: i64,
) -> Result<SelectedJobs> {
    let mut selection = Selection::new(request, Counting::Locked, now_ms);
    selection.choose(ready);
    match &request.scope {
        Scope::Everything | Scope::Queues(_) => {
            candidates.sort_unstable_by_key(|candidate| candidate.position);
            selection.count(connection, &candidates, &candidates)?;
            let mut locked = ready.len();
            for candidate in candidates.iter().filter(|candidate| is_for(request, candidate)) {
                if selection.is_full_before(candidate.position) {
                    break;
                }
                let found = match selection.capacity(&candidate.partition.queue) {
                    QueueCapacity::Jobs(0) => continue,
                    QueueCapacity::Jobs(limit) => read_partition(connection, candidate, limit)?,
                    QueueCapacity::Only(job_id) => lock_jobs(connection, &[job_id])?,
                };
                locked += found.len();
                selection.add(&candidate.partition.queue, found);
            }
            if connection.capabilities().writers == Writers::SideBySide && locked > selection.chosen.len() {
                // Other claims skipped the rows that are locked here. Some of these stay unclaimed, so the others must try
                // again.
                connection.wake(WakeUps::PENDING);
            }
        }
        Scope::Runs(run_ids) => {
            for run_id in run_ids {
                selection.add_run(connection, *run_id)?;
            }
            selection.lock_chosen(connection, ready)?;
        }
    }
    Ok(selection.into_selected_jobs())
}

/// Whether the request would find a job. Locks nothing.
pub(in crate::store) fn has_claimable(
    connection: &mut dyn Connection,
    request: &ClaimRequest,
    now_ms: i64,
) -> Result<bool> {
    let mut selection = Selection::new(request, Counting::Unlocked, now_ms);
    match &request.scope {
        Scope::Everything | Scope::Queues(_) => {
            let candidates = read_candidates(connection)?;
            selection.count(connection, &candidates, &candidates)?;
            Ok(candidates
                .iter()
                .filter(|candidate| is_for(request, candidate))
                .any(|candidate| selection.capacity(&candidate.partition.queue) != QueueCapacity::Jobs(0)))
        }
        Scope::Runs(run_ids) => {
            for run_id in run_ids {
                selection.add_run(connection, *run_id)?;
                if !selection.chosen.is_empty() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
    }
}

/// How many jobs of a queue may still be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueCapacity {
    Jobs(usize),
    /// Only the job with this id.
    Only(i64),
}

/// The jobs that were chosen so far.
struct Selection<'r> {
    request: &'r ClaimRequest,
    counting: Counting,
    now_ms: i64,
    limit: usize,
    chosen: Vec<ClaimPosition>,
    /// The queues with rules: how many jobs may still be taken, and those that were chosen.
    limited: HashMap<String, (QueueRules, QueueCapacity, Vec<ClaimPosition>)>,
}

impl<'r> Selection<'r> {
    fn new(request: &'r ClaimRequest, counting: Counting, now_ms: i64) -> Selection<'r> {
        let limit = request.limit.min(CLAIM_MAX);
        Selection { request, counting, now_ms, limit, chosen: Vec::new(), limited: HashMap::new() }
    }

    /// Counts what the queues of these candidates allow. `all_candidates` has the candidate of each claim partition, or is
    /// empty if they were not read.
    fn count(
        &mut self,
        connection: &mut dyn Connection,
        candidates: &[Candidate],
        all_candidates: &[Candidate],
    ) -> Result<()> {
        let mut queues: Vec<&str> = candidates
            .iter()
            .filter(|candidate| candidate.partition.may_have_rules && is_for(self.request, candidate))
            .filter(|candidate| !self.limited.contains_key(&candidate.partition.queue))
            .map(|candidate| candidate.partition.queue.as_str())
            .collect();
        queues.sort_unstable();
        queues.dedup();
        if queues.is_empty() {
            return Ok(());
        }
        for (queue, (rules, allowance)) in allowances(connection, &queues, self.counting, self.now_ms)? {
            let capacity = match allowance {
                Allowance::Jobs(jobs) => QueueCapacity::Jobs(jobs),
                Allowance::Turn(job_id) => self.only(read_jobs(connection, &[job_id])?.first()),
                Allowance::Next if all_candidates.is_empty() => {
                    let all_candidates = read_candidates(connection)?;
                    self.only(first_of_queue(&all_candidates, &queue))
                }
                Allowance::Next => self.only(first_of_queue(all_candidates, &queue)),
            };
            self.limited.insert(queue, (rules, capacity, Vec::new()));
        }
        Ok(())
    }

    /// Capacity for this job only. None if the job is for other workers, because no other job may overtake it.
    fn only(&self, next: Option<&Candidate>) -> QueueCapacity {
        match next.filter(|candidate| is_for(self.request, candidate)) {
            Some(candidate) => QueueCapacity::Only(candidate.position.id),
            None => QueueCapacity::Jobs(0),
        }
    }

    /// Chooses jobs of a run. Skips jobs that are for other workers and jobs whose queues are full.
    fn add_run(&mut self, connection: &mut dyn Connection, run_id: i64) -> Result<()> {
        let (mut full, mut unfit): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let mut turns = Vec::new();
        for _round in 0..RUN_ROUNDS {
            let candidates =
                read_candidates_of_run(connection, self.request, run_id, &full, &unfit, self.limit)?;
            self.count(connection, &candidates, &[])?;
            let skipped_before = full.len() + unfit.len();
            let mut unlimited = Vec::with_capacity(candidates.len());
            for candidate in &candidates {
                if !is_for(self.request, candidate) {
                    unfit.push(candidate.partition.requires.clone());
                    continue;
                }
                if self.is_used_up_before(&candidate.partition.queue, candidate.position) {
                    full.push(candidate.partition.queue.clone());
                    continue;
                }
                match self.capacity(&candidate.partition.queue) {
                    QueueCapacity::Only(job_id) if job_id != candidate.position.id => {
                        turns.push(job_id);
                        full.push(candidate.partition.queue.clone());
                    }
                    QueueCapacity::Jobs(0) => full.push(candidate.partition.queue.clone()),
                    QueueCapacity::Jobs(_) if !self.limited.contains_key(&candidate.partition.queue) => {
                        unlimited.push(candidate.position)
                    }
                    QueueCapacity::Only(_) | QueueCapacity::Jobs(_) => {
                        self.add(&candidate.partition.queue, vec![candidate.position])
                    }
                }
            }
            self.choose(&unlimited);
            let is_new = full.len() + unfit.len() > skipped_before;
            let is_full = candidates.last().is_none_or(|last| self.is_full_before(last.position));
            if candidates.len() < self.limit || is_full || !is_new {
                break;
            }
            for skipped in [&mut full, &mut unfit] {
                skipped.sort_unstable();
                skipped.dedup();
            }
        }
        // A job that is retried keeps its turn in a fifo queue, although it is due after the jobs that were skipped.
        for candidate in read_jobs_of_run(connection, run_id, &turns)? {
            self.add(&candidate.partition.queue, vec![candidate.position]);
        }
        Ok(())
    }

    /// Locks the chosen jobs and leaves out those that other transactions have locked.
    fn lock_chosen(&mut self, connection: &mut dyn Connection, ready: &[ClaimPosition]) -> Result<()> {
        if connection.capabilities().writers == Writers::OneAtATime {
            return Ok(());
        }
        let ready: HashSet<ClaimPosition> = ready.iter().copied().collect();
        let ids: Vec<i64> = self
            .chosen
            .iter()
            .filter(|position| !ready.contains(position))
            .map(|position| position.id)
            .collect();
        if ids.is_empty() {
            return Ok(());
        }
        let locked: HashSet<ClaimPosition> = lock_jobs(connection, &ids)?.into_iter().collect();
        if locked.len() < ids.len() {
            connection.wake(WakeUps::PENDING);
        }
        self.chosen.retain(|position| ready.contains(position) || locked.contains(position));
        Ok(())
    }

    fn capacity(&self, queue: &str) -> QueueCapacity {
        match self.limited.get(queue) {
            Some((_rules, QueueCapacity::Jobs(jobs), _chosen)) => {
                QueueCapacity::Jobs((*jobs).min(self.limit))
            }
            Some((_rules, only @ QueueCapacity::Only(_), _chosen)) => *only,
            None => QueueCapacity::Jobs(self.limit),
        }
    }

    /// The queue's rules allow no more jobs, and no job from this position on is more urgent than the chosen ones.
    fn is_used_up_before(&self, queue: &str, position: ClaimPosition) -> bool {
        self.limited.get(queue).is_some_and(|(_rules, capacity, of_queue)| match capacity {
            QueueCapacity::Jobs(jobs) => {
                of_queue.len() >= *jobs && of_queue.last().is_none_or(|last| *last <= position)
            }
            QueueCapacity::Only(_) => !of_queue.is_empty(),
        })
    }

    /// The selection is full, and no job from this position on is more urgent than the chosen ones.
    fn is_full_before(&self, position: ClaimPosition) -> bool {
        self.chosen.len() >= self.limit && self.chosen.last().is_some_and(|last| *last <= position)
    }

    fn add(&mut self, queue: &str, found: Vec<ClaimPosition>) {
        if let Some((_rules, capacity, of_queue)) = self.limited.get_mut(queue) {
            // Several partitions share the queue's allowance. The most urgent of their jobs are kept.
            let allowed = match capacity {
                QueueCapacity::Jobs(jobs) => *jobs,
                QueueCapacity::Only(_) => 1,
            };
            self.chosen.retain(|position| !of_queue.contains(position));
            of_queue.extend(found);
            of_queue.sort();
            of_queue.dedup();
            of_queue.truncate(allowed);
            let of_queue = of_queue.clone();
            self.choose(&of_queue);
        } else {
            self.choose(&found);
        }
    }

    /// Adds positions in sorted order. The stable sort merges two sorted lists in linear time.
    fn choose(&mut self, found: &[ClaimPosition]) {
        self.chosen.extend(found);
        self.chosen.sort();
        // A run is read several times, and a request may name it twice.
        self.chosen.dedup();
        self.chosen.truncate(self.limit);
    }

    fn into_selected_jobs(self) -> SelectedJobs {
        let Selection { chosen, limited, .. } = self;
        let limited = limited
            .into_values()
            .map(|(rules, _room, of_queue)| {
                (
                    rules,
                    of_queue
                        .iter()
                        .filter(|position| chosen.contains(position))
                        .map(|position| position.id)
                        .collect(),
                )
            })
            .filter(|(_rules, ids): &(QueueRules, Vec<i64>)| !ids.is_empty())
            .collect();
        SelectedJobs { positions: chosen, limited }
    }
}

/// Whether the request takes jobs of the candidate's queue and its worker can execute the candidate.
pub(in crate::store) fn is_for(request: &ClaimRequest, candidate: &Candidate) -> bool {
    let takes_queue = match &request.scope {
        Scope::Everything | Scope::Runs(_) => true,
        Scope::Queues(queues) => queues.contains(&candidate.partition.queue),
    };
    takes_queue
        && request
            .worker_capabilities
            .check(&candidate.partition.kind, &candidate.partition.requires, candidate.partition.code_version)
            .is_ok()
}
