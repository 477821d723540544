//! Overlap: which occurrences start now, which wait, and which are skipped, given the schedule's unfinished runs.
//! Pure.

use windlass_workflow::model::Overlap;

use crate::status::RunSource;

/// The maximum number of waiting occurrences of one schedule.
pub const WAITING_MAX: i64 = 100_000;

/// An occurrence that is to get a run, unless the overlap rule says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OccurrenceCandidate {
    /// The nominal time.
    pub(super) at_ms: i64,
    pub(super) start_after: i64,
    pub(super) source: RunSource,
    pub(super) origin: CandidateOrigin,
}

/// Where a candidate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CandidateOrigin {
    /// The table: it was waiting already.
    Table,
    /// The plan: it has no row yet.
    Plan,
}

/// An unfinished run of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnfinishedRun {
    pub(super) run_id: i64,
    pub(super) is_stopping: bool,
}

/// A waiting occurrence of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitingBackfill {
    pub(super) at_ms: i64,
    /// It may start while fewer runs of backfills than this are unfinished.
    pub(super) at_once: i64,
}

/// Everything that the decision depends on.
#[derive(Debug, Clone)]
pub(super) struct OverlapInput {
    pub(super) overlap: Overlap,
    pub(super) now_ms: i64,
    /// How many runs one transaction may start.
    pub(super) starts_max: usize,
    /// Waiting and planned occurrences, except backfills.
    pub(super) candidates: Vec<OccurrenceCandidate>,
    /// Unfinished runs, except those of backfills. Empty for `allow`, which does not need them.
    pub(super) unfinished: Vec<UnfinishedRun>,
    /// How many occurrences wait, backfills included.
    pub(super) waiting_count: i64,
    /// The first waiting occurrences of backfills, the earliest first.
    pub(super) backfills: Vec<WaitingBackfill>,
    /// How many runs of backfills are unfinished.
    pub(super) unfinished_backfills: i64,
}

/// What to do with the candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct OverlapDecision {
    /// Nominal times and sources of the runs to start, in this order.
    pub(super) start: Vec<(i64, RunSource)>,
    /// Planned occurrences that must wait.
    pub(super) wait: Vec<OccurrenceCandidate>,
    /// Occurrences to skip, and why.
    pub(super) skip: Vec<(OccurrenceCandidate, String)>,
    /// Ids of the runs to stop.
    pub(super) stop: Vec<i64>,
    /// Whether more could start than one transaction may start.
    pub(super) has_more: bool,
}

/// Decides about all candidates.
pub(super) fn decide(overlap_input: &OverlapInput) -> OverlapDecision {
    let mut decision = OverlapDecision::default();
    let mut candidates = overlap_input.candidates.clone();
    candidates.sort_by_key(|candidate| (candidate.start_after, candidate.at_ms));
    let is_due = |candidate: &OccurrenceCandidate| candidate.start_after <= overlap_input.now_ms;
    let (due, early): (Vec<OccurrenceCandidate>, Vec<OccurrenceCandidate>) =
        candidates.into_iter().partition(is_due);
    decision.wait.extend(early.into_iter().filter(is_new));
    match overlap_input.overlap {
        Overlap::Allow => allow(&mut decision, due, overlap_input.starts_max),
        Overlap::Skip => skip(&mut decision, due, &overlap_input.unfinished),
        Overlap::QueueOne => queue_one(&mut decision, due, &overlap_input.unfinished),
        Overlap::QueueAll => queue_all(&mut decision, due, &overlap_input.unfinished),
        Overlap::CancelRunning | Overlap::TerminateRunning => {
            replace(&mut decision, due, &overlap_input.unfinished);
        }
    }
    limit_waiting(&mut decision, overlap_input.waiting_count);
    start_backfills(&mut decision, overlap_input);
    decision
}

fn is_new(candidate: &OccurrenceCandidate) -> bool {
    match candidate.origin {
        CandidateOrigin::Plan => true,
        CandidateOrigin::Table => false,
    }
}

impl OverlapDecision {
    fn start(&mut self, candidate: OccurrenceCandidate) {
        self.start.push((candidate.at_ms, candidate.source));
    }

    fn wait(&mut self, candidate: OccurrenceCandidate) {
        if is_new(&candidate) {
            self.wait.push(candidate);
        }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_nothing(&self) -> bool {
        let OverlapDecision { start, wait, skip, stop, has_more: _ } = self;
        start.is_empty() && wait.is_empty() && skip.is_empty() && stop.is_empty()
    }
}

/// Starts all occurrences, up to the limit of one transaction.
fn allow(decision: &mut OverlapDecision, mut due: Vec<OccurrenceCandidate>, starts_max: usize) {
    let later = due.split_off(due.len().min(starts_max));
    decision.has_more = !later.is_empty();
    due.into_iter().for_each(|candidate| decision.start(candidate));
    later.into_iter().for_each(|candidate| decision.wait(candidate));
}

/// Starts the first occurrence if no run is unfinished, and skips the others.
fn skip(decision: &mut OverlapDecision, due: Vec<OccurrenceCandidate>, unfinished: &[UnfinishedRun]) {
    let mut due = due.into_iter();
    let why = match unfinished.first() {
        Some(run) => format!("run {} was not finished", run.run_id),
        None => {
            if let Some(first) = due.next() {
                decision.start(first);
            }
            "an earlier occurrence started at the same time".to_owned()
        }
    };
    decision.skip.extend(due.map(|candidate| (candidate, why.clone())));
}

/// Starts the first occurrence if no run is unfinished. Of the others the last waits, and the rest are skipped.
fn queue_one(decision: &mut OverlapDecision, due: Vec<OccurrenceCandidate>, unfinished: &[UnfinishedRun]) {
    let mut due = due.into_iter();
    if unfinished.is_empty()
        && let Some(first) = due.next()
    {
        decision.start(first);
    }
    if let Some(last) = due.next_back() {
        decision.wait(last);
    }
    let why = "a later occurrence waits instead";
    decision.skip.extend(due.map(|candidate| (candidate, why.to_owned())));
}

/// Starts the first occurrence if no run is unfinished. The others wait.
fn queue_all(decision: &mut OverlapDecision, due: Vec<OccurrenceCandidate>, unfinished: &[UnfinishedRun]) {
    let mut due = due.into_iter();
    if unfinished.is_empty()
        && let Some(first) = due.next()
    {
        decision.start(first);
    }
    due.for_each(|candidate| decision.wait(candidate));
}

/// The last occurrence replaces everything else: unfinished runs are stopped, and it starts when they have ended.
fn replace(decision: &mut OverlapDecision, due: Vec<OccurrenceCandidate>, unfinished: &[UnfinishedRun]) {
    let mut due = due.into_iter();
    let Some(last) = due.next_back() else { return };
    if unfinished.is_empty() {
        decision.start(last);
    } else {
        let running = unfinished.iter().filter(|run| !run.is_stopping);
        decision.stop.extend(running.map(|run| run.run_id));
        decision.wait(last);
    }
    let why = "a later occurrence replaced it";
    decision.skip.extend(due.map(|candidate| (candidate, why.to_owned())));
}

/// Skips the latest occurrences if too many would wait.
fn limit_waiting(decision: &mut OverlapDecision, waiting_count: i64) {
    let capacity = usize::try_from(WAITING_MAX - waiting_count).unwrap_or(0);
    if decision.wait.len() > capacity {
        let why = format!("{WAITING_MAX} occurrences of the schedule wait already, which is the maximum");
        let surplus = decision.wait.split_off(capacity);
        decision.skip.extend(surplus.into_iter().map(|candidate| (candidate, why.clone())));
    }
}

/// Starts backfills in order, while the limit of the first one allows it. A later one never overtakes an earlier one.
fn start_backfills(decision: &mut OverlapDecision, overlap_input: &OverlapInput) {
    let counted = (overlap_input.unfinished_backfills..).zip(&overlap_input.backfills);
    for (unfinished, backfilled) in counted {
        if unfinished >= backfilled.at_once {
            return;
        }
        if decision.start.len() >= overlap_input.starts_max {
            decision.has_more = true;
            return;
        }
        decision.start.push((backfilled.at_ms, RunSource::Backfill));
    }
}

#[cfg(test)]
mod tests;
