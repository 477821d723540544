//! Who waits to write, and which of them commits for all.
//!
//! No thread has this for its work: of those that wait one leads, runs what all of them want in one transaction, and
//! answers them. So a commit wakes those that it answers and nobody else. The next group gathers meanwhile: the slower
//! the disk, the larger the groups. Who was answered together comes back at the same time, so the first that does waits
//! a moment for the others, or it would have a commit of its own and all others the next one. Who makes the group
//! as large as the last one was leads it: that one is awake.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, Result, Unavailable};

/// Operations that wait at most; then callers wait for a place. Those that a group gives back come on top.
const QUEUE_MAX: usize = 1_024;
/// Operations in one transaction at most.
const GROUP_MAX: usize = 256;
/// A group waits for those that are missing this part of the time that the last one took, …
const GATHER_PART: i64 = 2;
/// … and no longer than this.
const GATHER_MAX_US: i64 = 1_000;

/// Those that wait to write, in the order in which they came.
pub(crate) struct Queue<W> {
    line: Mutex<Line<W>>,
    /// Told when there is room again.
    room: Condvar,
    /// Who has come and not gone: waits, leads, or was answered and is about to go.
    inside: AtomicUsize,
    clock: Clock,
}

/// Work that waits for its transaction.
pub(crate) struct Request<W> {
    pub(crate) name: &'static str,
    pub(crate) work: W,
    answer: Answer,
}

/// Where one waits for its answer. Dropping this is an answer too.
struct Answer {
    name: &'static str,
    seat: Option<Seat>,
}

/// The right to commit, which one has at a time. Dropping it gives it to the next.
pub(crate) struct Lead<'q, W> {
    queue: &'q Queue<W>,
    answered: usize,
    rest: Vec<Request<W>>,
}

/// One that has come. When it panics nobody waits for it.
struct Visit<'q, W> {
    queue: &'q Queue<W>,
    seat: Seat,
}

struct Line<W> {
    requests: VecDeque<Request<W>>,
    /// For those that come now.
    round: Arc<Round>,
    /// Somebody commits.
    is_led: bool,
    /// Those that the last group left waiting, and those that it answered: they may come back.
    expected: usize,
    /// How long the last group took.
    took_us: i64,
    /// When the first goes ahead without those that are missing, by the monotonic clock.
    late_us: i64,
}

/// Those that came while the same group was being committed. They mostly are answered together, and so are woken
/// together.
#[derive(Default)]
struct Round {
    turns: Mutex<Vec<Turn>>,
    /// For the first, who is also told to look; and for all others.
    first: Condvar,
    others: Condvar,
}

/// A place in a round.
#[derive(Clone)]
struct Seat {
    round: Arc<Round>,
    number: usize,
}

#[derive(Debug, Default, PartialEq)]
enum Turn {
    #[default]
    Waits,
    /// It is the first, and nobody leads.
    Looks,
    Answered(Result<()>),
}

/// What there is to know for one that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Situation {
    is_led: bool,
    is_first: bool,
    waiting: usize,
    inside: usize,
    expected: usize,
    is_late: bool,
}

/// What one that waits does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Lead,
    /// It looks again when it is late.
    Gather,
    Wait,
}

fn next(situation: Situation) -> Next {
    let Situation { is_led, is_first, waiting, inside, expected, is_late } = situation;
    // Who is there alone waits for nobody.
    let is_complete = waiting >= expected.min(GROUP_MAX) || inside <= 1;
    if is_led || waiting == 0 {
        Next::Wait
    } else if is_complete || (is_first && is_late) {
        Next::Lead
    } else if is_first {
        Next::Gather
    } else {
        Next::Wait
    }
}

/// How long a group waits for those that are missing: the fewer they are, the less it is worth.
fn patience_us(took_us: i64, waiting: usize, expected: usize) -> i64 {
    let missing = expected.saturating_sub(waiting) as i64;
    let longest_us = (took_us / GATHER_PART).min(GATHER_MAX_US);
    longest_us * missing / (expected as i64).max(1)
}

impl<W> Queue<W> {
    pub(crate) fn new() -> Queue<W> {
        let line = Line {
            requests: VecDeque::new(),
            round: Arc::default(),
            is_led: false,
            expected: 0,
            took_us: 0,
            late_us: 0,
        };
        Queue {
            line: Mutex::new(line),
            room: Condvar::new(),
            inside: AtomicUsize::new(0),
            clock: Clock::system(),
        }
    }

    /// Waits until the work was done and is as durable as its transaction; `lead` commits a group for all, when it
    /// is this one's turn.
    pub(crate) fn write(&self, name: &'static str, work: W, lead: impl Fn(Lead<'_, W>)) -> Result<()> {
        self.inside.fetch_add(1, Ordering::Relaxed);
        let (line, seat) = self.push(name, work);
        let visit = Visit { queue: self, seat };
        // Dropped before the visit, which takes the line again after a panic.
        let (mut line, seat) = (line, &visit.seat);
        loop {
            let next = next(self.situation(&line, seat));
            let patience = match next {
                Next::Lead => {
                    line.is_led = true;
                    None
                }
                Next::Gather => Some(self.until(line.late_us)),
                Next::Wait => None,
            };
            drop(line);
            if next == Next::Lead {
                // It is of the group itself, unless that was full or its own was taken before.
                lead(Lead { queue: self, answered: 0, rest: Vec::new() });
            }
            if let Some(result) = seat.wait(patience) {
                return result;
            }
            line = self.line();
        }
    }

    /// Who has come, and was not answered or only just now.
    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::Relaxed)
    }

    fn line(&self) -> MutexGuard<'_, Line<W>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, name: &'static str, work: W) -> (MutexGuard<'_, Line<W>>, Seat) {
        let mut line = self.line();
        while line.requests.len() >= QUEUE_MAX {
            line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        let seat = Seat::of(&line.round);
        let answer = Answer { name, seat: Some(seat.clone()) };
        line.requests.push_back(Request { name, work, answer });
        if line.requests.len() == 1 {
            self.gather(&mut line);
        }
        (line, seat)
    }

    /// From now on the first in the line waits for those that are missing.
    fn gather(&self, line: &mut Line<W>) {
        let patience_us = patience_us(line.took_us, line.requests.len(), line.expected);
        line.late_us = self.clock.monotonic_us() + patience_us;
    }

    fn until(&self, late_us: i64) -> Duration {
        Duration::from_micros(u64::try_from(late_us - self.clock.monotonic_us()).unwrap_or(0))
    }

    /// Takes out the operation of one that does not wait for it any more.
    fn leave(&self, seat: &Seat) {
        let mut line = self.line();
        let place = line.requests.iter().position(|request| request.answer.is_at(seat));
        let left = place.and_then(|place| line.requests.remove(place));
        if !line.is_led {
            self.call_up_first(line);
        }
        drop_all(left.into_iter().collect());
    }

    /// Nobody leads: who waits longest looks who is there.
    fn call_up_first(&self, mut line: MutexGuard<'_, Line<W>>) {
        let first = line.requests.front().and_then(|first| first.answer.seat.clone());
        if let Some(first) = first {
            self.gather(&mut line);
            drop(line);
            first.call_up();
        }
    }

    fn situation(&self, line: &Line<W>, seat: &Seat) -> Situation {
        Situation {
            is_led: line.is_led,
            is_first: line.requests.front().is_some_and(|first| first.answer.is_at(seat)),
            waiting: line.requests.len(),
            inside: self.inside(),
            expected: line.expected,
            is_late: self.clock.monotonic_us() >= line.late_us,
        }
    }
}

impl<W> Lead<'_, W> {
    /// Those that have waited longest, as many as a transaction may have.
    pub(crate) fn group(&self) -> Vec<Request<W>> {
        let mut line = self.queue.line();
        if line.requests.len() >= QUEUE_MAX {
            self.queue.room.notify_all();
        }
        line.round = Arc::default();
        let writes = line.requests.len().min(GROUP_MAX);
        line.requests.drain(..writes).collect()
    }

    /// Says how many were run in what time, and who was not: they come first next time.
    pub(crate) fn end(mut self, answered: usize, took_us: i64, rest: Vec<Request<W>>) {
        self.queue.line().took_us = took_us;
        self.answered = answered;
        self.rest = rest;
    }
}

impl<W> Drop for Lead<'_, W> {
    fn drop(&mut self) {
        let mut line = self.queue.line();
        for request in self.rest.drain(..).rev() {
            line.requests.push_front(request);
        }
        line.is_led = false;
        line.expected = self.answered + line.requests.len();
        self.queue.call_up_first(line);
    }
}

impl<W> Drop for Visit<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // While it led, perhaps before it was answered: what it wanted may be the first in the line.
            self.queue.leave(&self.seat);
        }
        self.queue.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says of each of a group how it ended.
pub(crate) fn answer<W>(group: &mut [Request<W>], results: Vec<Result<()>>) {
    let mut answered: Option<Seat> = None;
    for (request, result) in group.iter_mut().zip(results) {
        let Some(seat) = request.answer.seat.take() else { continue };
        seat.answer(result);
        if let Some(before) = answered.replace(seat.clone())
            && !Arc::ptr_eq(&before.round, &seat.round)
        {
            before.round.wake();
        }
    }
    if let Some(last) = answered {
        last.round.wake();
    }
}

/// Drops what was answered. What a request holds may be large, so nobody should wait for that; and where it panics
/// that is no concern of who leads.
pub(crate) fn drop_all<W>(group: Vec<Request<W>>) {
    for request in group {
        let _panicked = catch_unwind(AssertUnwindSafe(|| drop(request)));
    }
}

impl Answer {
    fn is_at(&self, seat: &Seat) -> bool {
        self.seat
            .as_ref()
            .is_some_and(|own| own.number == seat.number && Arc::ptr_eq(&own.round, &seat.round))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // Nobody said how it ended, and somebody waits for that.
        if let Some(seat) = self.seat.take() {
            seat.answer(Err(Error::unavailable(self.name, Unavailable::Closed)));
            seat.wake();
        }
    }
}

impl Round {
    fn turns(&self) -> MutexGuard<'_, Vec<Turn>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.first.notify_one();
        self.others.notify_all();
    }
}

impl Seat {
    fn of(round: &Arc<Round>) -> Seat {
        let mut turns = round.turns();
        turns.push(Turn::Waits);
        Seat { round: Arc::clone(round), number: turns.len() - 1 }
    }

    fn answer(&self, result: Result<()>) {
        self.round.turns()[self.number] = Turn::Answered(result);
    }

    /// Tells it to look. Another one may have committed and answered it meanwhile: that stays.
    fn call_up(&self) {
        let mut turns = self.round.turns();
        if turns[self.number] == Turn::Waits {
            turns[self.number] = Turn::Looks;
        }
        drop(turns);
        self.wake();
    }

    fn changed(&self) -> &Condvar {
        match self.number {
            0 => &self.round.first,
            1.. => &self.round.others,
        }
    }

    fn wake(&self) {
        self.changed().notify_all();
    }

    /// Waits for an answer; `None` when it is time to look.
    fn wait(&self, patience: Option<Duration>) -> Option<Result<()>> {
        let waits = |turns: &mut Vec<Turn>| turns[self.number] == Turn::Waits;
        let turns = self.round.turns();
        let mut turns = match patience {
            None => self.changed().wait_while(turns, waits).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = self.changed().wait_timeout_while(turns, patience, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        match std::mem::take(&mut turns[self.number]) {
            Turn::Waits | Turn::Looks => None,
            Turn::Answered(result) => Some(result),
        }
    }
}

#[cfg(test)]
mod tests;
