//! Operations that wait for a transaction of somebody else of this process: they are run at its end, and committed
//! with it.
//!
//! So who only waits for others' work needs no transaction of its own when it comes. Whoever leaves such an operation
//! takes it back before doing anything else: then it was run, or it never will be.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::WriteOperation;
use crate::error::{Error, Result};
use crate::signal::Hints;

/// What such an operation is called in errors.
pub(super) const STANDING: &str = "write with somebody else";
/// Operations that wait at most; more are refused.
const STANDING_MAX: usize = 64;

/// The operations that wait for a transaction.
#[derive(Default)]
pub(super) struct StandingWrites {
    slots: Mutex<VecDeque<Arc<Slot>>>,
}

/// The handle of an operation that waits. Dropping it takes the operation back.
pub struct Standing {
    slot: Arc<Slot>,
}

struct Slot {
    wants: Hints,
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    Waits(WriteOperation),
    Runs,
    Ended(Result<()>),
    TakenBack,
}

/// An operation whose transaction is there. Whoever runs it says how that ended.
pub(super) struct Due {
    pub(super) operation: WriteOperation,
    slot: Arc<Slot>,
}

impl StandingWrites {
    /// Leaves an operation for a transaction that hints at any of `wants`; `None` when too many wait already.
    pub(super) fn leave(&self, wants: Hints, operation: WriteOperation) -> Option<Standing> {
        let mut slots = self.slots();
        if slots.len() >= STANDING_MAX {
            return None;
        }
        let slot =
            Arc::new(Slot { wants, state: Mutex::new(State::Waits(operation)), changed: Condvar::new() });
        slots.push_back(Arc::clone(&slot));
        Some(Standing { slot })
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.slots().len()
    }

    /// Those that wait: what was taken back is forgotten.
    fn slots(&self) -> MutexGuard<'_, VecDeque<Arc<Slot>>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|slot| slot.waits());
        slots
    }

    /// Takes the one that has waited longest for a transaction with such hints.
    pub(super) fn due(&self, hints: Hints) -> Option<Due> {
        let mut slots = self.slots();
        loop {
            let place = slots.iter().position(|slot| slot.wants.intersects(hints))?;
            let slot = slots.remove(place)?;
            if let Some(operation) = slot.begin() {
                return Some(Due { operation, slot });
            }
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waits(&self) -> bool {
        match &*self.lock() {
            State::Waits(_) => true,
            State::Runs | State::Ended(_) | State::TakenBack => false,
        }
    }

    fn begin(&self) -> Option<WriteOperation> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Runs) {
            State::Waits(operation) => Some(operation),
            before @ (State::Runs | State::Ended(_) | State::TakenBack) => {
                *state = before;
                None
            }
        }
    }

    fn end(&self, result: Result<()>) {
        *self.lock() = State::Ended(result);
        self.changed.notify_all();
    }
}

impl Due {
    /// Says how it ended, once it is as durable as its transaction.
    pub(super) fn end(self, result: Result<()>) {
        self.slot.end(result);
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        // Nobody said how it ended, and somebody waits for that.
        if matches!(&*self.slot.lock(), State::Runs) {
            self.slot.end(Err(Error::internal(STANDING, "its transaction was given up")));
        }
    }
}

impl Standing {
    /// Takes the operation back: `None` when it was not run, and how it ended when it was. Waits for a transaction
    /// that has begun.
    pub fn take_back(self) -> Option<Result<()>> {
        let mut state = self.slot.lock();
        loop {
            match std::mem::replace(&mut *state, State::TakenBack) {
                State::Waits(_) | State::TakenBack => return None,
                State::Ended(result) => return Some(result),
                State::Runs => *state = State::Runs,
            }
            state = self.slot.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let mut state = self.slot.lock();
        if let State::Waits(_) = &*state {
            *state = State::TakenBack;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn nothing() -> WriteOperation {
        Box::new(|_connection| Ok(()))
    }

    #[test]
    fn the_longest_waiting_is_due_for_what_it_wants() {
        let writes = StandingWrites::default();
        let first = writes.leave(Hints::PENDING, nothing()).unwrap();
        let second = writes.leave(Hints::PENDING, nothing()).unwrap();
        assert!(writes.due(Hints::DUE | Hints::PROGRESS).is_none());
        writes.due(Hints::PENDING | Hints::PROGRESS).unwrap().end(Ok(()));
        assert_eq!(first.take_back(), Some(Ok(())));
        assert_eq!(second.take_back(), None, "one a transaction");
        assert!(writes.due(Hints::PENDING).is_none(), "what was taken back is not run");
    }

    #[test]
    fn taking_back_waits_for_a_transaction_that_has_begun() {
        let writes = StandingWrites::default();
        let standing = writes.leave(Hints::PENDING, nothing()).unwrap();
        let due = writes.due(Hints::PENDING).unwrap();
        let taking = std::thread::spawn(move || standing.take_back());
        assert!(!taking.is_finished());
        let refused = Error::invalid("write", "refused");
        due.end(Err(refused.clone()));
        assert_eq!(taking.join().unwrap(), Some(Err(refused)));
    }

    #[test]
    fn nobody_waits_for_a_transaction_that_was_given_up() {
        let writes = StandingWrites::default();
        let standing = writes.leave(Hints::PENDING, nothing()).unwrap();
        drop(writes.due(Hints::PENDING).unwrap());
        assert!(standing.take_back().unwrap().is_err());
    }

    #[test]
    fn only_so_many_wait_and_what_was_taken_back_does_not() {
        let writes = StandingWrites::default();
        let mut all: Vec<Standing> =
            (0..STANDING_MAX).map(|_| writes.leave(Hints::PENDING, nothing()).unwrap()).collect();
        assert!(writes.leave(Hints::PENDING, nothing()).is_none());
        drop(all.pop());
        assert!(writes.leave(Hints::PENDING, nothing()).is_some());
    }
}
