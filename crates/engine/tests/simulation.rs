//! Random lives of the store: every operation in any order, under a clock and a chance that the test
//! owns. After each step nothing may break an invariant; in the end everything must come to an end.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use std::collections::HashMap;

use support::{Bench, graph, noop, request};
use windlass_engine::store::{ClaimRequest, ClaimedJob, Claims, NewJob, Scope, Selection};
use windlass_engine::transition::{Outcome, Repeat};
use windlass_workflow::OnInterrupt;

const STEPS: usize = 400;

struct World {
    bench: Bench,
    chance: fastrand::Rng,
    workers: Vec<i64>,
    held: HashMap<i64, (i64, ClaimedJob)>,
    /// Claims of each job so far: two at once would be two owners.
    runs: Vec<i64>,
}

#[test]
fn nothing_breaks_in_any_order() {
    let seeds: Vec<u64> = match std::env::var("WINDLASS_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..20).collect(),
    };
    for seed in seeds {
        println!("WINDLASS_SEED={seed}");
        let mut world = World {
            bench: Bench::new(),
            chance: fastrand::Rng::with_seed(seed),
            workers: Vec::new(),
            held: HashMap::new(),
            runs: Vec::new(),
        };
        for _ in 0..STEPS {
            world.step();
        }
        world.bench.assert_sound();
        world.run_out();
        world.bench.assert_sound();
    }
}

impl World {
    fn step(&mut self) {
        match self.chance.u8(0..100) {
            0..5 => self.submit(),
            5..15 => self.enqueue(),
            15..20 => self.workers.push(self.bench.worker()),
            20..45 => self.claim(),
            45..80 => self.finish(),
            80..84 => self.kill_a_worker(),
            84..88 => self.cancel(),
            88..91 => self.retry(),
            91..93 => self.stale_finish(),
            _ => {
                self.bench.clock.advance_ms(self.chance.i64(0..3_000));
                self.bench.store.promote_due().unwrap();
            }
        }
        if self.chance.u8(0..8) == 0 {
            self.bench.assert_sound();
        }
    }

    fn submit(&mut self) {
        let size = self.chance.usize(1..12);
        let needs =
            (0..size).map(|index| (0..index).filter(|_| self.chance.u8(0..3) == 0).collect()).collect();
        let mut workflow = graph(needs);
        for job in &mut workflow.jobs {
            job.retry.max_attempts = self.chance.i64(1..4);
            job.retry.jitter = 0.5;
            job.allow_failure = self.chance.u8(0..4) == 0;
            job.max_interruptions = self.chance.i64(0..3);
            job.priority = self.chance.i64(-1..2);
            if self.chance.u8(0..5) == 0 {
                job.on_interrupt = OnInterrupt::Fail;
            }
        }
        if self.chance.bool() {
            workflow.timeout_ms = Some(self.chance.i64(100..20_000));
        }
        self.runs.push(self.bench.submit(workflow));
    }

    fn enqueue(&mut self) {
        let now_ms = self.bench.clock.now_ms();
        let execute_after = self.chance.bool().then(|| now_ms + self.chance.i64(-500..5_000));
        self.bench.enqueue(NewJob { execute_after, max_attempts: self.chance.i64(1..4), ..noop() });
    }

    fn claim(&mut self) {
        let Some(worker_id) = self.chance.choice(&self.workers).copied() else { return };
        let limit = self.chance.usize(1..6);
        let claims = self.bench.store.claim(request(worker_id, Scope::Everything, limit)).unwrap();
        self.take_over(worker_id, claims);
    }

    fn take_over(&mut self, worker_id: i64, claims: Claims) {
        match claims {
            Claims::Fenced => self.workers.retain(|id| *id != worker_id),
            Claims::Jobs(jobs) => {
                for job in jobs {
                    let before = self.held.insert(job.id, (worker_id, job));
                    assert!(before.is_none(), "two owners: {before:?}");
                }
            }
        }
    }

    /// What a worker asks for with the results that it hands in: of any runs, and not always to start it at once.
    fn any_request(&mut self) -> Option<(i64, ClaimRequest)> {
        let worker_id = self.chance.choice(&self.workers).copied()?;
        let scope = match self.chance.u8(0..3) {
            0 => Scope::Runs(self.runs.iter().copied().filter(|_run_id| self.chance.bool()).collect()),
            _ => Scope::Everything,
        };
        let asked = request(worker_id, scope, self.chance.usize(0..6));
        Some((worker_id, ClaimRequest { idle: self.chance.usize(0..=asked.limit), ..asked }))
    }

    fn take_one(&mut self) -> Option<(i64, ClaimedJob)> {
        let mut ids: Vec<i64> = self.held.keys().copied().collect();
        ids.sort_unstable();
        let id = self.chance.choice(ids)?;
        self.held.remove(&id)
    }

    fn outcome(&mut self) -> Outcome {
        let error = || "no luck".to_owned();
        match self.chance.u8(0..12) {
            0..6 => Outcome::Successful { output: Some("7".to_owned()) },
            6..8 => Outcome::Failed { error: error(), repeat: Repeat::Allowed },
            8 => Outcome::Failed { error: error(), repeat: Repeat::Pointless },
            9 => Outcome::TimedOut { error: error() },
            10 => Outcome::Interrupted { error: error() },
            _ => Outcome::Unstarted,
        }
    }

    /// Several at once: children with more than one parent among them are promoted rightly.
    fn finish(&mut self) {
        let mut ends = Vec::new();
        for _ in 0..self.chance.usize(1..6) {
            if let Some((worker_id, job)) = self.take_one() {
                let outcome = self.outcome();
                ends.push((worker_id, job, outcome));
            }
        }
        let asked = self.any_request();
        let request = asked.as_ref().map(|(_worker_id, request)| request.clone());
        let (finished, claims) = self.bench.finish_all_and_claim(&ends, request);
        assert!(finished.conflicts.is_empty(), "the owner is believed");
        if let Some((worker_id, _request)) = asked {
            self.take_over(worker_id, claims);
        }
        // What never started and was claimed anew is the same attempt.
        ends.retain(|(_worker_id, job, _outcome)| {
            self.held.get(&job.id).is_none_or(|(_owner, held)| held.facts.attempt != job.facts.attempt)
        });
        let repeated = self.bench.finish_all(&ends);
        assert_eq!(repeated.conflicts.len(), ends.len(), "and only once");
    }

    /// The result of an attempt that was taken back.
    fn stale_finish(&mut self) {
        let Some((worker_id, mut job)) = self.take_one() else { return };
        job.facts.attempt += 1;
        let finished = self.bench.finish(worker_id, &job, support::success());
        assert_eq!(finished.conflicts, [job.id]);
        job.facts.attempt -= 1;
        self.held.insert(job.id, (worker_id, job));
    }

    fn kill_a_worker(&mut self) {
        let Some(worker_id) = self.chance.choice(&self.workers).copied() else { return };
        let held = self.held.values().filter(|(owner, _)| *owner == worker_id).count() as i64;
        let rescued = self.bench.store.rescue(vec![(worker_id, 0)]).unwrap();
        assert_eq!((rescued.fenced, rescued.jobs), (1, held), "all that it held, and nothing else");
        self.held.retain(|_, (owner, _)| *owner != worker_id);
        self.workers.retain(|id| *id != worker_id);
    }

    fn cancel(&mut self) {
        if let Some(run_id) = self.chance.choice(&self.runs).copied() {
            let _over_already = self.bench.store.cancel_run(run_id);
        }
    }

    fn retry(&mut self) {
        let Some(run_id) = self.chance.choice(&self.runs).copied() else { return };
        let selection = if self.chance.bool() {
            Selection::Failed
        } else {
            Selection::From(format!("j{}", self.chance.u8(0..12)))
        };
        let _not_over_or_nothing_to_do = self.bench.store.retry_run(run_id, selection);
    }

    /// With one healthy worker everything ends.
    fn run_out(&mut self) {
        let dead: Vec<(i64, i64)> = self.workers.drain(..).map(|id| (id, 0)).collect();
        self.bench.store.rescue(dead).unwrap();
        let worker_id = self.bench.worker();
        for _ in 0..10_000 {
            self.bench.clock.advance_ms(300_000);
            self.bench.store.promote_due().unwrap();
            for job in self.bench.claim(worker_id, 100) {
                self.bench.finish(worker_id, &job, support::success());
            }
            if self.bench.store.active_jobs().unwrap() == 0 {
                break;
            }
        }
        assert!(self.bench.store.unfinished_runs().unwrap().is_empty(), "every run has ended");
    }
}
