//! Everything at once: workers claim and finish, schedulers run, and people cancel, retry, register and prune. No
//! limit is ever exceeded, no error is returned except conflicts, and in the end everything is finished.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use support::{Bench, failure, finish, graph, noop, request, success};
use windlass_engine::store::{
    Backfill, ClaimRequest, ClaimedJob, Claims, JobFilter, NewJob, NewRegistration, Order, Prune,
    QueueLimits, Rate, RetrySelection, RunFilter, Scope, Setting,
};
use windlass_engine::transition::{Outcome, after_attempt};
use windlass_engine::{Error, JobStatus, Result, WorkerStatus};
use windlass_workflow::kinds::call::Call;
use windlass_workflow::model::{Catchup, Concurrency, OnFull, Overlap, Rule, Schedule as Definition};
use windlass_workflow::{Job, OnInterrupt, Workflow};

const STEPS_VARIABLE: &str = "WINDLASS_STEPS";
const STEPS: usize = 100;
const MAX_RUNNING: i64 = 3;
const KEY_LIMIT: i64 = 2;
const QUEUES: [&str; 4] = ["default", "narrow", "line", "slow"];

fn steps() -> usize {
    std::env::var(STEPS_VARIABLE).map_or(STEPS, |steps| steps.parse().unwrap())
}

/// A conflict with another thread is no failure.
fn allowed<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Conflict { .. } | Error::NotFound { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

fn concurrency(chance: &mut fastrand::Rng) -> Option<Concurrency> {
    let on_full = match chance.u8(0..6) {
        0 => OnFull::Skip,
        1 => OnFull::CancelOldest,
        2 | 3 => OnFull::Wait,
        _ => return None,
    };
    Some(Concurrency { key: format!("key-{}", chance.u8(0..3)), limit: KEY_LIMIT, on_full })
}

fn run_concurrency(key: &str, chance: &mut fastrand::Rng) -> Option<Concurrency> {
    let on_full = [OnFull::Wait, OnFull::Wait, OnFull::Skip, OnFull::CancelOldest][chance.usize(0..4)];
    chance.bool().then(|| Concurrency { key: key.to_owned(), limit: KEY_LIMIT, on_full })
}

fn workflow(chance: &mut fastrand::Rng) -> Workflow {
    let size = chance.usize(1..6);
    let needs = (0..size).map(|index| (0..index).filter(|_| chance.u8(0..2) == 0).collect()).collect();
    let mut workflow = graph(needs);
    for job in &mut workflow.jobs {
        job.retry.max_attempts = chance.i64(1..3);
        job.retry.delay_ms = 50;
        job.queue = QUEUES[chance.usize(0..QUEUES.len())].to_owned();
        job.priority = chance.i64(-1..2);
        job.allow_failure = chance.u8(0..4) == 0;
        if chance.u8(0..5) == 0 {
            job.on_interrupt = OnInterrupt::Fail;
        }
        job.concurrency = concurrency(chance);
    }
    if chance.u8(0..3) == 0 {
        call_a_workflow(&mut workflow, chance);
    }
    // A run with one of these keys waits for no run of the same key below another, so they can't wait in a circle.
    workflow.concurrency = run_concurrency("top", chance);
    for called in &mut workflow.workflows {
        called.concurrency = run_concurrency("called", chance);
    }
    workflow
}

/// Makes a job a call of a workflow of two jobs, of which the last may be a call too.
fn call_a_workflow(workflow: &mut Workflow, chance: &mut fastrand::Rng) {
    workflow.workflows = vec![graph(vec![vec![], vec![0]]), graph(vec![vec![]])];
    let call = |job: &mut Job, called: usize| {
        job.action = Call { called: Some(called), ..Call::of("child") }.into();
        (job.concurrency, job.queue) = (None, "default".to_owned());
    };
    let job = chance.usize(0..workflow.jobs.len());
    call(&mut workflow.jobs[job], 0);
    if chance.bool() {
        call(&mut workflow.workflows[0].jobs[1], 1);
    }
}

fn schedule(name: &str, chance: &mut fastrand::Rng) -> Definition {
    let overlaps = [
        Overlap::Skip,
        Overlap::QueueOne,
        Overlap::QueueAll,
        Overlap::Allow,
        Overlap::CancelRunning,
        Overlap::TerminateRunning,
    ];
    Definition {
        name: name.to_owned(),
        rule: Rule::EveryMs(chance.i64(1..4) * 1_000),
        timezone: "UTC".to_owned(),
        overlap: overlaps[chance.usize(0..overlaps.len())],
        catchup: Catchup::All,
        catchup_window_ms: None,
        catchup_max: 20,
        start_ms: None,
        end_ms: None,
        jitter_ms: if chance.bool() { 500 } else { 0 },
        params: serde_json::Map::new(),
    }
}

struct World {
    bench: Bench,
    is_over: AtomicBool,
}

impl World {
    /// A worker that claims and finishes with all outcomes. Sometimes it dies.
    fn run_worker(&self, mut chance: fastrand::Rng) {
        let store = &self.bench.store;
        let mut held: Vec<ClaimedJob> = Vec::new();
        let mut worker = self.bench.worker();
        while !self.is_over.load(Ordering::SeqCst) {
            let mut finishes = Vec::new();
            for job in held.split_off(held.len().min(chance.usize(0..3))) {
                let outcome = match chance.u8(0..8) {
                    0 => failure(),
                    1 => Outcome::Interrupted { error: "?".to_owned() },
                    2 => Outcome::Unstarted,
                    3 => {
                        self.report(worker, &job, ["SUCCESSFUL", "FAILED"][chance.usize(0..2)]);
                        continue;
                    }
                    _ => success(),
                };
                let transition = after_attempt(&job.retry_state, outcome.clone(), chance.f64());
                finishes.push(windlass_engine::store::Finish { transition, ..finish(worker, &job, outcome) });
            }
            let limit = chance.usize(0..6);
            let ask = ClaimRequest {
                idle_threads: chance.usize(0..=limit),
                ..request(worker, Scope::Everything, limit)
            };
            match store.for_workers().finish_and_claim(finishes, Some(ask)).unwrap().1 {
                Claims::Jobs(jobs) => held.extend(jobs),
                Claims::Fenced => {
                    held.clear();
                    worker = self.bench.worker();
                }
            }
            if chance.u8(0..20) == 0 {
                store.for_scheduler().rescue(vec![(worker, 0)]).unwrap();
            }
        }
        store.for_workers().set_status(worker, WorkerStatus::Stopped).unwrap();
    }

    fn report(&self, worker: i64, job: &ClaimedJob, status: &str) {
        self.bench.raw().execute(&format!(
            "UPDATE jobs SET status = '{status}' WHERE id = {} AND status = 'RUNNING' AND attempt = {}
             AND worker_id = {worker}",
            job.id, job.retry_state.attempt
        ));
    }

    fn run_scheduler(&self, mut chance: fastrand::Rng) {
        let store = &self.bench.store;
        let mut cursor = String::new();
        while !self.is_over.load(Ordering::SeqCst) {
            self.bench.clock.advance_ms(chance.i64(-20..200));
            store.for_scheduler().promote_due().unwrap();
            store.for_scheduler().apply_reports().unwrap();
            store.for_scheduler().reconcile_step(0).unwrap();
            cursor = store.for_scheduler().admit_waiting(&cursor).unwrap();
            store.for_scheduler().admit_runs("").unwrap();
            store.for_scheduler().decide_waiting().unwrap();
            store.for_scheduler().stop_calls().unwrap();
            store.for_scheduler().end_calls().unwrap();
            for id in store.for_scheduler().schedules_to_fire(100, &[]).unwrap() {
                allowed(store.for_scheduler().fire(id));
            }
            store.for_scheduler().rescue(Vec::new()).unwrap();
            let before_ms = self.bench.clock.now_ms() - 3_000;
            store
                .for_scheduler()
                .prune_step(Prune { before_ms: Some(before_ms), keep_runs: Some(30), ..Prune::default() })
                .unwrap();
        }
    }

    /// Checks the tables all the time.
    fn check_tables(&self) {
        let sql = self.bench.raw();
        let check = |query: &str| {
            let broken = sql.rows(query, |row| row.get::<_, String>(0));
            assert!(broken.is_empty(), "{broken:?}");
        };
        while !self.is_over.load(Ordering::SeqCst) {
            self.bench.assert_sound();
            check(&format!(
                "SELECT queue || ' ' || count(*) FROM jobs WHERE status = 'RUNNING' GROUP BY queue
                 HAVING (queue = 'narrow' AND count(*) > {MAX_RUNNING}) OR (queue = 'line' AND count(*) > 1)"
            ));
            check(&format!(
                "SELECT concurrency_key || ' ' || count(*) FROM jobs
                 WHERE status IN ('PENDING', 'RUNNING') AND concurrency_key IS NOT NULL
                 GROUP BY concurrency_key HAVING count(*) > {KEY_LIMIT}"
            ));
            check(&format!(
                "SELECT concurrency_key || ' ' || count(*) FROM runs
                 WHERE status IN ('PENDING', 'RUNNING') AND concurrency_key IS NOT NULL AND waits_for IS NULL
                 GROUP BY concurrency_key HAVING count(*) > {KEY_LIMIT}"
            ));
        }
    }

    fn step(&self, chance: &mut fastrand::Rng) {
        let store = &self.bench.store;
        let run = |chance: &mut fastrand::Rng| {
            let runs = store.runs().list(&RunFilter::newest(50)).unwrap().rows;
            (!runs.is_empty()).then(|| runs[chance.usize(0..runs.len())].id)
        };
        match chance.u8(0..12) {
            0 | 1 => {
                self.bench.submit(workflow(chance));
            }
            2 => {
                let queue = QUEUES[chance.usize(0..QUEUES.len())].to_owned();
                let concurrency = concurrency(chance);
                store.jobs().enqueue(vec![NewJob { queue, concurrency, ..noop() }; 3]).unwrap();
            }
            3 => {
                run(chance).map(|id| allowed(store.runs().cancel(id)));
            }
            4 => {
                let jobs = store.jobs().list(&JobFilter::newest(50)).unwrap().rows;
                if !jobs.is_empty() {
                    allowed(store.jobs().cancel(jobs[chance.usize(0..jobs.len())].id));
                }
            }
            5 | 6 => {
                let selection = if chance.bool() {
                    RetrySelection::Failed
                } else {
                    RetrySelection::From("j0".to_owned())
                };
                run(chance).map(|id| allowed(store.runs().retry(id, selection)));
            }
            7 => {
                let schedules = ["a", "b"].map(|name| schedule(name, chance));
                let schedules = schedules.into_iter().take(chance.usize(0..3)).collect();
                let workflow = Workflow { name: "fired".to_owned(), schedules, ..workflow(chance) };
                allowed(store.registrations().apply(NewRegistration { workflow, file: None, dir: None }));
            }
            8 => {
                allowed(match chance.u8(0..5) {
                    0 => store.registrations().remove("fired"),
                    1 => store.registrations().pause("fired").map(drop),
                    _ => store.registrations().resume("fired").map(drop),
                });
            }
            9 => {
                let name = ["a", "b", "c"][chance.usize(0..3)];
                allowed(store.schedules().add("fired", schedule(name, chance)));
            }
            10 => {
                for schedule in store.schedules().list().unwrap() {
                    // The clock is sometimes set back, and a backfill of the future is refused.
                    let to_ms = self.bench.clock.now_ms() - 1_000;
                    let backfill =
                        Backfill { schedule_id: schedule.id, from_ms: to_ms - 5_000, to_ms, at_once: 2 };
                    match chance.u8(0..5) {
                        0 => allowed(store.schedules().remove(schedule.id)),
                        1 => allowed(store.schedules().pause(schedule.id)).map(drop),
                        2 => allowed(store.schedules().resume(schedule.id)).map(drop),
                        3 => allowed(store.schedules().backfill(backfill)).map(drop),
                        _ => allowed(store.schedules().fire(schedule.id)).map(drop),
                    };
                }
            }
            _ => {
                let rate = Setting::Set(Rate { jobs: chance.i64(5..50), interval_ms: 500 });
                store.queues().limit("slow", QueueLimits { rate, ..QueueLimits::default() }).unwrap();
            }
        }
    }
}

#[test]
fn nothing_breaks_when_everything_runs_at_once() {
    let world = World { bench: Bench::new(), is_over: AtomicBool::new(false) };
    let store = &world.bench.store;
    let limit = |queue: &str, limits| store.queues().limit(queue, limits).unwrap();
    limit("narrow", QueueLimits { max_running: Setting::Set(MAX_RUNNING), ..QueueLimits::default() });
    limit("line", QueueLimits { order: Setting::Set(Order::Arrival), ..QueueLimits::default() });
    let seed = std::env::var("WINDLASS_SEED").map_or(7, |seed| seed.parse().unwrap());
    println!("WINDLASS_SEED={seed}");
    let mut chance = fastrand::Rng::with_seed(seed);
    std::thread::scope(|scope| {
        let world = &world;
        let mut everybody = vec![scope.spawn(|| world.check_tables())];
        for _worker in 0..3 {
            let chance = chance.fork();
            everybody.push(scope.spawn(|| world.run_worker(chance)));
        }
        for _scheduler in 0..2 {
            let chance = chance.fork();
            everybody.push(scope.spawn(|| world.run_scheduler(chance)));
        }
        let people: Vec<_> = (0..3)
            .map(|_person| {
                let mut chance = chance.fork();
                scope.spawn(move || (0..steps()).for_each(|_step| world.step(&mut chance)))
            })
            .collect();
        let ended: Vec<_> = people.into_iter().map(|person| person.join()).collect();
        world.is_over.store(true, Ordering::SeqCst);
        for one in everybody {
            one.join().unwrap();
        }
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    run_all_jobs(&world.bench);
}

/// Submits nothing more, and executes everything that is there.
fn run_all_jobs(bench: &Bench) {
    let store = &bench.store;
    allowed(store.registrations().remove("fired"));
    let worker = bench.worker();
    for _round in 0..10_000 {
        bench.clock.advance_ms(500);
        store.for_scheduler().rescue(Vec::new()).unwrap();
        store.for_scheduler().apply_reports().unwrap();
        store.for_scheduler().promote_due().unwrap();
        store.for_scheduler().admit_waiting("").unwrap();
        store.for_scheduler().admit_runs("").unwrap();
        store.for_scheduler().decide_waiting().unwrap();
        store.for_scheduler().stop_calls().unwrap();
        store.for_scheduler().end_calls().unwrap();
        let jobs = bench.claim(worker, 100);
        let ends: Vec<_> = jobs.into_iter().map(|job| (worker, job, success())).collect();
        bench.finish_all(&ends);
        let left = store.upkeep().stats().unwrap().jobs;
        let unfinished = [
            JobStatus::Blocked,
            JobStatus::Scheduled,
            JobStatus::Pending,
            JobStatus::Running,
            JobStatus::Waiting,
        ];
        if unfinished.iter().all(|status| left.of(*status) == 0) {
            bench.assert_sound();
            return;
        }
    }
    bench.assert_sound();
    panic!("jobs do not end: {:?}", store.upkeep().stats().unwrap());
}
