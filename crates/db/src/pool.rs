//! Connections that are used again. Who asks for one makes it in its own thread, so a pool needs no thread.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Most transactions are over sooner than a connection is made: who finds none waits this long for one to come back.
const RETURN_WAIT: Duration = Duration::from_millis(5);
/// The pause after a connection could not be made.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A connection that nobody used for so long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// A pool. Cheap to clone; all clones are one.
pub(super) struct Pool<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    most: usize,
    /// How long a caller waits at most.
    patience: Duration,
    state: Mutex<State<T>>,
    returned: Condvar,
}

struct State<T> {
    /// Each with the time of its return; the last that came back is the first that is used again.
    idle: Vec<(T, Instant)>,
    /// How many there are, idle and in use, and being made.
    count: usize,
}

/// A connection that goes back to its pool when it is dropped.
pub(super) struct Pooled<T: Connectable> {
    shared: Arc<Shared<T>>,
    connection: Option<T>,
}

/// What a pool holds.
pub(super) trait Connectable {
    /// It can't be used again, and is closed instead of returned.
    fn is_broken(&self) -> bool;
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoConnection<E> {
    /// All are in use, for longer than the pool's patience.
    InUse(Duration),
    /// None could be made; the last error.
    Failed(E),
}

impl<T: Connectable> Pool<T> {
    pub(super) fn new(most: usize, patience: Duration) -> Pool<T> {
        let state = Mutex::new(State { idle: Vec::new(), count: 0 });
        Pool { shared: Arc::new(Shared { most, patience, state, returned: Condvar::new() }) }
    }

    /// A connection that is idle or comes back soon, else one that `connect` makes. An error of `connect` is tried again
    /// until the pool's patience is over, unless `is_final` says that this does not help.
    pub(super) fn get<E>(
        &self,
        connect: impl Fn() -> Result<T, E>,
        is_final: impl Fn(&E) -> bool,
    ) -> Result<Pooled<T>, NoConnection<E>> {
        let began = Instant::now();
        let mut failed = None;
        let mut state = self.shared.lock();
        loop {
            if let Some((connection, _since)) = state.idle.pop() {
                return Ok(self.pooled(connection));
            }
            let waited = began.elapsed();
            if waited >= self.shared.patience {
                return Err(failed.map_or(NoConnection::InUse(waited), NoConnection::Failed));
            }
            let may_come_back = state.count > 0 && waited < RETURN_WAIT;
            if state.count >= self.shared.most {
                state = self.shared.wait(state, self.shared.patience - waited);
            } else if may_come_back {
                state = self.shared.wait(state, RETURN_WAIT - waited);
            } else {
                state.count += 1;
                drop(state);
                let making = Making { shared: &self.shared };
                match connect() {
                    Ok(connection) => {
                        std::mem::forget(making);
                        return Ok(self.pooled(connection));
                    }
                    Err(error) => {
                        drop(making);
                        if is_final(&error) {
                            return Err(NoConnection::Failed(error));
                        }
                        failed = Some(error);
                    }
                }
                state = self.shared.lock();
                if state.idle.is_empty() {
                    state = self.shared.wait(state, RETRY_PAUSE);
                }
            }
        }
    }

    fn pooled(&self, connection: T) -> Pooled<T> {
        Pooled { shared: Arc::clone(&self.shared), connection: Some(connection) }
    }
}

/// A connection is being made. Also after a panic there is room for another.
struct Making<'a, T> {
    shared: &'a Shared<T>,
}

impl<T> Drop for Making<'_, T> {
    fn drop(&mut self) {
        self.shared.lock().count -= 1;
        self.shared.returned.notify_one();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>, longest: Duration) -> MutexGuard<'a, State<T>> {
        self.returned.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T> State<T> {
    /// Takes out what nobody has used for long: the first came back first.
    fn take_old(&mut self, now: Instant) -> Vec<(T, Instant)> {
        let old = self.idle.iter().take_while(|(_, since)| now.duration_since(*since) >= IDLE_MAX).count();
        self.count -= old;
        self.idle.drain(..old).collect()
    }
}

impl<T: Connectable> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let now = Instant::now();
        let mut state = self.shared.lock();
        let old = state.take_old(now);
        let broken = if connection.is_broken() {
            state.count -= 1;
            Some(connection)
        } else {
            state.idle.push((connection, now));
            None
        };
        drop(state);
        self.shared.returned.notify_one();
        // Closing may take a while: nobody waits for it.
        drop((old, broken));
    }
}

impl<T: Connectable> Deref for Pooled<T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only dropping takes it")]
    fn deref(&self) -> &T {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Connectable> DerefMut for Pooled<T> {
    #[allow(clippy::expect_used, reason = "only dropping takes it")]
    fn deref_mut(&mut self) -> &mut T {
        self.connection.as_mut().expect("it is there until it is dropped")
    }
}

#[cfg(test)]
mod tests;
