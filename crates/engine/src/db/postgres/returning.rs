//! Waits a little for a connection that comes back to the pool, before another one is made.

use std::time::Duration;

use r2d2::{ManageConnection, Pool, PooledConnection};

/// How often a caller looks whether a connection came back before it has another one made, and how long it waits
/// between: most transactions are over sooner than that, and a server takes longer to make one. The pool by itself makes
/// one for each caller who waits, and again whenever another one was quicker.
const RETURN_LOOKS: u32 = 10;
const RETURN_TICK: Duration = Duration::from_micros(500);

/// A connection that lies in the pool or comes back soon, else a new one or the first that comes back.
pub(super) fn connection<M: ManageConnection>(pool: &Pool<M>) -> Result<PooledConnection<M>, r2d2::Error> {
    connection_pausing(pool, || std::thread::sleep(RETURN_TICK))
}

fn connection_pausing<M: ManageConnection>(
    pool: &Pool<M>,
    mut pause: impl FnMut(),
) -> Result<PooledConnection<M>, r2d2::Error> {
    for _look in 0..RETURN_LOOKS {
        if let Some(connection) = pool.try_get() {
            return Ok(connection);
        }
        if pool.state().connections == 0 {
            break;
        }
        pause();
    }
    pool.get()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Makes connections that are nothing but their numbers.
    #[derive(Clone, Default)]
    struct Numbers(Arc<AtomicU32>);

    impl Numbers {
        fn pool(&self) -> Pool<Numbers> {
            Pool::builder()
                .max_size(4)
                .min_idle(Some(0))
                .test_on_check_out(false)
                .build(self.clone())
                .unwrap()
        }

        fn made(&self) -> u32 {
            self.0.load(Ordering::SeqCst)
        }
    }

    impl ManageConnection for Numbers {
        type Connection = u32;
        type Error = Infallible;

        fn connect(&self) -> Result<u32, Infallible> {
            Ok(self.0.fetch_add(1, Ordering::SeqCst) + 1)
        }

        fn is_valid(&self, _connection: &mut u32) -> Result<(), Infallible> {
            Ok(())
        }

        fn has_broken(&self, _connection: &mut u32) -> bool {
            false
        }
    }

    #[test]
    fn a_connection_that_comes_back_soon_is_waited_for() {
        let numbers = Numbers::default();
        let pool = numbers.pool();
        for pauses in 1..RETURN_LOOKS {
            let mut held = Some(connection(&pool).unwrap());
            let mut paused = 0;
            let returned = connection_pausing(&pool, || {
                paused += 1;
                if paused == pauses {
                    held = None;
                }
            });
            assert_eq!(
                (*returned.unwrap(), paused, numbers.made()),
                (1, pauses, 1),
                "the same, and no other"
            );
        }
    }

    #[test]
    fn another_one_is_made_when_none_comes_back_and_at_once_where_there_is_none() {
        let numbers = Numbers::default();
        let pool = numbers.pool();
        let first = connection_pausing(&pool, || panic!("there is none that could come back")).unwrap();
        let mut paused = 0;
        let second = connection_pausing(&pool, || paused += 1).unwrap();
        assert_eq!((*first, *second, paused, numbers.made()), (1, 2, RETURN_LOOKS, 2));
    }
}
