//! Which worker gets which jobs: the order of claiming, what a worker can execute, and the rules of queues.

use std::collections::BTreeMap;

use windlass_engine::JobStatus;
use windlass_engine::store::{ClaimRequest, Scope};

use super::{Job, Oracle, Queue};
use crate::rules::JobRules;

/// What a queue with rules allows now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowance {
    Jobs(usize),
    Only(i64),
}

impl Oracle {
    /// Claims jobs. Returns `None` if the worker is fenced.
    pub fn claim(&mut self, request: &ClaimRequest, now_ms: i64) -> Option<Vec<i64>> {
        if !self.is_alive(request.worker_id) {
            return None;
        }
        let chosen = self.choose(request, now_ms);
        // A job that must not be interrupted is not prefetched, and neither is a job that counts against a rate.
        let taken: Vec<i64> = chosen
            .iter()
            .enumerate()
            .filter(|(index, id)| *index < request.idle_threads || self.may_wait(**id))
            .map(|(_index, id)| *id)
            .collect();
        for id in &taken {
            self.take(*id, request.worker_id, now_ms);
        }
        Some(taken)
    }

    fn may_wait(&self, job_id: i64) -> bool {
        let rules = &self.jobs[&job_id].rules;
        let has_rate = self.queues.get(rules.queue.as_str()).is_some_and(|queue| queue.rate.is_some());
        !rules.fails_when_interrupted && !has_rate
    }

    /// The most urgent jobs that match the request and that the rules of their queues allow.
    fn choose(&self, request: &ClaimRequest, now_ms: i64) -> Vec<i64> {
        let mut pending: Vec<&Job> =
            self.jobs.values().filter(|job| job.status == JobStatus::Pending).collect();
        pending.sort_by_key(|job| job.rank());
        let mut allowances: BTreeMap<&str, Allowance> = BTreeMap::new();
        for (name, queue) in &self.queues {
            allowances.insert(name, self.allowance(name, queue, &pending, now_ms));
        }
        let mut chosen = Vec::new();
        for job in pending.into_iter().filter(|job| is_for(request, job)) {
            if chosen.len() == request.limit {
                break;
            }
            match allowances.get_mut(job.rules.queue.as_str()) {
                None => {}
                Some(Allowance::Jobs(0)) => continue,
                Some(Allowance::Jobs(left)) => *left -= 1,
                Some(Allowance::Only(id)) if *id != job.id => continue,
                Some(only) => *only = Allowance::Jobs(0),
            }
            chosen.push(job.id);
        }
        chosen
    }

    fn allowance(&self, name: &str, queue: &Queue, pending: &[&Job], now_ms: i64) -> Allowance {
        if queue.is_paused {
            return Allowance::Jobs(0);
        }
        let is_running = |job: &&Job| job.status == JobStatus::Running && job.rules.queue == name;
        let running = self.jobs.values().filter(is_running).count();
        let by_running = queue
            .max_running
            .map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(0).saturating_sub(running));
        let by_rate = queue.rate.map_or(usize::MAX, |(jobs, interval_ms)| {
            let counts = |at_ms: &&i64| **at_ms + interval_ms > now_ms;
            jobs.saturating_sub(queue.starts.iter().filter(counts).count())
        });
        let jobs = by_running.min(by_rate);
        if !queue.is_fifo || jobs == 0 {
            return Allowance::Jobs(jobs);
        }
        // One at a time in order of arrival: no job overtakes one that runs or waits for a retry.
        match queue.turn.map(|id| (id, self.jobs[&id].status)) {
            Some((id, JobStatus::Pending)) => Allowance::Only(id),
            Some((_id, JobStatus::Scheduled | JobStatus::Running)) => Allowance::Jobs(0),
            Some(_) | None if running > 0 => Allowance::Jobs(0),
            Some(_) | None => pending
                .iter()
                .find(|job| job.rules.queue == name)
                .map_or(Allowance::Jobs(0), |job| Allowance::Only(job.id)),
        }
    }

    /// A worker in another language claims one job of a queue without rules. Returns `None` if there is no job for
    /// it.
    pub fn claim_from_outside(
        &mut self,
        worker_id: i64,
        queue: &str,
        kind: &str,
        now_ms: i64,
    ) -> Option<i64> {
        let is_for = |job: &&Job| {
            let JobRules { requires, code_version, .. } = &job.rules;
            let is_plain = requires.is_empty() && *code_version == 0;
            job.status == JobStatus::Pending && is_plain && job.rules.queue == queue && job.rules.kind == kind
        };
        let is_free = self.is_alive(worker_id) && !self.queues.contains_key(queue);
        let id = self.jobs.values().filter(is_for).min_by_key(|job| job.rank()).filter(|_| is_free)?.id;
        self.take(id, worker_id, now_ms);
        Some(id)
    }

    fn take(&mut self, id: i64, worker_id: i64, now_ms: i64) {
        let job = self.jobs.get_mut(&id).expect("it was chosen");
        let has_parents_over = job.parents.clone();
        job.status = JobStatus::Running;
        job.attempt += 1;
        job.owner = Some(worker_id);
        let (attempt, run_id, queue) = (job.attempt, job.run_id, job.rules.queue.clone());
        assert!(has_parents_over.iter().all(|parent| self.jobs[parent].has_passed()), "job {id}");
        let other = self.owners.insert((id, attempt), worker_id);
        assert_eq!(other, None, "attempt {attempt} of job {id} has one owner");
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.starts.push(now_ms);
            queue.turn = if queue.is_fifo { Some(id) } else { queue.turn };
        }
        if let Some(run_id) = run_id {
            self.start_run(run_id, now_ms);
        }
    }

    /// Starts a run with the first claim of one of its jobs, or with the first decision about one.
    pub(super) fn start_run(&mut self, run_id: i64, now_ms: i64) {
        if let Some(run) = self.runs.get_mut(&run_id).filter(|run| !run.has_started) {
            run.has_started = true;
            run.deadline_at = run.timeout_ms.map(|timeout_ms| now_ms + timeout_ms);
        }
    }
}

fn is_for(request: &ClaimRequest, job: &Job) -> bool {
    let is_in_scope = match &request.scope {
        Scope::Everything => true,
        Scope::Queues(queues) => queues.contains(&job.rules.queue),
        Scope::Runs(run_ids) => job.run_id.is_some_and(|run_id| run_ids.contains(&run_id)),
    };
    let has = &request.worker_capabilities;
    is_in_scope
        && has.kinds.contains(&job.rules.kind)
        && job.rules.requires.iter().all(|capability| has.capabilities.contains(capability))
        && job.rules.code_version <= has.code_version
}
