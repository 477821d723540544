#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use super::*;

/// A connection with a number.
#[derive(Debug)]
struct Number {
    number: u32,
    is_broken: bool,
}

impl Poolable for Number {
    fn is_broken(&self) -> bool {
        self.is_broken
    }
}

/// Makes connections and counts them.
#[derive(Default)]
struct Maker(Cell<u32>);

impl Maker {
    fn make(&self) -> Result<Number, &'static str> {
        self.0.set(self.0.get() + 1);
        Ok(Number { number: self.0.get(), is_broken: false })
    }
}

fn get(pool: &Pool<Number>, maker: &Maker) -> Result<Pooled<Number>, NoConnection<&'static str>> {
    pool.get(|| maker.make(), |_error| false)
}

const TIMEOUT: Duration = Duration::from_millis(50);

#[test]
fn a_connection_is_used_again_unless_it_is_broken() {
    let (pool, maker) = (Pool::new(2, TIMEOUT), Maker::default());
    drop(get(&pool, &maker).unwrap());
    let mut again = get(&pool, &maker).unwrap();
    assert_eq!(again.number, 1);
    again.is_broken = true;
    drop(again);
    assert_eq!(get(&pool, &maker).unwrap().number, 2);
}

#[test]
fn connections_are_limited_and_a_waiting_caller_gets_one_that_comes_back() {
    let (pool, maker) = (Pool::new(2, Duration::from_secs(60)), Maker::default());
    let (first, second) = (get(&pool, &maker).unwrap(), get(&pool, &maker).unwrap());
    assert_eq!((first.number, second.number), (1, 2));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| pool.get(|| Err::<Number, _>("a third"), |_| true).unwrap().number);
        drop(second);
        assert_eq!(waiting.join().unwrap(), 2);
    });
    let impatient = Pool::new(1, TIMEOUT);
    let _held = get(&impatient, &maker).unwrap();
    assert!(matches!(get(&impatient, &maker), Err(NoConnection::InUse(waited)) if waited >= TIMEOUT));
}

#[test]
fn an_error_is_tried_again_until_the_timeout_and_a_final_one_is_returned_at_once() {
    let pool: Pool<Number> = Pool::new(1, Duration::from_secs(60));
    let tries = Cell::new(0);
    let third = || {
        tries.set(tries.get() + 1);
        if tries.get() < 3 { Err("not yet") } else { Ok(Number { number: 7, is_broken: false }) }
    };
    assert_eq!(pool.get(third, |_error| false).unwrap().number, 7);
    let pool: Pool<Number> = Pool::new(1, Duration::from_secs(60));
    let told = pool.get(|| Err("for good"), |error| *error == "for good");
    assert!(matches!(told, Err(NoConnection::Failed("for good"))));
    let pool: Pool<Number> = Pool::new(1, TIMEOUT);
    assert!(matches!(pool.get(|| Err("no"), |_| false), Err(NoConnection::Failed("no"))));
    assert!(get(&pool, &Maker::default()).is_ok(), "there is still room for one");
}

#[test]
fn a_panic_while_connecting_does_not_use_up_a_connection() {
    let (pool, maker) = (Pool::new(1, TIMEOUT), Maker::default());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let panic = || -> Result<Number, &'static str> { std::panic::resume_unwind(Box::new("on purpose")) };
        pool.get(panic, |_error| false).map(|_connection| ()).unwrap();
    }));
    assert!(panicked.is_err());
    assert!(get(&pool, &maker).is_ok());
}

#[test]
fn a_connection_that_was_unused_for_long_is_removed() {
    let now = Instant::now();
    let long_ago = now.checked_sub(IDLE_MAX).unwrap();
    let mut state = PoolState { idle: vec![("old", long_ago), ("young", now)], count: 3 };
    assert_eq!(state.take_expired(now).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), ["old"]);
    assert_eq!((state.idle.len(), state.count), (1, 2), "one is in use");
}
