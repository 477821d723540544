//! Random workflows and jobs to submit, and the same rules for the oracle.

use fastrand::Rng;
use windlass_engine::store::NewJob;
use windlass_workflow::model::{Concurrency, OnFull};
use windlass_workflow::{Job, OnInterrupt, Workflow};

use crate::oracle::{Key, Script};

/// The queues of the simulation: one without rules, and one for each rule.
pub const PLAIN: &str = "plain";
pub const NARROW: &str = "narrow";
pub const RATED: &str = "rated";
pub const FIFO: &str = "fifo";
pub const QUEUES: [&str; 5] = [PLAIN, PLAIN, NARROW, RATED, FIFO];

/// The settings of a job.
#[derive(Debug, Clone)]
pub struct JobRules {
    /// Empty for a standalone job.
    pub name: String,
    pub kind: String,
    pub queue: String,
    pub priority: i64,
    pub max_attempts: i64,
    pub max_interruptions: i64,
    pub fails_when_interrupted: bool,
    pub allow_failure: bool,
    pub delay_ms: i64,
    pub factor: f64,
    pub max_delay_ms: i64,
    pub jitter: f64,
    pub requires: Vec<String>,
    pub code_version: i64,
    pub key: Option<Key>,
    pub unique_key: Option<String>,
    pub script: Script,
}

/// A random graph of up to eleven jobs. A job needs only jobs before it.
pub fn workflow(chance: &mut Rng) -> Workflow {
    let (size, shape) = (chance.usize(1..12), chance.u8(0..4));
    let needs: Vec<Vec<usize>> = (0..size)
        .map(|index| match shape {
            // A chain, a tree, a sparse graph, or a dense graph.
            0 => index.checked_sub(1).into_iter().collect(),
            1 => index.checked_sub(1).map(|before| before / 2).into_iter().collect(),
            2 => (0..index).filter(|_parent| chance.u8(0..5) == 0).collect(),
            _ => (0..index).filter(|_parent| chance.u8(0..2) == 0).collect(),
        })
        .collect();
    let mut workflow = Workflow::graph(format!("w{}", chance.u8(..)), needs);
    for job in &mut workflow.jobs {
        rule_job(job, chance);
    }
    if chance.u8(0..4) == 0 {
        workflow.timeout_ms = Some(chance.i64(1..200) * 100);
    }
    workflow
}

fn rule_job(job: &mut Job, chance: &mut Rng) {
    job.retry.max_attempts = chance.i64(1..4);
    job.retry.delay_ms = chance.i64(0..30) * 100;
    job.retry.max_delay_ms = 4_000;
    job.retry.jitter = if chance.bool() { 0.5 } else { 0.0 };
    job.allow_failure = chance.u8(0..4) == 0;
    job.max_interruptions = chance.i64(0..3);
    job.queue = pick(chance, &QUEUES).to_owned();
    job.priority = chance.i64(-1..2);
    job.code_version = i64::from(chance.u8(0..6) == 0);
    if chance.u8(0..6) == 0 {
        job.requires = vec!["gpu".to_owned()];
    }
    if chance.u8(0..5) == 0 {
        job.on_interrupt = OnInterrupt::Fail;
    }
    job.concurrency = any_key(chance);
}

/// A standalone job.
pub fn standalone_job(chance: &mut Rng, now_ms: i64) -> NewJob {
    let delay_ms = if chance.bool() { Some(chance.i64(-5..50) * 100) } else { None };
    NewJob {
        queue: pick(chance, &QUEUES).to_owned(),
        priority: chance.i64(-1..2),
        execute_after: delay_ms.map(|delay_ms| now_ms + delay_ms),
        max_attempts: chance.i64(1..4),
        unique_key: (chance.u8(0..6) == 0).then(|| format!("unique-{}", chance.u8(0..4))),
        code_version: i64::from(chance.u8(0..8) == 0),
        concurrency: any_key(chance),
        ..NewJob::new("noop", "null")
    }
}

/// A few keys that many jobs share. The limit belongs to the key; each job has its own `on_full`.
fn any_key(chance: &mut Rng) -> Option<Concurrency> {
    if chance.u8(0..4) != 0 {
        return None;
    }
    let (key, limit) = pick(chance, &[("one", 1), ("two", 2), ("two", 2)]);
    let on_full = pick(chance, &[OnFull::Wait, OnFull::Wait, OnFull::Skip, OnFull::CancelOldest]);
    Some(Concurrency { key: key.to_owned(), limit, on_full })
}

fn key_of(concurrency: Option<&Concurrency>) -> Option<Key> {
    concurrency.map(|Concurrency { key, limit, on_full }| Key {
        name: key.clone(),
        limit: *limit,
        on_full: *on_full,
    })
}

pub fn pick<T: Copy>(chance: &mut Rng, choices: &[T]) -> T {
    choices[chance.usize(0..choices.len())]
}

impl JobRules {
    /// The rules of a job in a workflow. `seed` is the run's.
    pub fn of_run(job: &Job, seed: u64) -> JobRules {
        JobRules {
            name: job.name.clone(),
            kind: "shell".to_owned(),
            queue: job.queue.clone(),
            priority: job.priority,
            max_attempts: job.retry.max_attempts,
            max_interruptions: job.max_interruptions,
            fails_when_interrupted: job.on_interrupt == OnInterrupt::Fail,
            allow_failure: job.allow_failure,
            delay_ms: job.retry.delay_ms,
            factor: job.retry.factor,
            max_delay_ms: job.retry.max_delay_ms,
            jitter: job.retry.jitter,
            requires: job.requires.clone(),
            code_version: job.code_version,
            key: key_of(job.concurrency.as_ref()),
            unique_key: None,
            script: Script::new(seed, &job.name),
        }
    }

    /// The rules of a standalone job. Settings that it does not have get the default.
    pub fn alone(job: &NewJob, seed: u64) -> JobRules {
        let like = Workflow::graph("defaults", vec![vec![]]).jobs.remove(0);
        JobRules {
            name: String::new(),
            kind: job.kind.clone(),
            queue: job.queue.clone(),
            priority: job.priority,
            max_attempts: job.max_attempts,
            requires: job.requires.clone(),
            code_version: job.code_version,
            key: key_of(job.concurrency.as_ref()),
            unique_key: job.unique_key.clone(),
            ..JobRules::of_run(&like, seed)
        }
    }
}
