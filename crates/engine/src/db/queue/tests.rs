#![allow(clippy::unwrap_used)]

use super::*;
use crate::db::WriteOperation;

const PATIENCE: Duration = Duration::from_secs(60);

fn nothing() -> WriteOperation {
    Box::new(|_connection| Ok(()))
}

/// Answers a group without running it.
fn commit(lead: Lead<'_, WriteOperation>) {
    let mut group = lead.group();
    let results = vec![Ok(()); group.len()];
    lead.end(group.len(), 0, Vec::new());
    answer(&mut group, results);
}

fn lead(queue: &Queue<WriteOperation>) -> Lead<'_, WriteOperation> {
    queue.line().is_led = true;
    Lead { queue, answered: 0, rest: Vec::new() }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

#[test]
fn the_last_that_is_expected_leads_or_the_first_when_it_is_late() {
    let first =
        Situation { is_led: false, is_first: true, waiting: 1, inside: 8, expected: 8, is_late: false };
    let cases = [
        (first, Next::Gather),
        (Situation { is_late: true, ..first }, Next::Lead),
        (Situation { is_led: true, is_late: true, ..first }, Next::Wait),
        (Situation { inside: 1, ..first }, Next::Lead),
        (Situation { expected: 1, ..first }, Next::Lead),
        (Situation { expected: 0, ..first }, Next::Lead),
        (Situation { is_first: false, waiting: 7, ..first }, Next::Wait),
        (Situation { is_first: false, waiting: 7, is_late: true, ..first }, Next::Wait),
        (Situation { is_first: false, waiting: 8, ..first }, Next::Lead),
        (Situation { is_first: false, waiting: 8, is_led: true, ..first }, Next::Wait),
        (Situation { is_first: false, waiting: GROUP_MAX, expected: 1_000, ..first }, Next::Lead),
        // It was taken by another one, and its answer is on the way.
        (Situation { is_first: false, waiting: 0, is_late: true, ..first }, Next::Wait),
    ];
    for (situation, expected) in cases {
        assert_eq!(next(situation), expected, "{situation:?}");
    }
}

#[test]
fn a_group_waits_the_longer_the_more_are_missing() {
    let cases = [
        ((800, 1, 8), 350),
        ((800, 7, 8), 50),
        ((800, 8, 8), 0),
        ((800, 9, 8), 0),
        ((800, 1, 0), 0),
        ((0, 1, 8), 0),
        ((i64::MAX, 1, 1_000), 999),
    ];
    for ((took_us, waiting, expected), wanted) in cases {
        assert_eq!(patience_us(took_us, waiting, expected), wanted, "{took_us} {waiting} {expected}");
    }
}

#[test]
fn a_group_is_no_larger_than_its_limit_and_those_left_are_expected_with_those_answered() {
    let queue = Queue::new();
    for _ in 0..GROUP_MAX + 3 {
        drop(queue.push("nothing", nothing()));
    }
    let lead = lead(&queue);
    let mut group = lead.group();
    assert_eq!(group.len(), GROUP_MAX);
    let rest = group.split_off(5);
    lead.end(5, 40, rest);
    let line = queue.line();
    assert_eq!(line.requests.len(), GROUP_MAX - 5 + 3);
    assert_eq!(line.expected, GROUP_MAX + 3);
    assert!(!line.is_led);
    let numbers = line.requests.iter().map(|request| request.answer.seat.as_ref().unwrap().number);
    assert!(numbers.eq(5..GROUP_MAX + 3), "in the order in which they came");
}

#[test]
fn a_full_queue_lets_nobody_in_until_there_is_room() {
    let queue = Queue::new();
    for _ in 0..QUEUE_MAX {
        drop(queue.push("nothing", nothing()));
    }
    let lead = lead(&queue);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| drop(queue.push("nothing", nothing())));
        for _ in 0..1_000 {
            std::thread::yield_now();
            assert!(!late.is_finished() && queue.line().requests.len() == QUEUE_MAX);
        }
        assert_eq!(lead.group().len(), GROUP_MAX);
        until(|| late.is_finished());
    });
    assert_eq!(queue.line().requests.len(), QUEUE_MAX - GROUP_MAX + 1);
}

#[test]
fn those_that_come_while_another_one_commits_are_committed_together() {
    let queue = Queue::new();
    let (before, groups) = (lead(&queue), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let write = || {
            queue.write("nothing", nothing(), |lead| {
                groups.lock().unwrap().push(queue.line().requests.len());
                commit(lead);
            })
        };
        let waiting: Vec<_> = (0..5).map(|_| scope.spawn(write)).collect();
        until(|| queue.line().requests.len() == 5);
        before.end(1, 0, Vec::new());
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
    });
    assert_eq!(*groups.lock().unwrap(), [5]);
    assert_eq!((queue.inside(), queue.line().is_led), (0, false));
}

#[test]
fn the_first_of_those_that_are_left_leads_the_next_group() {
    let queue = Queue::new();
    let lead = lead(&queue);
    std::thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..3).map(|_| scope.spawn(|| queue.write("nothing", nothing(), commit))).collect();
        until(|| queue.line().requests.len() == 3);
        let mut group = lead.group();
        let rest = group.split_off(1);
        lead.end(1, 0, rest);
        answer(&mut group, vec![Ok(())]);
        for thread in waiting {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
    });
}

#[test]
fn nobody_waits_for_a_leader_that_is_gone() {
    let queue = Queue::new();
    let lead = lead(&queue);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.write("wait", nothing(), commit));
        until(|| queue.line().requests.len() == 1);
        drop(lead.group());
        let closed = Error::unavailable("wait", Unavailable::Closed);
        assert_eq!(waiting.join().unwrap(), Err(closed));
        let next = scope.spawn(|| queue.write("wait", nothing(), commit));
        until(|| queue.line().requests.len() == 1);
        // As a panic would.
        drop(lead);
        assert_eq!(next.join().unwrap(), Ok(()));
    });
}

#[test]
fn who_is_answered_while_it_is_told_to_look_keeps_its_answer() {
    let seat = Seat::of(&Arc::default());
    seat.call_up();
    assert_eq!(seat.wait(None), None, "it looks");
    seat.call_up();
    seat.answer(Ok(()));
    seat.call_up();
    assert_eq!(seat.wait(Some(Duration::ZERO)), Some(Ok(())));
}

#[test]
fn one_that_panics_while_it_leads_is_waited_for_by_nobody() {
    let queue = Arc::new(Queue::new());
    let own = Arc::clone(&queue);
    let leading = std::thread::spawn(move || {
        own.write("panic", nothing(), |_lead| {
            until(|| own.line().requests.len() == 3);
            std::panic::resume_unwind(Box::new("on purpose"));
        })
    });
    until(|| queue.line().is_led);
    let (ended, ends) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let (queue, ended) = (Arc::clone(&queue), ended.clone());
        std::thread::spawn(move || ended.send(queue.write("nothing", nothing(), commit)));
    }
    assert!(leading.join().is_err());
    for _ in 0..2 {
        assert_eq!(ends.recv_timeout(PATIENCE), Ok(Ok(())));
    }
    until(|| queue.inside() == 0);
    assert_eq!(queue.line().requests.len(), 0);
}
