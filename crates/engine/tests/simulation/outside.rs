//! Programs in other languages: they insert, claim and report with the SQL of the guide, and use nothing else.

use windlass_engine::transition::{Outcome, Repeat};

use crate::oracle::{End, ScriptedResult};
use crate::rules::{self, JobRules, PLAIN, pick};
use crate::support;
use crate::world::World;

const WORKERS_MAX: usize = 2;

pub struct OutsideWorker {
    pub id: i64,
    /// Attempts that it believes to own: job and attempt.
    pub owned: Vec<(i64, i64)>,
}

impl World {
    pub fn outside_step(&mut self) {
        if self.outside.is_empty() || (self.outside.len() < WORKERS_MAX && self.one_in(10)) {
            let id = self.store.for_workers().register(support::new_worker()).unwrap();
            self.oracle.register(id);
            return self.outside.push(OutsideWorker { id, owned: Vec::new() });
        }
        let index = self.chance.usize(0..self.outside.len());
        match self.chance.u8(0..20) {
            0..7 => self.claim_by_sql(index),
            7..13 => self.report_by_sql(index),
            13..17 => self.renew_by_sql(index),
            17..19 => self.insert_by_sql(),
            _ => drop(self.outside.swap_remove(index)),
        }
    }

    fn claim_by_sql(&mut self, index: usize) {
        let (id, now_ms) = (self.outside[index].id, self.clock.now_ms());
        let kind = pick(&mut self.chance, &["noop", "shell"]);
        self.trail.note(format!("worker {id} claims a job of kind {kind} by SQL"));
        self.sql().execute(&format!(
            "UPDATE jobs
             SET status = 'RUNNING', worker_id = {id}, attempt = attempt + 1, started_at = {now_ms},
                 updated_at = {now_ms}
             WHERE id = (SELECT id FROM claimable_jobs WHERE queue = '{PLAIN}' AND kind = '{kind}'
                         ORDER BY claim_order, id LIMIT 1)
               AND status = 'PENDING'
               AND EXISTS (SELECT 1 FROM workers WHERE id = {id} AND status = 'ALIVE');
             UPDATE runs
             SET status = 'RUNNING', started_at = {now_ms}, updated_at = {now_ms},
                 deadline_at = {now_ms} + timeout_ms
             WHERE status = 'PENDING'
               AND id IN (SELECT run_id FROM jobs WHERE worker_id = {id} AND status = 'RUNNING')"
        ));
        if let Some(job_id) = self.oracle.claim_from_outside(id, PLAIN, kind, now_ms) {
            let attempt = self.oracle.jobs[&job_id].attempt;
            self.outside[index].owned.push((job_id, attempt));
        }
    }

    /// May report an attempt that it has lost, or has reported before.
    fn report_by_sql(&mut self, index: usize) {
        let OutsideWorker { id, owned } = &self.outside[index];
        let (worker_id, count) = (*id, owned.len());
        if count == 0 {
            return;
        }
        let place = self.chance.usize(0..count);
        let (job_id, attempt) = self.outside[index].owned[place];
        if !self.one_in(6) {
            self.outside[index].owned.swap_remove(place);
        }
        let outcome = self.reported_outcome(job_id, attempt);
        let changes = match &outcome {
            Outcome::Successful { output } => {
                format!("status = 'SUCCESSFUL', output = '{}'", output.as_deref().unwrap_or("null"))
            }
            Outcome::Failed { repeat: Repeat::Pointless, .. } => {
                "status = 'FAILED', last_error = 'no luck', max_attempts = failures + 1".to_owned()
            }
            Outcome::Cancelled { .. } => "status = 'CANCELLED', last_error = 'stopped'".to_owned(),
            Outcome::Failed { .. }
            | Outcome::Skipped { .. }
            | Outcome::Again { .. }
            | Outcome::TimedOut { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Unstarted
            | Outcome::OutOfResources { .. } => "status = 'FAILED', last_error = 'no luck'".to_owned(),
        };
        let now_ms = self.clock.now_ms();
        self.trail.note(format!("worker {worker_id} reports job {job_id}, attempt {attempt}: {changes}"));
        self.sql().execute(&format!(
            "UPDATE jobs SET {changes}, updated_at = {now_ms}
             WHERE id = {job_id} AND status = 'RUNNING' AND attempt = {attempt} AND worker_id = {worker_id}"
        ));
        self.oracle.report(&End { job_id, attempt, worker_id, outcome, lines: Vec::new() });
    }

    fn reported_outcome(&mut self, job_id: i64, attempt: i64) -> Outcome {
        let job = &self.oracle.jobs[&job_id];
        let error = || "no luck".to_owned();
        if job.is_stopping {
            return Outcome::Cancelled { error: error() };
        }
        match job.rules.script.result(job.retries, job.failures) {
            ScriptedResult::Success => {
                Outcome::Successful { output: Some(format!("\"j{job_id} of attempt {attempt}, by SQL\"")) }
            }
            ScriptedResult::FinalFailure => Outcome::Failed { error: error(), repeat: Repeat::Pointless },
            ScriptedResult::Failure | ScriptedResult::Timeout => {
                Outcome::Failed { error: error(), repeat: Repeat::Allowed }
            }
        }
    }

    fn renew_by_sql(&mut self, index: usize) {
        let (id, now_ms) = (self.outside[index].id, self.clock.now_ms());
        self.trail.note(format!("worker {id} renews its lease by SQL"));
        self.sql().execute(&format!(
            "UPDATE workers SET heartbeats = heartbeats + 1, heartbeat_at = {now_ms}
             WHERE id = {id} AND status IN ('ALIVE', 'DRAINING')"
        ));
        if !self.oracle.heartbeat(id) {
            self.outside.swap_remove(index);
        }
    }

    /// Inserts a row, which the scheduler promotes.
    fn insert_by_sql(&mut self) {
        let (now_ms, seed) = (self.clock.now_ms(), self.chance.u64(..));
        let mut job = rules::standalone_job(&mut self.chance, now_ms);
        (job.unique_key, job.concurrency) = (None, None);
        let due_ms = job.execute_after.unwrap_or(now_ms);
        self.trail.note(format!("another program inserts {job:?}"));
        self.sql().execute(&format!(
            "INSERT INTO jobs (kind, queue, priority, execute_after, max_attempts, code_version, payload)
             VALUES ('{}', '{}', {}, {due_ms}, {}, {}, 'null')",
            job.kind, job.queue, job.priority, job.max_attempts, job.code_version
        ));
        let id = self.sql().value("SELECT max(id) FROM jobs");
        self.oracle.insert_from_outside(id, JobRules::alone(&job, seed), due_ms);
    }
}
