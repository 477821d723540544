//! A pool of connections. The thread that needs a new connection makes it, so the pool needs no thread of its own.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a caller waits for a connection to come back before it makes a new one. Most transactions are shorter than
/// connecting.
const RETURN_WAIT: Duration = Duration::from_millis(5);
/// The pause after a failed attempt to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// A connection that was unused for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(600);

/// A pool of connections.
pub(super) struct Pool<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    connections_max: usize,
    /// How long a caller waits at most.
    timeout: Duration,
    state: Mutex<PoolState<T>>,
    returned: Condvar,
}

struct PoolState<T> {
    /// Each with the time of its return. The last one that came back is the first one that is used again.
    idle: Vec<(T, Instant)>,
    /// All connections: idle, in use, and being made.
    count: usize,
}

/// A connection that goes back to its pool when it is dropped.
pub(super) struct Pooled<T: Poolable> {
    shared: Arc<Shared<T>>,
    connection: Option<T>,
}

/// A connection that a pool can hold.
pub(super) trait Poolable {
    /// Whether it can't be used again. Then it is closed and not returned to the pool.
    fn is_broken(&self) -> bool;
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NoConnection<E> {
    /// All were in use for this long, the pool's timeout.
    InUse(Duration),
    /// None could be made. The last error.
    Failed(E),
}

impl<T: Poolable> Pool<T> {
    pub(super) fn new(connections_max: usize, timeout: Duration) -> Pool<T> {
        let state = Mutex::new(PoolState { idle: Vec::new(), count: 0 });
        Pool { shared: Arc::new(Shared { connections_max, timeout, state, returned: Condvar::new() }) }
    }

    /// Returns a connection that is idle or comes back soon, otherwise one that `connect` makes. If `connect` fails it is
    /// tried again until the pool's timeout, unless `is_final` says that this does not help.
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
            if waited >= self.shared.timeout {
                return Err(failed.map_or(NoConnection::InUse(waited), NoConnection::Failed));
            }
            let may_come_back = state.count > 0 && waited < RETURN_WAIT;
            if state.count >= self.shared.connections_max {
                state = self.shared.wait(state, self.shared.timeout - waited);
            } else if may_come_back {
                state = self.shared.wait(state, RETURN_WAIT - waited);
            } else {
                state.count += 1;
                drop(state);
                let reservation = Reservation { shared: &self.shared };
                match connect() {
                    Ok(connection) => {
                        std::mem::forget(reservation);
                        return Ok(self.pooled(connection));
                    }
                    Err(error) => {
                        drop(reservation);
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

/// Counts a connection that is being made. If that fails or panics, dropping the reservation frees its place.
struct Reservation<'a, T> {
    shared: &'a Shared<T>,
}

impl<T> Drop for Reservation<'_, T> {
    fn drop(&mut self) {
        self.shared.lock().count -= 1;
        self.shared.returned.notify_one();
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, PoolState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, PoolState<T>>,
        longest: Duration,
    ) -> MutexGuard<'a, PoolState<T>> {
        self.returned.wait_timeout(state, longest).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T> PoolState<T> {
    /// Removes the connections that were unused for too long. The first ones came back first.
    fn take_expired(&mut self, now: Instant) -> Vec<(T, Instant)> {
        let expired =
            self.idle.iter().take_while(|(_, since)| now.duration_since(*since) >= IDLE_MAX).count();
        self.count -= expired;
        self.idle.drain(..expired).collect()
    }
}

impl<T: Poolable> Drop for Pooled<T> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let now = Instant::now();
        let mut state = self.shared.lock();
        let expired = state.take_expired(now);
        let broken = if connection.is_broken() {
            state.count -= 1;
            Some(connection)
        } else {
            state.idle.push((connection, now));
            None
        };
        drop(state);
        self.shared.returned.notify_one();
        // Closed without the lock, because closing may take a while.
        drop((expired, broken));
    }
}

impl<T: Poolable> Deref for Pooled<T> {
    type Target = T;

    #[allow(clippy::expect_used, reason = "only drop takes the connection")]
    fn deref(&self) -> &T {
        self.connection.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: Poolable> DerefMut for Pooled<T> {
    #[allow(clippy::expect_used, reason = "only dropping takes it")]
    fn deref_mut(&mut self) -> &mut T {
        self.connection.as_mut().expect("it is there until it is dropped")
    }
}

#[cfg(test)]
mod tests;
