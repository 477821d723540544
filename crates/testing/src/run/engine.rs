//! One life of the engine of a case: the real store, scheduler and worker, step by step.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use windlass_db::Database;
use windlass_engine::RunFiles;
use windlass_engine::store::{Job, JobFilter, NewRun, PAGE_MAX, RunFilter, Store, Worker};
use windlass_engine::{JobStatus, Random, Result, RunStatus};
use windlass_scheduler::{SchedulerSteps, WorkerProcesses};
use windlass_system::process::{HostScope, Liveness};
use windlass_system::steps::NextStep;
use windlass_worker::{Attempt, BegunAttempt, FakeEnds, Handlers, THREADS_MAX, WorkerOptions, WorkerSteps};
use windlass_workflow::Workflow;

use super::CaseError;
use super::database::{CaseDatabase, Lifespan};
use super::world::World;

/// The lease of the worker, in milliseconds: longer than any case, so that no jump of the clock ends it.
const LEASE_MS: i64 = 1_000 * 366 * 24 * 3_600_000;
/// The outcome of an attempt whose engine died.
pub(super) const INTERRUPTED: &str = "interrupted";
/// How often everything that is due is done before the clock moves. More means that it never ends.
const ROUNDS_MAX: usize = 10_000;

/// What is left when everything that is due was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// The run is over.
    Over,
    /// Something will happen at this instant.
    NextAt(i64),
    /// Nothing can happen any more, and the run is not over.
    Stuck,
}

/// An engine with its worker.
pub(super) struct Engine {
    world: Arc<World>,
    database: Arc<CaseDatabase>,
    store: Store,
    scheduler: SchedulerSteps,
    worker: WorkerSteps,
    running: Vec<Running>,
    /// The names of the jobs in their runs, with the jobs that called the workflows of these runs.
    names: HashMap<i64, (String, Option<i64>)>,
    /// The run of the case.
    run_id: i64,
}

/// An attempt that runs.
struct Running {
    begun: BegunAttempt,
    ends_at_ms: i64,
    /// When the timeout of its job is over.
    timeout_at_ms: Option<i64>,
}

/// The process of one worker exists. Those of the workers before it died with their engines.
struct OneWorker {
    id: i64,
}

impl WorkerProcesses for OneWorker {
    fn liveness(&self, worker: &Worker, _host_scope: HostScope) -> Liveness {
        if worker.id == self.id { Liveness::Alive } else { Liveness::Gone }
    }

    fn kill_orphans(&self, _worker: &Worker, _attempts: &[(i64, i64)]) -> bool {
        true
    }
}

/// The options of a worker that can execute all jobs of a workflow and of those that it calls.
fn able_to_execute(workflow: &Workflow) -> WorkerOptions {
    let jobs = || workflow.workflows.iter().chain([workflow]).flat_map(|workflow| &workflow.jobs);
    let capabilities: BTreeSet<&String> = jobs().flat_map(|job| &job.requires).collect();
    WorkerOptions {
        threads: THREADS_MAX,
        lease_ms: LEASE_MS,
        capabilities: capabilities.into_iter().cloned().collect(),
        code_version: jobs().map(|job| job.code_version).max().unwrap_or(0),
        ..WorkerOptions::default()
    }
}

impl Engine {
    /// Opens the database of the case and registers a worker, which can execute all jobs of the workflow.
    pub(super) fn open(
        path: &Path,
        world: &Arc<World>,
        workflow: &Workflow,
        lifespan: Lifespan,
    ) -> Result<Engine> {
        let database = Arc::new(CaseDatabase::open(path, lifespan)?);
        let random = Random::from_seed(1);
        let store = Store::new(Arc::clone(&database) as Arc<dyn Database>, world.clock().clone(), random)
            .with_files(RunFiles::beside(path));
        let outside = Arc::clone(world);
        let ends: Arc<FakeEnds> = Arc::new(move |attempt: &Attempt| {
            let job = attempt.job();
            outside.end((job.id, attempt.number()), &job.kind)
        });
        let worker = WorkerSteps::register(&store, &Handlers::fakes(&ends), able_to_execute(workflow))?;
        let scheduler = SchedulerSteps::new(&store, Arc::new(OneWorker { id: worker.id() }));
        world.forget_attempts();
        database.begin_counting();
        let world = Arc::clone(world);
        Ok(Engine {
            world,
            database,
            store,
            scheduler,
            worker,
            running: Vec::new(),
            names: HashMap::new(),
            run_id: 0,
        })
    }

    pub(super) fn world(&self) -> &Arc<World> {
        &self.world
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    pub(super) fn commits(&self) -> u64 {
        self.database.commits()
    }

    pub(super) fn is_dead(&self) -> bool {
        self.database.is_dead()
    }

    /// Submits the run of the case, or finds it. The variables of the case are set before.
    pub(super) fn submit(&mut self, run: &NewRun) -> Result<()> {
        let is_new = self.store.runs().list(&RunFilter::newest(1))?.rows.is_empty();
        if is_new {
            for (name, value) in &self.world.case().variables {
                self.store.variables().set(name, &value.to_string())?;
            }
        }
        self.run_id = self.store.runs().submit(run.clone())?.run_id;
        Ok(())
    }

    pub(super) fn run_id(&self) -> i64 {
        self.run_id
    }

    /// Moves the clock.
    pub(super) fn jump_to(&self, at_ms: i64) {
        let clock = self.world.clock();
        // Something that is due and was not done is tried again a little later.
        clock.advance_ms((at_ms - clock.now_ms()).max(1));
    }

    /// Does everything that is due now.
    pub(super) fn settle(&mut self) -> std::result::Result<Settled, CaseError> {
        for _round in 0..ROUNDS_MAX {
            let commits_before = self.database.commits();
            self.scheduler.step();
            self.worker.poll_cancellations();
            self.worker.stop_late_attempts();
            self.claim()?;
            let has_moved = self.begin_attempts()? | self.end_attempts() | self.act_for_others()?;
            if self.is_dead() {
                return Err(CaseError::Endless("the engine has died".to_owned()));
            }
            if !has_moved && self.database.commits() == commits_before {
                return Ok(self.next()?);
            }
        }
        Err(CaseError::Endless(format!("more than {ROUNDS_MAX} rounds of work at one instant")))
    }

    fn claim(&mut self) -> Result<()> {
        for _turn in 0..ROUNDS_MAX {
            if self.worker.dispatch()? != NextStep::Now {
                break;
            }
        }
        Ok(())
    }

    fn begin_attempts(&mut self) -> Result<bool> {
        let mut has_begun = false;
        while let Some(begun) = self.worker.begin() {
            has_begun = true;
            let now_ms = self.world.clock().now_ms();
            let job = begun.attempt().job();
            let (id, number) = (job.id, begun.attempt().number());
            let ended = number - 1 - self.interrupted(id, number)?;
            let timeout_at_ms = job.timeout_ms.map(|timeout_ms| now_ms.saturating_add(timeout_ms));
            let name = self.name(id)?;
            let takes_ms = self.world.begin(&name, (id, number), ended, begun.longest_ms());
            self.running.push(Running { begun, ends_at_ms: now_ms.saturating_add(takes_ms), timeout_at_ms });
        }
        Ok(has_begun)
    }

    /// How many of the attempts before this one were interrupted. The job itself counts them anew after each round of `repeat`.
    fn interrupted(&self, job_id: i64, before: i64) -> Result<i64> {
        if before == 1 {
            return Ok(0);
        }
        let attempts = self.store.jobs().attempts(job_id)?;
        let is_earlier = |attempt: &&windlass_engine::store::Attempt| {
            attempt.attempt < before && attempt.outcome == INTERRUPTED
        };
        Ok(attempts.iter().filter(is_earlier).count() as i64)
    }

    /// Ends the attempts whose time has come, and those that are asked to stop.
    fn end_attempts(&mut self) -> bool {
        let now_ms = self.world.clock().now_ms();
        let is_over = |running: &mut Running| {
            running.ends_at_ms <= now_ms || running.begun.attempt().stop().cause().is_some()
        };
        let over: Vec<Running> = self.running.extract_if(.., is_over).collect();
        let has_ended = !over.is_empty();
        for running in over {
            self.worker.end(running.begun);
        }
        has_ended
    }

    /// The jobs that wait, the newest ones. The database has no others than those of the case.
    pub(super) fn waiting_jobs(&self) -> Result<Vec<Job>> {
        let filter = JobFilter { statuses: vec![JobStatus::Waiting], ..JobFilter::newest(PAGE_MAX) };
        Ok(self.store.jobs().list_full(&filter)?.rows)
    }

    /// What comes next.
    fn next(&mut self) -> Result<Settled> {
        let run = self.store.runs().get(self.run_id)?;
        match run.status {
            RunStatus::Successful | RunStatus::Failed | RunStatus::Cancelled => return Ok(Settled::Over),
            RunStatus::Pending | RunStatus::Running => {}
        }
        let attempts =
            self.running.iter().flat_map(|running| [Some(running.ends_at_ms), running.timeout_at_ms]);
        let mut next: Vec<i64> = attempts.flatten().collect();
        next.extend(self.store.for_scheduler().next_due()?);
        next.extend(self.next_from_outside()?);
        Ok(next.into_iter().min().map_or(Settled::Stuck, Settled::NextAt))
    }

    /// The name of a job, after that of the job that called its workflow.
    pub(super) fn name(&mut self, job_id: i64) -> Result<String> {
        let mut parts = Vec::new();
        let mut next = Some(job_id);
        while let Some(job_id) = next {
            let (name, parent) = self.own_name(job_id)?;
            parts.push(name);
            next = parent;
        }
        parts.reverse();
        Ok(parts.join("/"))
    }

    /// The name of a job in its run, and the job that called the workflow of the run.
    fn own_name(&mut self, job_id: i64) -> Result<(String, Option<i64>)> {
        if let Some(known) = self.names.get(&job_id) {
            return Ok(known.clone());
        }
        let job = self.store.jobs().get(job_id)?;
        let parent = match job.run_id {
            Some(run_id) if run_id != self.run_id => self.store.runs().get(run_id)?.parent_job_id,
            Some(_) | None => None,
        };
        let known = (job.name.unwrap_or(job.kind), parent);
        self.names.insert(job_id, known.clone());
        Ok(known)
    }
}
