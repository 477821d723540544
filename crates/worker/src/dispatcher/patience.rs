//! Waiting for a database that can't be used for now.

use std::time::Duration;

use super::super::shared::{Asking, Mode, Shared};
use super::Dispatcher;
use windlass_db::error::Result;

/// Waits between tries.
const RETRY_MIN: Duration = Duration::from_millis(20);
const RETRY_MAX: Duration = Duration::from_secs(1);

impl Dispatcher<'_> {
    /// Repeats what failed because the database can't be used for now: says so once, goes on by itself,
    /// and gives up after the worker's patience, or when the worker leaves.
    pub(super) fn retrying<T>(
        &mut self,
        what: &str,
        mut operation: impl FnMut(&Shared) -> Result<T>,
    ) -> Result<T> {
        let clock = self.shared.store.clock();
        let began_ms = clock.monotonic_ms();
        let mut pause = RETRY_MIN;
        self.desk.is_repeat = false;
        loop {
            self.shared.set_asking(Asking::Begins);
            let answer = operation(self.shared);
            self.shared.set_asking(Asking::Ends);
            let error = match answer {
                Ok(value) => {
                    if self.desk.is_repeat {
                        tracing::warn!("the database can be used again");
                    }
                    return Ok(value);
                }
                Err(error) => error,
            };
            // It may have been heard all the same.
            self.desk.check_at_ms = began_ms;
            let waited_ms = clock.monotonic_ms() - began_ms;
            let patience_over = self.shared.options.patience_ms.is_some_and(|most_ms| waited_ms >= most_ms);
            if !error.is_passing() || patience_over || self.shared.mode() == Mode::Leaving {
                return Err(error);
            }
            if !std::mem::replace(&mut self.desk.is_repeat, true) {
                tracing::warn!(%error, "{what}: waiting for the database; results are kept");
            }
            self.shared.leaving.wait_for(pause);
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}
