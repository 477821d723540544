//! A database that loses an answer on request: before the transaction, or after its commit.

use std::sync::{Arc, Mutex};

use windlass_db::error::Unavailable;
use windlass_db::{Capabilities, Connection, Database, Recovery, WriteOperation};
use windlass_engine::{Error, Result};
use windlass_system::wake_ups::WakeUpChannel;

/// When the caller loses contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Before the transaction.
    BeforeTransaction,
    /// After its commit.
    AfterCommit,
}

/// The fault of the next write. Cheap to clone; all clones share it.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    next: Arc<Mutex<Option<Fault>>>,
}

impl Faults {
    /// Makes the next write lose its answer.
    pub fn arm(&self, fault: Fault) {
        *self.next.lock().unwrap() = Some(fault);
    }

    /// Removes the fault, if no write has met it yet.
    pub fn take(&self) -> Option<Fault> {
        self.next.lock().unwrap().take()
    }
}

pub struct UnreliableDatabase {
    pub inner: Arc<dyn Database>,
    pub faults: Faults,
}

impl Database for UnreliableDatabase {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.inner.read(operation)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
        let lost = || Err(Error::unavailable(name, Unavailable::Unreachable("the simulation".to_owned())));
        match self.faults.take() {
            None => self.inner.write(name, operation, recovery),
            Some(Fault::BeforeTransaction) => lost(),
            Some(Fault::AfterCommit) => {
                self.inner.write(name, operation, recovery)?;
                lost()
            }
        }
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
