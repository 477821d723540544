//! A database that counts the transactions that read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_db::{Capabilities, Connection, Database, Recovery, Result, WriteOperation};
use windlass_system::wake_ups::WakeUpChannel;

pub(crate) struct Counted {
    inner: Arc<dyn Database>,
    pub(crate) reads: Arc<AtomicUsize>,
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Database>) -> Counted {
        Counted { inner, reads: Arc::default() }
    }
}

impl Database for Counted {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.inner.read(operation)
    }

    fn write(&self, name: &'static str, operation: WriteOperation, recovery: Recovery) -> Result<()> {
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
