//! A database that hangs, refuses, is slow, or loses answers when a test says so.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use windlass::{Clock, Error, Result, Unavailable};
use windlass_db::{Capabilities, Connection, Database, Recovery, WriteOperation};
use windlass_system::wake_ups::WakeUpChannel;

/// Passes calls from an engine to its database.
pub(crate) struct Faulty {
    inner: Arc<dyn Database>,
    faults: Mutex<Vec<Fault>>,
    changed: Condvar,
}

/// A fault that affects some calls.
#[derive(Clone)]
pub(crate) struct Fault {
    what: Which,
    how: How,
}

/// Which calls a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// All calls.
    All,
    /// Writes with this name.
    Write(&'static str),
}

/// How the calls fail.
#[derive(Clone)]
pub(crate) enum How {
    /// They wait until the fault is removed, and then do their work.
    Hang,
    /// They return an error and do nothing.
    Refuse(Unavailable),
    /// They wait for this long before they begin.
    Delay(Duration),
    /// The next calls, up to this number, do their work and report an unknown outcome.
    LoseAnswer(usize),
    /// The next call does its work, and returns after the clock has advanced by so many milliseconds. Later calls do
    /// nothing.
    AnswerLate(Clock, i64),
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Database>) -> Faulty {
        Faulty { inner, faults: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a fault.
    pub(crate) fn fail(&self, what: Which, how: How) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(Fault { what, how });
    }

    /// Removes all faults.
    pub(crate) fn mend(&self) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.changed.notify_all();
    }

    /// Whether no more answers are to be lost.
    pub(crate) fn has_lost_all(&self) -> bool {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        !faults.iter().any(|fault| matches!(fault.how, How::LoseAnswer(left) if left > 0))
    }

    /// Applies the faults before a call. If this returns an error, the call does nothing else.
    fn before(&self, name: Option<&'static str>) -> Result<()> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut delay = Duration::ZERO;
        while let Some(fault) = faults.iter().find(|fault| fault.is_of(name)).cloned() {
            match fault.how {
                How::Hang => {
                    faults = self.changed.wait(faults).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                How::Refuse(reason) => return Err(Error::unavailable(name.unwrap_or("read"), reason)),
                How::Delay(how_long) => delay = how_long,
                How::LoseAnswer(_) | How::AnswerLate(..) => {}
            }
            break;
        }
        drop(faults);
        std::thread::sleep(delay);
        Ok(())
    }

    fn answer_late(&self, name: &'static str) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        for fault in faults.iter_mut().filter(|fault| fault.is_of(Some(name))) {
            if let How::AnswerLate(clock, by_ms) = fault.how.clone() {
                // This comes first, so that no thread that sees the new time can make a call.
                fault.how = How::Refuse(Unavailable::Unreachable("the test says so".to_owned()));
                clock.advance_ms(by_ms);
            }
        }
    }

    fn loses_answer(&self, name: &'static str) -> bool {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.iter_mut().filter(|fault| fault.is_of(Some(name))).any(|fault| match &mut fault.how {
            How::LoseAnswer(left) if *left > 0 => {
                *left -= 1;
                true
            }
            How::LoseAnswer(_) | How::AnswerLate(..) | How::Hang | How::Refuse(_) | How::Delay(_) => false,
        })
    }
}

impl Fault {
    fn is_of(&self, name: Option<&'static str>) -> bool {
        match self.what {
            Which::All => true,
            Which::Write(wanted) => name == Some(wanted),
        }
    }
}

impl Database for Faulty {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.before(None)?;
        self.inner.read(operation)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
        self.before(Some(name))?;
        self.inner.write(name, operation, recovery)?;
        self.answer_late(name);
        if self.loses_answer(name) {
            return Err(Error::unavailable(name, Unavailable::CommitUnknown));
        }
        Ok(())
    }

    fn wake_ups(&self) -> &WakeUpChannel {
        self.inner.wake_ups()
    }

    fn watch(&self) {
        self.inner.watch();
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}
