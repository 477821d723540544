//! What stays when the engine dies: the clock, the fakes with what they did, and what others did.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::Clock;
use windlass_worker::{FakeEnd, HowItEnds};

use crate::file::{Approval, Case, Event, FakeAttempt, Others, without_items};

/// The world around the engine of a case.
pub(super) struct World {
    case: Case,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How the attempts that run will end, by the job and the number of the attempt.
    ends: HashMap<(i64, i64), FakeEnd>,
    /// How far the fakes of a job are used, by its name.
    progress: BTreeMap<String, Progress>,
    /// The attempts of a job that have begun, by its name: the ids of its row, and their numbers.
    begun: BTreeMap<String, BTreeSet<(i64, i64)>>,
    without_fake: BTreeSet<String>,
    /// How many of the events of the case were sent. They are sorted by their time.
    sent: usize,
    /// Whether the run was cancelled, if the case says so.
    was_cancelled: bool,
    /// When approvals began to wait, by the ids of their jobs. A job that calls a workflow again has new ones.
    asked_at_ms: BTreeMap<i64, i64>,
    /// The jobs whose approvals were decided.
    decided: BTreeSet<i64>,
}

/// How far the fakes of a job are used. A job that calls a workflow again has new jobs with the same names.
#[derive(Default)]
struct Progress {
    job_id: i64,
    /// The attempts of earlier jobs with the name.
    earlier: i64,
    /// The attempts of the job, without those that were interrupted.
    own: i64,
}

impl Progress {
    /// The number of the fake for an attempt.
    fn next(&mut self, job_id: i64, ended: i64) -> i64 {
        if self.job_id != job_id {
            *self = Progress { job_id, earlier: self.earlier + self.own, own: 0 };
        }
        self.own = self.own.max(ended + 1);
        self.earlier + ended
    }
}

impl World {
    pub(super) fn new(case: &Case) -> World {
        let mut case = case.clone();
        case.events.sort_by_key(|event| event.after_ms);
        World { clock: Clock::manual(case.now_ms), case, state: Mutex::default() }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn case(&self) -> &Case {
        &self.case
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins. `ended` is the number of attempts of the job that have ended by themselves; after the last fake of
    /// the job its attempts are like the last one. Returns how long it takes.
    pub(super) fn begin(&self, name: &str, key: (i64, i64), ended: i64, longest_ms: Option<i64>) -> i64 {
        let number = self.state().progress.entry(name.to_owned()).or_default().next(key.0, ended);
        let FakeAttempt { takes_ms, end } = self.fake(name, number);
        let mut state = self.state();
        state.begun.entry(name.to_owned()).or_default().insert(key);
        let (takes_ms, end) = match longest_ms {
            Some(longest_ms) if takes_ms >= longest_ms => {
                (longest_ms, FakeEnd { how: HowItEnds::NoAnswer, error: None, ..end })
            }
            Some(_) | None => (takes_ms, end),
        };
        state.ends.insert(key, end);
        takes_ms
    }

    fn fake(&self, name: &str, number: i64) -> FakeAttempt {
        let attempts = self.case.jobs.get(name).or_else(|| self.case.jobs.get(&without_items(name)));
        let index = usize::try_from(number).unwrap_or(0);
        let known = attempts.and_then(|attempts| attempts.get(index).or_else(|| attempts.last()));
        match (known, self.case.others) {
            (Some(attempt), _) => attempt.clone(),
            (None, Others::Succeed) => succeeding(),
            (None, Others::Refused) => {
                self.state().without_fake.insert(without_items(name));
                succeeding()
            }
        }
    }

    /// How an attempt ends. A job without a fake exits, and a request is answered.
    pub(super) fn end(&self, key: (i64, i64), kind: &str) -> FakeEnd {
        let end = self.state().ends.remove(&key).unwrap_or_else(|| succeeding().end);
        match (kind, &end.how) {
            ("http", HowItEnds::Exit(0)) => {
                FakeEnd { how: HowItEnds::Answer { status: 200, headers: BTreeMap::new() }, ..end }
            }
            (_, _) => end,
        }
    }

    /// The engine died, and nobody waits for the ends of its attempts.
    pub(super) fn forget_attempts(&self) {
        self.state().ends.clear();
    }

    /// The next event that was not sent, and when it is due.
    pub(super) fn next_event(&self, began_at_ms: i64) -> Option<(i64, Event)> {
        let event = self.case.events.get(self.state().sent)?.clone();
        Some((began_at_ms.saturating_add(event.after_ms), event))
    }

    pub(super) fn event_was_sent(&self) {
        self.state().sent += 1;
    }

    /// When the run is to be cancelled, if the case says so and it was not done yet.
    pub(super) fn cancels_at(&self, began_at_ms: i64) -> Option<i64> {
        let after_ms = self.case.cancel_after_ms.filter(|_after_ms| !self.state().was_cancelled)?;
        Some(began_at_ms.saturating_add(after_ms))
    }

    pub(super) fn run_was_cancelled(&self) {
        self.state().was_cancelled = true;
    }

    /// What the case decides about an approval: that of the item, or that of its group.
    pub(super) fn approval(&self, name: &str) -> Option<&Approval> {
        self.case.approvals.get(name).or_else(|| self.case.approvals.get(&without_items(name)))
    }

    /// A job waits for an approval. Returns when the case decides about it, if it does and did not yet.
    pub(super) fn decision_at(&self, job_id: i64, name: &str) -> Option<i64> {
        let approval = self.approval(name)?;
        let now_ms = self.clock.now_ms();
        let mut state = self.state();
        let asked_at_ms = *state.asked_at_ms.entry(job_id).or_insert(now_ms);
        (!state.decided.contains(&job_id)).then(|| asked_at_ms.saturating_add(approval.after_ms))
    }

    pub(super) fn was_decided(&self, job_id: i64) {
        self.state().decided.insert(job_id);
    }

    /// The attempts of a job that have begun.
    pub(super) fn begun(&self, name: &str) -> BTreeSet<(i64, i64)> {
        self.state().begun.get(name).cloned().unwrap_or_default()
    }

    pub(super) fn without_fake(&self) -> BTreeSet<String> {
        self.state().without_fake.clone()
    }
}

fn succeeding() -> FakeAttempt {
    FakeAttempt { takes_ms: 0, end: FakeEnd { how: HowItEnds::Exit(0), output: None, error: None } }
}
