//! The scheduler: each step is one call of the store.

use std::collections::BTreeSet;

use windlass_engine::store::{NewRegistration, OccurrenceStatus, Scope};
use windlass_workflow::Workflow;
use windlass_workflow::model::{Catchup, Overlap, Rule, Schedule};

use crate::oracle::{Run, ScheduleRules};
use crate::world::World;

/// How often the schedules occur.
const EVERY_MS: i64 = 4_000;
/// More occurrences than a simulation has.
const ALL: i64 = 100_000;
/// How many rounds it may take until everything has finished.
const LAST_ROUNDS: usize = 2_000;
/// Workers that execute the remaining jobs: one that can execute everything, and others.
const LAST_WORKERS: usize = 3;
/// Longer than any backoff and any interval of a rate.
const LONG_MS: i64 = 20_000;

impl World {
    pub fn scheduler_step(&mut self) {
        match self.chance.u8(0..16) {
            0..4 => self.promote_due(),
            4..6 => self.apply_reports(),
            6..8 => self.admit_waiting(),
            8 => self.reconcile(),
            9 => self.decide_waiting(),
            10..12 => self.read_workers(),
            12..14 => self.rescue(),
            _ => self.fire_one(),
        }
    }

    pub fn promote_due(&mut self) {
        self.call(
            "the scheduler promotes due jobs",
            |store| store.for_scheduler().promote_due().map(|due| (due.promoted, due.expired)),
            |oracle, now_ms| Ok(oracle.promote_due(now_ms)),
        );
    }

    pub fn apply_reports(&mut self) {
        self.call(
            "the scheduler applies reports",
            |store| store.for_scheduler().apply_reports(),
            |oracle, now_ms| Ok(oracle.apply_reports(now_ms)),
        );
    }

    /// Each key has a transaction of its own, so no answer is lost here.
    pub fn admit_waiting(&mut self) {
        self.trail.note("the scheduler admits jobs that wait for keys".to_owned());
        assert_eq!(self.store.for_scheduler().admit_waiting("").unwrap(), "", "all keys were handled");
        self.oracle.admit_waiting();
    }

    pub fn decide_waiting(&mut self) {
        self.call(
            "the scheduler decides about waiting jobs",
            |store| store.for_scheduler().decide_waiting(),
            |oracle, now_ms| Ok(oracle.decide_waiting(now_ms)),
        );
    }

    /// Windlass itself never leaves a run that needs repair.
    fn reconcile(&mut self) {
        assert_eq!(self.store.for_scheduler().reconcile_step(0).unwrap().repaired, 0);
    }

    /// Registers one workflow with a schedule for each overlap rule of the simulation.
    pub fn register_schedules(&mut self) {
        let schedules = [Overlap::Allow, Overlap::Skip, Overlap::QueueAll].map(|overlap| Schedule {
            name: format!("{overlap:?}"),
            rule: Rule::EveryMs(EVERY_MS),
            timezone: "UTC".to_owned(),
            overlap,
            catchup: Catchup::All,
            catchup_window_ms: None,
            catchup_max: ALL,
            start_ms: None,
            end_ms: None,
            jitter_ms: 0,
            params: Default::default(),
        });
        let graph = Workflow::graph("fired", vec![vec![], vec![0]]);
        let workflow = Workflow { schedules: schedules.into(), ..graph };
        self.store
            .registrations()
            .apply(NewRegistration { workflow: workflow.clone(), file: None, dir: None })
            .unwrap();
        self.fired_workflow = Some(workflow);
        for schedule in self.store.schedules().list().unwrap() {
            let made_at_ms = schedule.created_at;
            let rules = ScheduleRules { definition: schedule.definition, every_ms: EVERY_MS, made_at_ms };
            self.oracle.schedules.insert(schedule.id, rules);
        }
    }

    fn fire_one(&mut self) {
        let due = self.store.for_scheduler().schedules_to_fire(10, &[]).unwrap();
        if let Some(schedule_id) = self.chance.choice(due) {
            self.fire(schedule_id);
        }
    }

    /// Fires a schedule. Its new runs are read from the tables, because the answer may be lost.
    fn fire(&mut self, schedule_id: i64) {
        let (workflow, seed) = (self.fired_workflow.clone().expect("it is registered"), self.chance.u64(..));
        let rows = self.rows();
        let mut again = false;
        self.call(
            format!("the scheduler fires schedule {schedule_id}"),
            |store| {
                let fired = store.for_scheduler().fire(schedule_id)?;
                again = fired.again;
                Ok(fired.started.into_iter().map(|(_run, at_ms)| at_ms).collect::<Vec<_>>())
            },
            |oracle, now_ms| {
                let known: BTreeSet<i64> = oracle.runs.keys().copied().collect();
                let mut started = Vec::new();
                for (id, scheduled_for) in rows.runs_of_schedule(schedule_id) {
                    if known.contains(&id) {
                        continue;
                    }
                    let run = Run {
                        timeout_ms: workflow.timeout_ms,
                        occasion: Some((schedule_id, scheduled_for)),
                        ..Run::new(id)
                    };
                    oracle.submit(run, &workflow, &rows.jobs_of(id), seed ^ id.unsigned_abs(), now_ms);
                    started.push(scheduled_for);
                }
                Ok(started)
            },
        );
    }

    /// Each occurrence either has a run or is recorded as skipped.
    pub fn check_schedules(&mut self) {
        for (schedule_id, rules) in &self.oracle.schedules {
            let mut decided = self.oracle.fired(*schedule_id);
            for status in [OccurrenceStatus::Waiting, OccurrenceStatus::Skipped] {
                let without_run = self.store.schedules().occurrences(*schedule_id, status, ALL).unwrap();
                decided.extend(without_run.iter().map(|occurrence| occurrence.scheduled_for));
            }
            decided.sort_unstable();
            let expected: Vec<i64> = rules.occurrences(self.ended_at_ms).into_iter().collect();
            assert_eq!(decided, expected, "the occurrences of schedule {schedule_id}, each once");
        }
    }

    /// From now on no schedule has new occurrences. Due ones are still decided.
    fn end_schedules(&mut self) {
        let now_ms = self.clock.now_ms();
        let mut workflow = self.fired_workflow.clone().expect("it is registered");
        workflow.schedules.iter_mut().for_each(|schedule| schedule.end_ms = Some(now_ms + 1));
        self.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
        self.ended_at_ms = now_ms;
    }

    /// Everybody stops, and healthy workers execute what is left.
    pub fn finish_everything(&mut self) {
        self.workers.clear();
        self.outside.clear();
        self.end_schedules();
        self.resume_all();
        for _turn in 0..LAST_ROUNDS {
            self.last_round();
            let is_over = self.oracle.jobs.values().all(|job| job.is_over);
            if is_over && self.store.for_scheduler().schedules_to_fire(10, &[]).unwrap().is_empty() {
                return;
            }
            self.clock.advance_ms(LONG_MS);
        }
        panic!("after {LAST_ROUNDS} rounds not everything has finished");
    }

    fn last_round(&mut self) {
        while self.workers.len() < LAST_WORKERS {
            self.register_worker();
        }
        let first = &mut self.workers[0];
        first.scope = Scope::Everything;
        (first.worker_capabilities.capabilities, first.worker_capabilities.code_version) =
            (vec!["gpu".to_owned()], 1);
        let is_there = |id: &i64| self.workers.iter().any(|worker| worker.id == *id);
        let gone = self.oracle.workers.iter().filter(|(id, _worker)| !is_there(id));
        let dead = gone.map(|(id, worker)| (*id, worker.heartbeats)).collect();
        self.rescue_workers(dead);
        self.apply_reports();
        self.admit_waiting();
        self.decide_waiting();
        self.promote_due();
        self.fire_one();
        for index in 0..LAST_WORKERS {
            self.execute_all(index);
            self.oracle.compare(&self.store);
        }
        self.oracle.check_overlaps();
    }
}
