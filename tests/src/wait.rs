//! Waits for a condition with a deadline.

use std::thread;
use std::time::{Duration, Instant};

/// How long a test waits for a condition. The time is generous, because machines are shared.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// The time between two checks of a condition.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Calls `probe` until it returns a value. Panics after [`PATIENCE`]; `what` names the condition.
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, probe).unwrap_or_else(|| panic!("waited {PATIENCE:?} in vain for {what}"))
}

/// Calls `probe` until it returns a value or `limit` has passed.
pub fn within<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(found) = probe() {
            return Some(found);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_what_the_probe_found() {
        let mut looks = 0;
        let found = within(PATIENCE, || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, Some(3));
    }

    #[test]
    fn gives_up_at_the_limit() {
        assert_eq!(within(Duration::from_millis(20), || None::<()>), None);
    }
}
