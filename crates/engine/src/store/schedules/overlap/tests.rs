use super::*;

const NOW: i64 = 1_000;

fn candidate(at_ms: i64, standing: Standing) -> Candidate {
    Candidate { at_ms, start_after: at_ms, source: RunSource::Schedule, standing }
}

/// Some that wait, some that are new; run 7 is not over when `runs` says so.
fn situation(overlap: Overlap, waiting: &[i64], new: &[i64], runs: &[i64]) -> Situation {
    let waiting = waiting.iter().map(|at_ms| candidate(*at_ms, Standing::Waits));
    let new = new.iter().map(|at_ms| candidate(*at_ms, Standing::New));
    Situation {
        overlap,
        now_ms: NOW,
        starts_max: 100,
        candidates: waiting.chain(new).collect(),
        unfinished: runs.iter().map(|run_id| Unfinished { run_id: *run_id, is_stopping: false }).collect(),
        waiting_count: 0,
        backfills: Vec::new(),
        unfinished_backfills: 0,
    }
}

/// Nominal times of what starts, begins to wait and is skipped, and the runs that are stopped.
type Outcome = (Vec<i64>, Vec<i64>, Vec<i64>, Vec<i64>);

fn outcome(situation: &Situation) -> Outcome {
    let Decision { start, wait, skip, stop, has_more: _ } = decide(situation);
    (
        start.into_iter().map(|(at_ms, _source)| at_ms).collect(),
        wait.into_iter().map(|candidate| candidate.at_ms).collect(),
        skip.into_iter().map(|(candidate, _reason)| candidate.at_ms).collect(),
        stop,
    )
}

#[test]
fn what_becomes_of_occurrences_by_overlap() {
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
        assert_eq!(outcome(&situation(overlap, waiting, new, runs)), expected, "{name}");
    }
}

#[test]
fn a_run_is_asked_to_stop_once() {
    let mut asked = situation(Overlap::CancelRunning, &[1], &[], &[7]);
    asked.unfinished[0].is_stopping = true;
    assert!(decide(&asked).is_nothing());
}

#[test]
fn jitter_lets_everything_wait_for_its_time() {
    let early = Candidate { start_after: NOW + 1, ..candidate(5, Standing::New) };
    let waits = Candidate { standing: Standing::Waits, ..early };
    for overlap in [Overlap::Skip, Overlap::Allow, Overlap::CancelRunning] {
        let mut situation = situation(overlap, &[], &[], &[7]);
        situation.candidates = vec![early];
        assert_eq!(outcome(&situation), (vec![], vec![5], vec![], vec![]), "{overlap:?}");
        situation.candidates = vec![waits];
        assert!(decide(&situation).is_nothing(), "{overlap:?}: it waits already");
    }
    // Who starts first comes first, whatever the nominal times say.
    let mut crossed = situation(Overlap::QueueAll, &[], &[], &[]);
    crossed.candidates =
        vec![Candidate { start_after: 20, ..candidate(1, Standing::Waits) }, candidate(10, Standing::Waits)];
    assert_eq!(outcome(&crossed), (vec![10], vec![], vec![], vec![]));
}

#[test]
fn one_transaction_starts_so_many() {
    let mut situation = situation(Overlap::Allow, &[1], &[2, 3], &[]);
    situation.starts_max = 2;
    let decision = decide(&situation);
    assert!(decision.has_more);
    assert_eq!(outcome(&situation), (vec![1, 2], vec![3], vec![], vec![]));
}

#[test]
fn what_waits_is_bounded_and_the_latest_are_given_up() {
    let mut situation = situation(Overlap::QueueAll, &[], &[1, 2, 3], &[7]);
    situation.waiting_count = WAITING_MAX - 2;
    assert_eq!(outcome(&situation), (vec![], vec![1, 2], vec![3], vec![]));
    situation.waiting_count = WAITING_MAX + 5;
    assert_eq!(outcome(&situation), (vec![], vec![], vec![1, 2, 3], vec![]));
    assert!(decide(&situation).skip[0].1.contains("100000 occurrences of the schedule wait already"));
}

#[test]
fn backfills_keep_to_their_own_limit_and_their_order() {
    // (waiting: nominal time and how many at once, unfinished, start)
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
            let mut situation = situation(overlap, &[], &[], &[7]);
            situation.unfinished_backfills = *unfinished;
            situation.backfills = waiting
                .iter()
                .map(|(at_ms, at_once)| Backfilled { at_ms: *at_ms, at_once: *at_once })
                .collect();
            assert_eq!(outcome(&situation).0, *expected, "{overlap:?} {waiting:?} {unfinished}");
        }
    }
}
