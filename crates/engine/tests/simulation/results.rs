//! Results that workers send, sometimes late, twice, or about attempts that they have lost.

use std::collections::BTreeSet;

use windlass_engine::JobStatus;
use windlass_engine::store::{ClaimRequest, ClaimedJob, Finish};
use windlass_engine::transition::{Outcome, Repeat, after_attempt};

use crate::oracle::{End, ScriptedResult};
use crate::worker::{Execution, ids, next_line};
use crate::world::World;

/// How many results a worker remembers to send again.
const SENT_MAX: usize = 30;

impl World {
    /// Finishes several attempts in one transaction, mostly with the next claim.
    pub fn finish(&mut self, index: usize) {
        let mut ends = Vec::new();
        for _end in 0..self.chance.usize(0..5) {
            ends.extend(self.take_execution_with_end(index));
        }
        let request = if self.chance.bool() { Some(self.request(index)) } else { None };
        self.send(index, ends, request);
    }

    /// Executes and finishes all jobs that the worker has, and claims the next.
    pub fn execute_all(&mut self, index: usize) {
        self.give_back_unknown_attempts(index);
        let count = self.workers[index].owned.len();
        let ends = (0..count).filter_map(|_end| self.take_execution_with_end(index)).collect();
        let request = self.request(index);
        self.send(index, ends, Some(request));
    }

    /// Takes an execution and decides its end.
    fn take_execution_with_end(&mut self, index: usize) -> Option<(Execution, End)> {
        let owned = self.workers[index].owned.len();
        if owned == 0 {
            return None;
        }
        let place = self.chance.usize(0..owned);
        let mut execution = self.workers[index].owned.swap_remove(place);
        let is_given_back = !execution.has_begun && self.one_in(4);
        if !is_given_back {
            self.begin_execution(&mut execution);
        }
        let outcome = if is_given_back && self.one_in(2) {
            Outcome::OutOfResources { reason: "no more files".to_owned() }
        } else if is_given_back {
            Outcome::Unstarted
        } else if self.one_in(30) {
            Outcome::Interrupted { error: "its worker stops".to_owned() }
        } else if self.oracle.jobs[&execution.job.id].is_stopping && self.chance.bool() {
            Outcome::Cancelled { error: "it was asked to stop".to_owned() }
        } else {
            self.scripted_outcome(&execution.job)
        };
        let worker_id = self.workers[index].id;
        let lines = if execution.has_begun { vec![next_line(&mut execution, worker_id)] } else { Vec::new() };
        let (job_id, attempt) = (execution.job.id, execution.job.retry_state.attempt);
        Some((execution, End { job_id, attempt, worker_id, outcome, lines }))
    }

    pub fn scripted_outcome(&self, job: &ClaimedJob) -> Outcome {
        let known = &self.oracle.jobs[&job.id];
        let error = || "no luck".to_owned();
        match known.rules.script.result(known.retries, job.retry_state.failures) {
            ScriptedResult::Success => Outcome::Successful { output: Some(output(job)) },
            ScriptedResult::Failure => Outcome::Failed { error: error(), repeat: Repeat::Allowed },
            ScriptedResult::FinalFailure => Outcome::Failed { error: error(), repeat: Repeat::Pointless },
            ScriptedResult::Timeout => Outcome::TimedOut { error: error(), repeat: Repeat::Allowed },
        }
    }

    fn send(&mut self, index: usize, ends: Vec<(Execution, End)>, request: Option<ClaimRequest>) {
        let worker_id = self.workers[index].id;
        let said: Vec<End> = ends.iter().map(|(_execution, end)| end.clone()).collect();
        let finishes: Vec<Finish> =
            ends.iter().map(|(execution, end)| self.finish_of(&execution.job, end)).collect();
        let (asked, mut claims) = (request.clone(), None);
        let what = format!("worker {worker_id} finishes {:?}, requests {:?}", short(&said), request);
        let answer = self.call(
            what,
            |store| {
                let (finished, claimed) = store.for_workers().finish_and_claim(finishes, request)?;
                Ok((finished.conflicts, ids(claims.insert(claimed))))
            },
            |oracle, now_ms| {
                let conflicts = oracle.finish(&said, now_ms);
                let nothing = Some(Vec::new());
                Ok((conflicts, asked.map_or(nothing, |request| oracle.claim(&request, now_ms))))
            },
        );
        for (execution, end) in ends {
            self.workers[index].sent.push((execution.job.clone(), end));
            if answer.is_none() {
                // The worker does not know whether this was done, and sends the result again.
                self.workers[index].owned.push(execution);
            }
        }
        let surplus = self.workers[index].sent.len().saturating_sub(SENT_MAX);
        self.workers[index].sent.drain(..surplus);
        self.take(index, claims);
    }

    fn finish_of(&self, job: &ClaimedJob, end: &End) -> Finish {
        let transition = after_attempt(&job.retry_state, end.outcome.clone(), self.store.random().fraction());
        Finish {
            job_id: end.job_id,
            run_id: job.run_id,
            attempt: end.attempt,
            worker_id: end.worker_id,
            transition,
            exit_code: None,
            logs: end.lines.clone(),
            artifacts: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Sends an old result again, mostly of a job that is running again by now. A worker never gives back a job that
    /// it has claimed again.
    pub fn send_again(&mut self, index: usize) {
        let sent = &self.workers[index].sent;
        let runs_again = |(_job, end): &&(ClaimedJob, End)| {
            let job = &self.oracle.jobs[&end.job_id];
            job.status == JobStatus::Running && (job.owner, job.attempt) != (Some(end.worker_id), end.attempt)
        };
        let running: Vec<_> = sent.iter().filter(runs_again).cloned().collect();
        let chosen =
            if running.is_empty() { self.chance.choice(sent).cloned() } else { self.chance.choice(running) };
        let Some((job, end)) = chosen else { return };
        if self.oracle.claimed_by(end.worker_id).contains(&(end.job_id, end.attempt)) {
            return;
        }
        let finish = self.finish_of(&job, &end);
        self.call(
            format!("worker {} sends again {:?}", end.worker_id, short(std::slice::from_ref(&end))),
            |store| Ok(store.for_workers().finish_and_claim(vec![finish], None)?.0.conflicts),
            |oracle, now_ms| Ok(oracle.finish(&[end], now_ms)),
        );
    }

    /// Gives back attempts that the worker owns in the tables but does not know of, because the answer to its claim
    /// was lost.
    pub fn give_back_unknown_attempts(&mut self, index: usize) {
        let id = self.workers[index].id;
        let mut found = Vec::new();
        self.call(
            format!("worker {id} checks its attempts in flight"),
            |store| {
                found = store.for_workers().claimed_by(id)?;
                Ok(found
                    .iter()
                    .map(|(job_id, _run, retry_state)| (*job_id, retry_state.attempt))
                    .collect::<BTreeSet<_>>())
            },
            |oracle, _now_ms| Ok(oracle.claimed_by(id)),
        );
        let is_known = |job_id: i64, attempt: i64| {
            let is_same =
                |owned: &Execution| (owned.job.id, owned.job.retry_state.attempt) == (job_id, attempt);
            self.workers[index].owned.iter().any(is_same)
        };
        let unknown: Vec<_> =
            found.into_iter().filter(|(id, _run, retry_state)| !is_known(*id, retry_state.attempt)).collect();
        let mut ends = Vec::new();
        for (job_id, run_id, retry_state) in unknown {
            let attempt = retry_state.attempt;
            let job = ClaimedJob {
                phase: 0,
                definition: 1,
                item: None,
                id: job_id,
                created_at: 0,
                token: 0,
                run_id,
                queue: String::new(),
                ready_at: 0,
                name: None,
                kind: String::new(),
                payload: String::new(),
                timeout_ms: None,
                started_run: None,
                has_overtaken: false,
                retry_state,
                conditions: None,
            };
            let end = End { job_id, attempt, worker_id: id, outcome: Outcome::Unstarted, lines: Vec::new() };
            ends.push((Execution { job, has_begun: false, lines: 0 }, end));
        }
        if !ends.is_empty() {
            self.send(index, ends, None);
        }
    }
}

/// The output of an attempt, which is unique to its run, job and attempt.
pub fn output(job: &ClaimedJob) -> String {
    format!("\"{} of attempt {}\"", job.label(), job.retry_state.attempt)
}

fn short(ends: &[End]) -> Vec<(i64, i64, &Outcome)> {
    ends.iter().map(|end| (end.job_id, end.attempt, &end.outcome)).collect()
}
