//! A database whose calls a test can refuse: a single call, or all calls after some commit, as if the process had
//! died.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use windlass_db::{
    Capabilities, Connection, Database, Dialect, Query, Recovery, Row, Statement, Value, WriteOperation,
};
use windlass_engine::{Error, Result, Unavailable};
use windlass_system::wake_ups::{WakeUpChannel, WakeUps};

/// A call of the database, by its method. All methods that can fail are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    Read,
    /// With the name of the transaction.
    Write(&'static str),
    Run,
    QueryAll,
    Execute,
    ExecuteWithNext,
    Batch,
}

impl Call {
    pub fn method(self) -> &'static str {
        match self {
            Call::Read => "read",
            Call::Write(_name) => "write",
            Call::Run => "run",
            Call::QueryAll => "query_all",
            Call::Execute => "execute",
            Call::ExecuteWithNext => "execute_with_next",
            Call::Batch => "batch",
        }
    }
}

/// What a test does before a call. An error is returned to the caller, and the call is not made.
pub type Before = Arc<dyn Fn(Call) -> Result<()> + Send + Sync>;

/// Passes calls from a store to its database.
pub struct Faulty {
    inner: Arc<dyn Database>,
    before: Before,
}

impl Faulty {
    pub fn new(inner: Arc<dyn Database>, before: Before) -> Arc<Faulty> {
        Arc::new(Faulty { inner, before })
    }
}

fn refused(call: Call) -> Error {
    Error::unavailable(call.method(), Unavailable::Closed)
}

/// Refuses one call.
pub struct Refusal {
    calls_before: AtomicUsize,
    refused: Mutex<Option<Call>>,
}

impl Refusal {
    /// Calls are counted from 0.
    pub fn of_call(number: usize) -> Arc<Refusal> {
        Arc::new(Refusal { calls_before: AtomicUsize::new(number), refused: Mutex::default() })
    }

    /// The refused call, once it was made.
    pub fn refused(&self) -> Option<Call> {
        *self.refused.lock().unwrap()
    }

    pub fn before(self: &Arc<Refusal>) -> Before {
        let refusal = Arc::clone(self);
        Arc::new(move |call| {
            let is_early = take_one(&refusal.calls_before);
            if is_early || refusal.refused().is_some() {
                return Ok(());
            }
            *refusal.refused.lock().unwrap() = Some(call);
            Err(refused(call))
        })
    }
}

/// Takes one, and returns whether one was left.
fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

/// A process that dies when it begins another transaction after so many.
#[derive(Default)]
pub struct Death {
    commits_left: AtomicUsize,
    has_come: AtomicBool,
}

impl Death {
    pub fn after(commits: usize) -> Arc<Death> {
        Arc::new(Death { commits_left: AtomicUsize::new(commits), has_come: AtomicBool::new(false) })
    }

    /// Transactions that may still begin.
    pub fn commits_left(&self) -> usize {
        self.commits_left.load(Ordering::SeqCst)
    }

    pub fn has_come(&self) -> bool {
        self.has_come.load(Ordering::SeqCst)
    }

    pub fn before(self: &Arc<Death>) -> Before {
        let death = Arc::clone(self);
        Arc::new(move |call| {
            // A transaction of another thread that has begun already is still committed.
            let begins = matches!(call, Call::Read | Call::Write(_));
            if begins && death.has_come() {
                return Err(refused(call));
            }
            if matches!(call, Call::Write(_)) && !take_one(&death.commits_left) {
                death.has_come.store(true, Ordering::SeqCst);
                return Err(refused(call));
            }
            Ok(())
        })
    }
}

struct FaultyConnection<'a> {
    inner: &'a mut dyn Connection,
    before: &'a Before,
}

impl Connection for FaultyConnection<'_> {
    fn run(
        &mut self,
        statement: Statement,
        parameters: &[Value<'_>],
        on_row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        (self.before)(Call::Run)?;
        self.inner.run(statement, parameters, on_row)
    }

    fn query_all(&mut self, questions: &mut [Query<'_>]) -> Result<()> {
        (self.before)(Call::QueryAll)?;
        self.inner.query_all(questions)
    }

    fn execute_with_next(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<()> {
        (self.before)(Call::ExecuteWithNext)?;
        self.inner.execute_with_next(sql, parameters)
    }

    fn execute(&mut self, sql: &'static str, parameters: &[Value<'_>]) -> Result<u64> {
        (self.before)(Call::Execute)?;
        self.inner.execute(sql, parameters)
    }

    fn batch(&mut self, sql: &str) -> Result<()> {
        (self.before)(Call::Batch)?;
        self.inner.batch(sql)
    }

    fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    fn wake(&mut self, wake_ups: WakeUps) {
        self.inner.wake(wake_ups);
    }
}

impl Database for Faulty {
    fn read(&self, operation: &mut dyn FnMut(&mut dyn Connection) -> Result<()>) -> Result<()> {
        (self.before)(Call::Read)?;
        self.inner.read(&mut |inner| operation(&mut FaultyConnection { inner, before: &self.before }))
    }

    fn write(&self, name: &'static str, mut operation: WriteOperation, recovery: Recovery) -> Result<()> {
        (self.before)(Call::Write(name))?;
        let before = Arc::clone(&self.before);
        let operation =
            move |inner: &mut dyn Connection| operation(&mut FaultyConnection { inner, before: &before });
        self.inner.write(name, Box::new(operation), recovery)
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
