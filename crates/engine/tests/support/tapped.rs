//! A database that shows each statement to a test before it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use windlass_db::{
    Capabilities, Connection, Database, Dialect, Recovery, Row, Statement, Value, WriteOperation,
};
use windlass_engine::Result;
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

/// Called inside the transaction with each statement and its parameters.
pub type Tap = Arc<dyn Fn(&mut dyn Connection, Statement, &[Value<'_>]) -> Result<()> + Send + Sync>;

/// A database that shows its statements.
pub struct Tapped<D> {
    pub inner: D,
    pub tap: Tap,
    /// How many transactions are open now, in all databases that share the counter.
    pub open: Arc<AtomicUsize>,
}

impl<D: Database> Tapped<D> {
    pub fn new(inner: D, tap: Tap) -> Tapped<D> {
        Tapped { inner, tap, open: Arc::default() }
    }
}

/// A connection inside a transaction of such a database.
struct TappedConnection<'a> {
    inner: &'a mut dyn Connection,
    tap: &'a Tap,
}

impl Connection for TappedConnection<'_> {
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        (self.tap)(self.inner, statement, parameters)?;
        self.inner.run(statement, parameters, on_row)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64> {
        (self.tap)(self.inner, Statement::Plain(sql), parameters)?;
        self.inner.execute(sql, parameters)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        self.inner.batch(sql)
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn wake(&mut self, wake_ups: WakeUps) {
        self.inner.wake(wake_ups);
    }
}

fn within(
    inner: &mut dyn Connection,
    tap: &Tap,
    open: &AtomicUsize,
    operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>,
) -> Result<()> {
    open.fetch_add(1, Ordering::SeqCst);
    let result = operation(&mut TappedConnection { inner, tap });
    open.fetch_sub(1, Ordering::SeqCst);
    result
}

impl<D: Database> Database for Tapped<D> {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        self.inner.read(&mut |inner| within(inner, &self.tap, &self.open, operation))
    }

    fn write(&self, name: &'static str, mut operation: WriteOperation, recovery: Recovery) -> Result<()> {
        let (tap, open) = (Arc::clone(&self.tap), Arc::clone(&self.open));
        let operation =
            Box::new(move |inner: &mut dyn Connection| within(inner, &tap, &open, &mut *operation));
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
