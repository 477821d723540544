//! Tasks that the database refuses. A refusal is logged once, and the other tasks continue.

use std::collections::HashSet;

use windlass_engine::{Error, Result};

/// The tasks whose last attempt was refused.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    refused: HashSet<&'static str>,
}

impl Refusals {
    /// Turns a refusal into `None`, because a row that another program made invalid must not stop the other tasks of the
    /// scheduler. An unavailable database stops all tasks, so this error is returned.
    pub(crate) fn tolerate<T>(&mut self, task: &'static str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => {
                self.refused.remove(task);
                Ok(Some(value))
            }
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) => {
                if self.refused.insert(task) {
                    tracing::error!(%error, "the scheduler can't {task}; trying again; its other tasks continue");
                }
                Ok(None)
            }
        }
    }
}
