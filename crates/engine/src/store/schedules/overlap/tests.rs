use super::*;

const NOW: i64 = 1_000;

fn candidate(at_ms: i64, origin: CandidateOrigin) -> OccurrenceCandidate {
    OccurrenceCandidate { at_ms, start_after: at_ms, source: RunSource::Schedule, origin }
}

/// Builds an input from waiting occurrences, planned occurrences, and the ids of unfinished runs.
fn overlap_input(overlap: Overlap, waiting: &[i64], new: &[i64], runs: &[i64]) -> OverlapInput {
    let waiting = waiting.iter().map(|at_ms| candidate(*at_ms, CandidateOrigin::Table));
    let new = new.iter().map(|at_ms| candidate(*at_ms, CandidateOrigin::Plan));
    OverlapInput {
        overlap,
        now_ms: NOW,
        starts_max: 100,
        candidates: waiting.chain(new).collect(),
        unfinished: runs.iter().map(|run_id| UnfinishedRun { run_id: *run_id, is_stopping: false }).collect(),
        waiting_count: 0,
        backfills: Vec::new(),
        unfinished_backfills: 0,
    }
}

/// Nominal times of occurrences that start, wait and are skipped; ids of runs that are stopped.
type Outcome = (Vec<i64>, Vec<i64>, Vec<i64>, Vec<i64>);

fn outcome(overlap_input: &OverlapInput) -> Outcome {
    let OverlapDecision { start, wait, skip, stop, has_more: _ } = decide(overlap_input);
    (
        start.into_iter().map(|(at_ms, _source)| at_ms).collect(),
        wait.into_iter().map(|candidate| candidate.at_ms).collect(),
        skip.into_iter().map(|(candidate, _reason)| candidate.at_ms).collect(),
        stop,
    )
}

#[test]
fn each_overlap_rule_starts_waits_skips_and_stops() {
    use Overlap::{Allow, CancelRunning, QueueAll, QueueOne, Skip, TerminateRunning};
    // (overlap, waiting, new, unfinished runs, (start, wait, skip, stop))
    type Case<'a> = (Overlap, &'a [i64], &'a [i64], &'a [i64], Outcome);
    let cases: Vec<Case<'_>> = vec![
        (Skip, &[], &[], &[], (vec![], vec![], vec![], vec![])),
        (Skip, &[], &[1], &[], (vec![1], vec![], vec![], vec![])),
        (Skip, &[], &[1], &[7], (vec![], vec![], vec![1], vec![])),
        (Skip, &[], &[1, 2, 3], &[], (vec![1], vec![], vec![2, 3], vec![])),
        (Skip, &[1], &[2], &[7], (vec![], vec![], vec![1, 2], vec![])),
        (QueueOne, &[], &[1], &[], (vec![1], vec![], vec![], vec![])),
        (QueueOne, &[], &[1], &[7], (vec![], vec![1], vec![], vec![])),
        (QueueOne, &[1], &[], &[7], (vec![], vec![], vec![], vec![])),
        (QueueOne, &[1], &[], &[], (vec![1], vec![], vec![], vec![])),
        (QueueOne, &[1], &[2], &[7], (vec![], vec![2], vec![1], vec![])),
        (QueueOne, &[1], &[2], &[], (vec![1], vec![2], vec![], vec![])),
        (QueueOne, &[], &[1, 2, 3], &[], (vec![1], vec![3], vec![2], vec![])),
        (QueueAll, &[], &[1, 2], &[7], (vec![], vec![1, 2], vec![], vec![])),
        (QueueAll, &[1, 2], &[3], &[7], (vec![], vec![3], vec![], vec![])),
        (QueueAll, &[1, 2], &[3], &[], (vec![1], vec![3], vec![], vec![])),
        (QueueAll, &[], &[1, 2], &[], (vec![1], vec![2], vec![], vec![])),
        (Allow, &[1], &[2, 3], &[7, 8], (vec![1, 2, 3], vec![], vec![], vec![])),
        (CancelRunning, &[], &[1], &[], (vec![1], vec![], vec![], vec![])),
        (CancelRunning, &[], &[1], &[7, 8], (vec![], vec![1], vec![], vec![7, 8])),
        (CancelRunning, &[1], &[2], &[7], (vec![], vec![2], vec![1], vec![7])),
        (CancelRunning, &[1], &[], &[], (vec![1], vec![], vec![], vec![])),
        (CancelRunning, &[], &[1, 2], &[], (vec![2], vec![], vec![1], vec![])),
        (CancelRunning, &[], &[], &[7], (vec![], vec![], vec![], vec![])),
        (TerminateRunning, &[1], &[2], &[7], (vec![], vec![2], vec![1], vec![7])),
    ];
    for (overlap, waiting, new, runs, expected) in cases {
        let name = format!("{overlap:?}, waiting {waiting:?}, new {new:?}, unfinished {runs:?}");
        assert_eq!(outcome(&overlap_input(overlap, waiting, new, runs)), expected, "{name}");
    }
}

#[test]
fn a_stopping_run_is_not_stopped_again() {
    let mut asked = overlap_input(Overlap::CancelRunning, &[1], &[], &[7]);
    asked.unfinished[0].is_stopping = true;
    assert!(decide(&asked).is_nothing());
}

#[test]
fn an_occurrence_with_jitter_waits_for_its_start() {
    let early = OccurrenceCandidate { start_after: NOW + 1, ..candidate(5, CandidateOrigin::Plan) };
    let waits = OccurrenceCandidate { origin: CandidateOrigin::Table, ..early };
    for overlap in [Overlap::Skip, Overlap::Allow, Overlap::CancelRunning] {
        let mut overlap_input = overlap_input(overlap, &[], &[], &[7]);
        overlap_input.candidates = vec![early];
        assert_eq!(outcome(&overlap_input), (vec![], vec![5], vec![], vec![]), "{overlap:?}");
        overlap_input.candidates = vec![waits];
        assert!(decide(&overlap_input).is_nothing(), "{overlap:?}: it is waiting already");
    }
    // The order of starting counts, not the order of the nominal times.
    let mut crossed = overlap_input(Overlap::QueueAll, &[], &[], &[]);
    crossed.candidates = vec![
        OccurrenceCandidate { start_after: 20, ..candidate(1, CandidateOrigin::Table) },
        candidate(10, CandidateOrigin::Table),
    ];
    assert_eq!(outcome(&crossed), (vec![10], vec![], vec![], vec![]));
}

#[test]
fn one_transaction_starts_a_limited_number() {
    let mut overlap_input = overlap_input(Overlap::Allow, &[1], &[2, 3], &[]);
    overlap_input.starts_max = 2;
    let decision = decide(&overlap_input);
    assert!(decision.has_more);
    assert_eq!(outcome(&overlap_input), (vec![1, 2], vec![3], vec![], vec![]));
}

#[test]
fn waiting_is_limited_and_the_latest_are_skipped() {
    let mut overlap_input = overlap_input(Overlap::QueueAll, &[], &[1, 2, 3], &[7]);
    overlap_input.waiting_count = WAITING_MAX - 2;
    assert_eq!(outcome(&overlap_input), (vec![], vec![1, 2], vec![3], vec![]));
    overlap_input.waiting_count = WAITING_MAX + 5;
    assert_eq!(outcome(&overlap_input), (vec![], vec![], vec![1, 2, 3], vec![]));
    assert!(decide(&overlap_input).skip[0].1.contains("100000 occurrences of the schedule wait already"));
}

#[test]
fn backfills_have_their_own_limit_and_keep_their_order() {
    // (waiting: nominal time and `at_once`; unfinished; start)
    type Case = (Vec<(i64, i64)>, i64, Vec<i64>);
    let cases: Vec<Case> = vec![
        (vec![(1, 1), (2, 1)], 0, vec![1]),
        (vec![(1, 1), (2, 1)], 1, vec![]),
        (vec![(1, 3), (2, 3), (3, 3), (4, 3)], 1, vec![1, 2]),
        (vec![(1, 1), (2, 5)], 1, vec![]),
        (vec![(1, 5), (2, 1), (3, 5)], 0, vec![1]),
    ];
    for overlap in [Overlap::Skip, Overlap::QueueAll] {
        for (waiting, unfinished, expected) in &cases {
            let mut overlap_input = overlap_input(overlap, &[], &[], &[7]);
            overlap_input.unfinished_backfills = *unfinished;
            overlap_input.backfills = waiting
                .iter()
                .map(|(at_ms, at_once)| WaitingBackfill { at_ms: *at_ms, at_once: *at_once })
                .collect();
            assert_eq!(outcome(&overlap_input).0, *expected, "{overlap:?} {waiting:?} {unfinished}");
        }
    }
}
