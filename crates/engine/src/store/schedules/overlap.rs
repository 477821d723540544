//! Which occurrences start now, which wait and which get no run, in view of the runs of the schedule that are
//! not over: pure.

use windlass_workflow::model::Overlap;

use crate::status::RunSource;

/// Occurrences of one schedule that may wait at a time.
pub const WAITING_MAX: i64 = 100_000;

/// An occurrence that is to get a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The nominal time.
    pub(super) at_ms: i64,
    pub(super) start_after: i64,
    pub(super) source: RunSource,
    pub(super) standing: Standing,
}

/// Whether it is known to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has a row, because it waited before.
    Waits,
    /// It was planned at this moment.
    New,
}

/// A run of the schedule that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished {
    pub(super) run_id: i64,
    pub(super) is_stopping: bool,
}

/// An occurrence of a backfill that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backfilled {
    pub(super) at_ms: i64,
    /// So many runs of backfills may be unfinished for it to start.
    pub(super) at_once: i64,
}

/// What a decision is made from.
#[derive(Debug, Clone)]
pub(super) struct Situation {
    pub(super) overlap: Overlap,
    pub(super) now_ms: i64,
    /// Runs that this transaction may make.
    pub(super) starts_max: usize,
    /// What waits and what is new, but for backfills.
    pub(super) candidates: Vec<Candidate>,
    /// Runs that are not over, but for backfills. Those of `allow` do not matter.
    pub(super) unfinished: Vec<Unfinished>,
    /// How many occurrences wait, backfills too.
    pub(super) waiting_count: i64,
    /// The head of what waits of backfills, the earliest first.
    pub(super) backfills: Vec<Backfilled>,
    /// How many runs of backfills are not over.
    pub(super) unfinished_backfills: i64,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Decision {
    /// These get their runs, in this order: nominal time and source.
    pub(super) start: Vec<(i64, RunSource)>,
    /// These new ones wait.
    pub(super) wait: Vec<Candidate>,
    /// These get none, and why.
    pub(super) skip: Vec<(Candidate, String)>,
    /// These runs are stopped.
    pub(super) stop: Vec<i64>,
    /// There is more to start than one transaction may.
    pub(super) has_more: bool,
}

/// Decides about everything whose time has come.
pub(super) fn decide(situation: &Situation) -> Decision {
    let mut decision = Decision::default();
    let mut candidates = situation.candidates.clone();
    candidates.sort_by_key(|candidate| (candidate.start_after, candidate.at_ms));
    let is_due = |candidate: &Candidate| candidate.start_after <= situation.now_ms;
    let (due, early): (Vec<Candidate>, Vec<Candidate>) = candidates.into_iter().partition(is_due);
    decision.wait.extend(early.into_iter().filter(is_new));
    match situation.overlap {
        Overlap::Allow => allow(&mut decision, due, situation.starts_max),
        Overlap::Skip => skip(&mut decision, due, &situation.unfinished),
        Overlap::QueueOne => queue_one(&mut decision, due, &situation.unfinished),
        Overlap::QueueAll => queue_all(&mut decision, due, &situation.unfinished),
        Overlap::CancelRunning | Overlap::TerminateRunning => {
            replace(&mut decision, due, &situation.unfinished);
        }
    }
    keep_to_the_limit(&mut decision, situation.waiting_count);
    start_backfills(&mut decision, situation);
    decision
}

fn is_new(candidate: &Candidate) -> bool {
    match candidate.standing {
        Standing::New => true,
        Standing::Waits => false,
    }
}

impl Decision {
    fn start(&mut self, candidate: Candidate) {
        self.start.push((candidate.at_ms, candidate.source));
    }

    fn wait(&mut self, candidate: Candidate) {
        if is_new(&candidate) {
            self.wait.push(candidate);
        }
    }

    /// Nothing is to be written.
    pub(super) fn is_nothing(&self) -> bool {
        let Decision { start, wait, skip, stop, has_more: _ } = self;
        start.is_empty() && wait.is_empty() && skip.is_empty() && stop.is_empty()
    }
}

/// All start, as many as one transaction may make.
fn allow(decision: &mut Decision, mut due: Vec<Candidate>, starts_max: usize) {
    let later = due.split_off(due.len().min(starts_max));
    decision.has_more = !later.is_empty();
    due.into_iter().for_each(|candidate| decision.start(candidate));
    later.into_iter().for_each(|candidate| decision.wait(candidate));
}

/// The first starts when nothing runs, the others get no run.
fn skip(decision: &mut Decision, due: Vec<Candidate>, unfinished: &[Unfinished]) {
    let mut due = due.into_iter();
    let why = match unfinished.first() {
        Some(run) => format!("run {} was not over", run.run_id),
        None => {
            if let Some(first) = due.next() {
                decision.start(first);
            }
            "an earlier occurrence started at the same moment".to_owned()
        }
    };
    decision.skip.extend(due.map(|candidate| (candidate, why.clone())));
}

/// The first starts when nothing runs; of the others the last waits.
fn queue_one(decision: &mut Decision, due: Vec<Candidate>, unfinished: &[Unfinished]) {
    let mut due = due.into_iter();
    if unfinished.is_empty()
        && let Some(first) = due.next()
    {
        decision.start(first);
    }
    if let Some(last) = due.next_back() {
        decision.wait(last);
    }
    let why = "a later occurrence waits in its place";
    decision.skip.extend(due.map(|candidate| (candidate, why.to_owned())));
}

/// The first starts when nothing runs; the others wait.
fn queue_all(decision: &mut Decision, due: Vec<Candidate>, unfinished: &[Unfinished]) {
    let mut due = due.into_iter();
    if unfinished.is_empty()
        && let Some(first) = due.next()
    {
        decision.start(first);
    }
    due.for_each(|candidate| decision.wait(candidate));
}

/// The last takes the place of everything: what runs is stopped, and when that is over it starts.
fn replace(decision: &mut Decision, due: Vec<Candidate>, unfinished: &[Unfinished]) {
    let mut due = due.into_iter();
    let Some(last) = due.next_back() else { return };
    if unfinished.is_empty() {
        decision.start(last);
    } else {
        let running = unfinished.iter().filter(|run| !run.is_stopping);
        decision.stop.extend(running.map(|run| run.run_id));
        decision.wait(last);
    }
    let why = "a later occurrence took its place";
    decision.skip.extend(due.map(|candidate| (candidate, why.to_owned())));
}

/// What would be too much to wait gets no run, the latest first.
fn keep_to_the_limit(decision: &mut Decision, waiting_count: i64) {
    let room = usize::try_from(WAITING_MAX - waiting_count).unwrap_or(0);
    if decision.wait.len() > room {
        let why = format!("{WAITING_MAX} occurrences of the schedule wait already, the most that may");
        let surplus = decision.wait.split_off(room);
        decision.skip.extend(surplus.into_iter().map(|candidate| (candidate, why.clone())));
    }
}

/// The earliest start, as many as each of them allows at once. A later one does not overtake.
fn start_backfills(decision: &mut Decision, situation: &Situation) {
    let counted = (situation.unfinished_backfills..).zip(&situation.backfills);
    for (unfinished, backfilled) in counted {
        if unfinished >= backfilled.at_once {
            return;
        }
        if decision.start.len() >= situation.starts_max {
            decision.has_more = true;
            return;
        }
        decision.start.push((backfilled.at_ms, RunSource::Backfill));
    }
}

#[cfg(test)]
mod tests;
