//! People: they submit, enqueue, cancel, retry, pause and resume.

use windlass_engine::JobStatus;
use windlass_engine::status::StopReason;
use windlass_engine::store::{
    JobFilter, NewJob, NewRun, Order, QueueLimits, RetrySelection, RunFilter, Setting,
};

use crate::oracle::{Job, Refusal, Run};
use crate::rules::{self, FIFO, JobRules, NARROW, RATED, pick};
use crate::world::World;

/// With more unfinished jobs than this, people add no more, because each step compares all of them.
const UNFINISHED_MAX: usize = 60;

impl World {
    pub fn person_step(&mut self) {
        let unfinished = self.oracle.jobs.values().filter(|job| !job.is_over).count();
        let has_room = unfinished < UNFINISHED_MAX;
        match self.chance.u8(0..24) {
            0..6 if has_room => self.submit(),
            6..12 if has_room => self.enqueue(),
            0..12 => {}
            12..14 => self.cancel_run(),
            14..17 => self.cancel_job(),
            17..20 => self.retry_run(),
            20..22 => self.pause_or_resume(),
            _ => self.change_order(),
        }
    }

    /// Submits a new workflow mostly, sometimes another run of the last one, and sometimes a key that has a run
    /// already.
    fn submit(&mut self) {
        let workflow = match self.last_workflow.take() {
            Some(workflow) if self.one_in(3) => workflow,
            Some(_) | None => rules::workflow(&mut self.chance),
        };
        self.last_workflow = Some(workflow.clone());
        let run_key = self.one_in(4).then(|| format!("run-{}", self.chance.u8(0..8)));
        let seed = self.chance.u64(..);
        let run = NewRun {
            workflow: workflow.clone(),
            params: Default::default(),
            dir: None,
            run_key: run_key.clone(),
            occasion: None,
        };
        let is_known = run_key.is_some() && self.oracle.runs.values().any(|known| known.run_key == run_key);
        let rows = self.rows();
        self.call(
            format!("a person submits {} jobs, key {run_key:?}", workflow.jobs.len()),
            |store| Ok(store.runs().submit(run)?.created),
            |oracle, now_ms| {
                if !is_known {
                    let id = rows.newest_run();
                    let run = Run { run_key, timeout_ms: workflow.timeout_ms, ..Run::new(id) };
                    oracle.submit(run, &workflow, &rows.jobs_of(id), seed, now_ms);
                }
                Ok(!is_known)
            },
        );
    }

    fn enqueue(&mut self) {
        let (now_ms, count) = (self.clock.now_ms(), self.chance.usize(1..4));
        let jobs: Vec<NewJob> = (0..count).map(|_| rules::standalone_job(&mut self.chance, now_ms)).collect();
        let rules: Vec<(JobRules, i64)> = jobs
            .iter()
            .map(|job| (JobRules::alone(job, self.chance.u64(..)), job.execute_after.unwrap_or(now_ms)))
            .collect();
        let mut keys: Vec<&String> = jobs.iter().filter_map(|job| job.unique_key.as_ref()).collect();
        let is_taken = self.oracle.has_unique_key(&keys);
        keys.sort_unstable();
        let is_twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
        let rows = self.rows();
        self.call(
            format!("a person enqueues {count} jobs"),
            |store| store.jobs().enqueue(jobs.clone()).map(|ids| ids.len()),
            |oracle, now_ms| {
                if is_taken || is_twice {
                    return Err(Refusal::Conflict);
                }
                let ids = rows.newest(count);
                let accepted = ids.into_iter().zip(rules).map(|(id, (rules, due_ms))| (id, rules, due_ms));
                oracle.enqueue(accepted.collect(), now_ms);
                Ok(count)
            },
        );
    }

    fn any_run(&mut self) -> Option<i64> {
        // The latest runs are the ones that are still running.
        let ids: Vec<i64> = self.oracle.runs.keys().rev().take(12).copied().collect();
        self.chance.choice(ids)
    }

    fn cancel_run(&mut self) {
        let Some(run_id) = self.any_run() else { return };
        self.call(
            format!("a person cancels run {run_id}"),
            |store| store.runs().cancel(run_id).map(|done| (done.cancelled, done.stopping)),
            |oracle, _now_ms| oracle.stop_run(run_id, StopReason::Cancelled),
        );
    }

    fn cancel_job(&mut self) {
        let prefers_some = self.chance.bool();
        let unfinished = || self.oracle.jobs.values().filter(|job| !job.is_over);
        let of_interest = |job: &&Job| job.is_reported() || job.status == JobStatus::Running;
        let some: Vec<i64> = unfinished().filter(of_interest).map(|job| job.id).collect();
        let last = self.oracle.jobs.keys().last().copied().unwrap_or_default();
        let any: Vec<i64> = unfinished().map(|job| job.id).chain([last, last + 1_000]).collect();
        let id = self.chance.choice(if prefers_some { some } else { any }).unwrap_or_default();
        self.call(
            format!("a person cancels job {id}"),
            |store| store.jobs().cancel(id).map(|done| (done.cancelled, done.stopping)),
            |oracle, _now_ms| oracle.cancel_job(id),
        );
    }

    fn retry_run(&mut self) {
        let over: Vec<i64> = self
            .oracle
            .runs
            .keys()
            .rev()
            .copied()
            .filter(|id| self.oracle.unfinished(*id) == 0)
            .take(12)
            .collect();
        let one_that_goes_on = if self.one_in(6) { self.any_run() } else { None };
        let Some(run_id) = one_that_goes_on.or(self.chance.choice(over)) else { return };
        let selection = match self.chance.bool() {
            true => RetrySelection::Failed,
            false => RetrySelection::From(format!("j{}", self.chance.u8(0..5))),
        };
        let chosen = selection.clone();
        self.call(
            format!("a person retries run {run_id}: {selection:?}"),
            |store| store.runs().retry(run_id, selection),
            |oracle, now_ms| oracle.retry_run(run_id, &chosen, now_ms),
        );
    }

    fn pause_or_resume(&mut self) {
        let name = pick(&mut self.chance, &[NARROW, RATED, FIFO]);
        let is_paused = self.oracle.queues[name].is_paused;
        let what = format!("a person {} queue {name}", if is_paused { "resumes" } else { "pauses" });
        self.call(
            what,
            |store| {
                if is_paused { store.queues().resume(name).map(drop) } else { store.queues().pause(name) }
            },
            |oracle, _now_ms| {
                oracle.queues.get_mut(name).expect("it was made").is_paused = !is_paused;
                Ok(())
            },
        );
    }

    /// Changes a queue's order to arrival or to priority, at a time when at most one of its jobs is running.
    fn change_order(&mut self) {
        let is_running = |job: &&Job| job.status == JobStatus::Running && job.rules.queue == FIFO;
        if self.oracle.jobs.values().filter(is_running).count() > 1 {
            return;
        }
        let is_fifo = !self.oracle.queues[FIFO].is_fifo;
        self.trail.note(format!("a person sets the order of queue {FIFO} to arrival: {is_fifo}"));
        let order = if is_fifo { Setting::Set(Order::Arrival) } else { Setting::Clear };
        self.store.queues().limit(FIFO, QueueLimits { order, ..QueueLimits::default() }).unwrap();
        self.oracle.change_order(FIFO, is_fifo);
    }

    pub fn resume_all(&mut self) {
        for (name, queue) in &mut self.oracle.queues {
            self.store.queues().resume(name).unwrap();
            queue.is_paused = false;
        }
    }

    /// The rows as another program sees them. They show what a call has inserted, even if its answer was lost.
    pub fn rows(&mut self) -> Rows {
        Rows { store: self.store.clone() }
    }
}

/// Reads the ids that the database has assigned.
pub struct Rows {
    store: windlass_engine::Store,
}

impl Rows {
    /// The ids of the newest jobs, ascending.
    pub fn newest(&self, count: usize) -> Vec<i64> {
        let filter = JobFilter { limit: count as i64, ..JobFilter::default() };
        let mut ids: Vec<i64> = self.store.jobs().list(&filter).unwrap().iter().map(|job| job.id).collect();
        ids.sort_unstable();
        ids
    }

    pub fn newest_run(&self) -> i64 {
        self.store.runs().list(&RunFilter { limit: 1, ..RunFilter::default() }).unwrap()[0].id
    }

    /// The runs of a schedule in the order of their ids, with their nominal times.
    pub fn runs_of_schedule(&self, schedule_id: i64) -> Vec<(i64, i64)> {
        let runs = self.store.runs().of_schedule(schedule_id, 1_000_000).unwrap();
        runs.iter().rev().filter_map(|run| Some((run.id, run.scheduled_for?))).collect()
    }

    pub fn jobs_of(&self, run_id: i64) -> Vec<i64> {
        self.store.jobs().of_run(run_id).unwrap().iter().map(|job| job.id).collect()
    }
}
