//! Calls of the database by the dispatcher, and what follows if the database can't be used for now.

use std::time::Duration;

use super::outage::Outage;
use super::turn::Turn;
use crate::shared::{Asking, Mode, Shared};
use windlass_db::error::{Error, Result};

impl Turn<'_> {
    /// Calls the database, and notes when it can't be used. `what` is for the log.
    pub(super) fn ask<T>(&mut self, what: &str, question: impl FnOnce(&Shared) -> Result<T>) -> Result<T> {
        let clock = self.shared.clock();
        let began_ms = clock.monotonic_ms();
        self.shared.set_asking(Asking::Begins);
        let answer = question(self.shared);
        self.shared.set_asking(Asking::Ends);
        match &answer {
            Ok(_answer) => {
                if self.state.outage.take().is_some() {
                    tracing::warn!("the database can be used again");
                }
            }
            Err(error) => {
                // What was asked may have been committed although it failed: the tables know.
                self.state.check_at_ms = began_ms;
                if error.is_temporary() {
                    if self.state.outage.is_none() {
                        tracing::warn!(%error, "{what}: waiting for the database; results are kept");
                    }
                    let outage = Outage::after_failure(self.state.outage, began_ms, clock.monotonic_ms());
                    self.state.outage = Some(outage);
                }
            }
        }
        answer
    }

    /// For how long nothing is tried, because the last try has failed. A worker that leaves tries at once.
    pub(super) fn outage_pause(&self) -> Option<Duration> {
        let outage = self.state.outage.filter(|_outage| self.shared.mode() != Mode::Leaving)?;
        let left_ms = outage.retry_at_ms - self.shared.clock().monotonic_ms();
        (left_ms > 0).then(|| Duration::from_millis(left_ms.unsigned_abs()))
    }

    /// How long to wait after a turn failed.
    ///
    /// # Errors
    /// The same error, if waiting does not help, if the worker leaves, or if the outage was longer than the worker's
    /// patience.
    pub(super) fn wait_or_give_up(&self, error: Error) -> Result<Duration> {
        let Some(outage) = self.state.outage.filter(|_outage| error.is_temporary()) else {
            return Err(error);
        };
        let now_ms = self.shared.clock().monotonic_ms();
        let has_patience =
            self.shared.options.patience_ms.is_none_or(|patience_ms| now_ms - outage.since_ms < patience_ms);
        if !has_patience || self.shared.mode() == Mode::Leaving {
            return Err(error);
        }
        Ok(Duration::from_millis((outage.retry_at_ms - now_ms).max(0).unsigned_abs()))
    }
}
