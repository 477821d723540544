//! Simulated workers: each step is one call of the store. A worker may stall past its lease, be fenced, come back,
//! and continue with attempts that it believes to own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use windlass_engine::WorkerStatus;
use windlass_engine::store::{
    ClaimRequest, ClaimedJob, Claims, LogLine, LogStream, NewWorker, Scope, WorkerCapabilities,
};

use crate::oracle::End;
use crate::rules::{FIFO, PLAIN};
use crate::support;
use crate::world::World;

/// How many workers exist at a time, including stalled and fenced ones.
const WORKERS_MAX: usize = 6;

pub struct SimulatedWorker {
    pub id: i64,
    pub worker_capabilities: WorkerCapabilities,
    pub scope: Scope,
    /// Attempts that it believes to own.
    pub owned: Vec<Execution>,
    /// Results that it has sent.
    pub sent: Vec<(ClaimedJob, End)>,
    /// Whether its process is stalled.
    pub is_stalled: bool,
}

pub struct Execution {
    pub job: ClaimedJob,
    pub has_begun: bool,
    pub lines: i64,
}

impl World {
    pub fn worker_step(&mut self) {
        if self.workers.is_empty() || (self.workers.len() < WORKERS_MAX && self.one_in(15)) {
            return self.register_worker();
        }
        let index = self.chance.usize(0..self.workers.len());
        if self.workers[index].is_stalled {
            self.workers[index].is_stalled = !self.one_in(6);
            return;
        }
        match self.chance.u8(0..100) {
            0..26 => self.claim(index),
            26..44 => self.begin(index),
            44..74 => self.finish(index),
            74..79 => self.send_again(index),
            79..85 => self.heartbeat(index),
            85..88 => self.append_lines(index),
            88..91 => self.give_back_unknown_attempts(index),
            91..94 => self.read_cancel_requests(index),
            94..97 => self.workers[index].is_stalled = true,
            97 => self.stop(index),
            98 => self.drain(index),
            _ => {
                let dead = self.workers.swap_remove(index);
                self.trail.note(format!("worker {} dies", dead.id));
            }
        }
    }

    pub fn register_worker(&mut self) {
        let all = ["noop", "shell"].map(str::to_owned).to_vec();
        let mut worker_capabilities =
            WorkerCapabilities { kinds: all, capabilities: vec!["gpu".to_owned()], code_version: 1 };
        match self.chance.u8(0..4) {
            0 => worker_capabilities.capabilities.clear(),
            1 => worker_capabilities.code_version = 0,
            _ => {}
        }
        let scope = match self.chance.u8(0..6) {
            0 => Scope::Queues(vec![PLAIN.to_owned(), FIFO.to_owned()]),
            1 => Scope::Runs(self.oracle.runs.keys().copied().filter(|run_id| run_id % 2 == 0).collect()),
            _ => Scope::Everything,
        };
        let new = NewWorker {
            worker_capabilities: worker_capabilities.clone(),
            scope: scope.clone(),
            ..support::new_worker()
        };
        let id = self.store.for_workers().register(new).unwrap();
        self.trail.note(format!("worker {id} registers"));
        self.oracle.register(id);
        let (owned, sent) = (Vec::new(), Vec::new());
        self.workers.push(SimulatedWorker { id, worker_capabilities, scope, owned, sent, is_stalled: false });
    }

    /// Mostly the scope that it registered with. The runs for which somebody waits may change.
    pub fn request(&mut self, index: usize) -> ClaimRequest {
        let limit = self.chance.usize(0..6);
        let idle_threads = self.chance.usize(0..=limit);
        let some_runs = self.one_in(6).then(|| {
            let run_ids = self.oracle.runs.keys().copied();
            Scope::Runs(run_ids.filter(|_run_id| self.chance.bool()).collect())
        });
        let SimulatedWorker { id, worker_capabilities, scope, .. } = &self.workers[index];
        let scope = some_runs.unwrap_or_else(|| scope.clone());
        ClaimRequest {
            worker_id: *id,
            scope,
            worker_capabilities: worker_capabilities.clone(),
            limit,
            idle_threads,
        }
    }

    pub fn claim(&mut self, index: usize) {
        let request = self.request(index);
        let asked = request.clone();
        let mut claims = None;
        self.call(
            format!("worker {} claims {} jobs", request.worker_id, request.limit),
            |store| Ok(ids(claims.insert(store.for_workers().claim(request)?))),
            |oracle, now_ms| Ok(oracle.claim(&asked, now_ms)),
        );
        self.take(index, claims);
    }

    /// Begins to execute claimed jobs. A worker that learns of its fence stops, sometimes late.
    pub fn take(&mut self, index: usize, claims: Option<Claims>) {
        match claims {
            None => {}
            Some(Claims::Fenced) => self.learn_of_fence(index),
            Some(Claims::Jobs(jobs)) => {
                for job in jobs {
                    self.check_claim(&job);
                    // The worker gave the attempt back, did not get the answer, and has claimed the attempt again.
                    self.workers[index].owned.retain(|owned| owned.job.id != job.id);
                    self.workers[index].owned.push(Execution { job, has_begun: false, lines: 0 });
                }
            }
        }
    }

    fn check_claim(&self, job: &ClaimedJob) {
        let known = &self.oracle.jobs[&job.id];
        let retry_state = &job.retry_state;
        assert_eq!((job.run_id, &job.kind), (known.run_id, &known.rules.kind), "{job:?}");
        assert_eq!(job.name.as_deref().unwrap_or_default(), known.rules.name, "{job:?}");
        let expected = (known.attempt, known.failures, known.interruptions, known.rules.max_attempts);
        let found =
            (retry_state.attempt, retry_state.failures, retry_state.interruptions, retry_state.max_attempts);
        assert_eq!(found, expected, "(attempt, failures, interruptions, max_attempts) of {job:?}");
    }

    fn learn_of_fence(&mut self, index: usize) {
        if self.chance.bool() {
            let fenced = self.workers.swap_remove(index);
            self.trail.note(format!("worker {} learns of its fence and stops", fenced.id));
        }
    }

    /// Begins an execution, which reads the outputs of its parents.
    pub fn begin(&mut self, index: usize) {
        let owned = &mut self.workers[index].owned;
        let Some(place) = owned.iter().position(|owned| !owned.has_begun) else { return };
        let mut execution = owned.remove(place);
        self.begin_execution(&mut execution);
        self.workers[index].owned.push(execution);
    }

    pub fn begin_execution(&self, execution: &mut Execution) {
        execution.has_begun = true;
        let (id, run_id) = (execution.job.id, execution.job.run_id);
        if let Some(run_id) = run_id {
            let parents = &self.oracle.jobs[&id].parents;
            let names: Vec<String> =
                parents.iter().map(|parent| self.oracle.jobs[parent].rules.name.clone()).collect();
            let outputs: BTreeMap<_, _> = self
                .store
                .jobs()
                .values(run_id, &names)
                .unwrap()
                .into_iter()
                .map(|job| (job.name, job.output))
                .collect();
            assert_eq!(outputs, self.oracle.outputs(run_id, &names), "the outputs that job {id} reads");
        }
    }

    pub fn heartbeat(&mut self, index: usize) {
        let id = self.workers[index].id;
        let renewed = self.call(
            format!("worker {id} renews its lease"),
            |store| store.for_workers().heartbeat(id),
            |oracle, _now_ms| Ok(oracle.heartbeat(id)),
        );
        if renewed == Some(Ok(false)) {
            self.learn_of_fence(index);
        }
    }

    /// Writes output while the attempt is running. No guard protects it, but lines of a former owner belong to the
    /// former attempt.
    fn append_lines(&mut self, index: usize) {
        let id = self.workers[index].id;
        let Some(execution) = self.workers[index].owned.iter_mut().find(|owned| owned.has_begun) else {
            return;
        };
        let lines = Arc::new(vec![next_line(execution, id)]);
        // If the answer is lost, the worker sends the same lines again. Sometimes it does so without a reason.
        for _try in 0..if self.chance.bool() { 1 } else { 2 } {
            self.call(
                format!("worker {id} writes output of {}", execution_label(&lines)),
                |store| store.for_workers().append_logs(Arc::clone(&lines)),
                |oracle, _now_ms| {
                    oracle.append(&lines);
                    Ok(())
                },
            );
        }
    }

    fn read_cancel_requests(&mut self, index: usize) {
        let id = self.workers[index].id;
        let found: BTreeSet<i64> = self
            .store
            .for_workers()
            .cancel_requests(id)
            .unwrap()
            .into_iter()
            .map(|(job_id, _urgency)| job_id)
            .collect();
        assert_eq!(found, self.oracle.cancel_requests(id), "jobs of worker {id} that were asked to stop");
    }

    fn drain(&mut self, index: usize) {
        let id = self.workers[index].id;
        self.call(
            format!("worker {id} claims nothing more"),
            |store| store.for_workers().set_status(id, WorkerStatus::Draining),
            |oracle, _now_ms| Ok(oracle.is_alive(id)),
        );
    }

    /// Stops the worker. Its jobs are left to the others.
    fn stop(&mut self, index: usize) {
        let id = self.workers[index].id;
        self.call(
            format!("worker {id} stops"),
            |store| store.for_workers().set_status(id, WorkerStatus::Stopped),
            |oracle, _now_ms| Ok(oracle.stop_worker(id)),
        );
    }
}

pub fn next_line(execution: &mut Execution, worker_id: i64) -> LogLine {
    execution.lines += 1;
    let (job_id, attempt, line) = (execution.job.id, execution.job.retry_state.attempt, execution.lines);
    let text = format!("line {line} of job {job_id}, attempt {attempt}, by worker {worker_id}");
    LogLine { job_id, attempt, line, at: 0, stream: LogStream::Stdout, text }
}

fn execution_label(lines: &[LogLine]) -> String {
    lines.first().map(|line| format!("job {}, attempt {}", line.job_id, line.attempt)).unwrap_or_default()
}

pub fn ids(claims: &Claims) -> Option<Vec<i64>> {
    match claims {
        Claims::Jobs(jobs) => Some(jobs.iter().map(|job| job.id).collect()),
        Claims::Fenced => None,
    }
}
