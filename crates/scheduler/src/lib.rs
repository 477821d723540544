//! What time does in Windlass: makes due jobs claimable, stops runs whose time is over, takes back the
//! jobs of dead workers. Any number of schedulers may be alive on one database: every change is a
//! guarded update, so what one has done the others find done.

mod rescue;

use std::thread::JoinHandle;
use std::time::Duration;

use windlass_engine::signal::{Hints, Listener};
use windlass_engine::{Error, Result, Store};

pub use rescue::Watchman;

/// How often the workers are looked at: how fast the death of one is noticed.
const RESCUE_TICK: Duration = Duration::from_millis(500);
/// A failing database is tried again after this time.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A running scheduler. Dropping it ends its thread.
pub struct Scheduler {
    listener: Listener,
    thread: Option<JoinHandle<()>>,
}

impl Scheduler {
    /// Starts the scheduler's thread.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(store: &Store) -> Result<Scheduler> {
        store.watch();
        let listener = store.listen(Hints::DUE | Hints::STOP);
        let (inbox, store) = (listener.clone(), store.clone());
        let thread = std::thread::Builder::new()
            .name("windlass-scheduler".to_owned())
            .spawn(move || serve(&store, &inbox))
            .map_err(|error| Error::internal("start the scheduler", error.to_string()))?;
        Ok(Scheduler { listener, thread: Some(thread) })
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.listener.raise(Hints::STOP);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn serve(store: &Store, inbox: &Listener) {
    let mut watchman = Watchman::default();
    let mut failing = false;
    loop {
        let wait = match turn(store, &mut watchman) {
            Ok(wait) => {
                failing = false;
                wait
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "the scheduler can't use the database; trying on");
                }
                RETRY_PAUSE
            }
        };
        if inbox.wait(wait).intersects(Hints::STOP) {
            return;
        }
    }
}

/// Does what is due and returns how long nothing will be.
fn turn(store: &Store, watchman: &mut Watchman) -> Result<Duration> {
    watchman.look(store)?;
    let next_at = promote(store)?;
    Ok(store.clock().until(next_at, RESCUE_TICK))
}

/// Makes everything due claimable, batch by batch; returns when the next is due.
fn promote(store: &Store) -> Result<Option<i64>> {
    let mut next_at = store.next_due()?;
    while next_at.is_some_and(|at_ms| at_ms <= store.clock().now_ms()) {
        let due = store.promote_due()?;
        next_at = due.next_at;
        if due.promoted == 0 && due.expired == 0 {
            // Another scheduler was faster.
            break;
        }
    }
    Ok(next_at)
}
