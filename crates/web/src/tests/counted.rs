//! A database that counts its transactions, and that can refuse to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use windlass_db::error::{Error, Unavailable};
use windlass_db::{Capabilities, Connection, Database, Recovery, Result, WriteOperation};
use windlass_system::wake_ups::WakeUpChannel;

pub(crate) struct Counted {
    inner: Arc<dyn Database>,
    pub(crate) counts: Arc<Counts>,
}

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) reads: AtomicUsize,
    pub(crate) writes: AtomicUsize,
    /// Reads fail.
    pub(crate) is_away: AtomicBool,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Database>) -> Counted {
        Counted { inner, counts: Arc::default() }
    }
}

impl Database for Counted {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.counts.reads.fetch_add(1, Ordering::SeqCst);
        if self.counts.is_away.load(Ordering::SeqCst) {
            return Err(Error::unavailable("read", Unavailable::Locked));
        }
        self.inner.read(operation)
    }

    fn read_together(&self, operation: &mut dyn FnMut()) {
        self.inner.read_together(operation);
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
        self.counts.writes.fetch_add(1, Ordering::SeqCst);
        self.inner.write(name, operation, recovery)
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
