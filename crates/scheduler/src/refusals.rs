//! Tasks that the database refuses: logged once, and no reason to leave out the others.

use std::collections::HashSet;

use windlass_engine::{Error, Result};

/// Which tasks were refused when they were tried last.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    refused: HashSet<&'static str>,
}

impl Refusals {
    /// Turns the refusal of a task into `None`, because one row that another program spoilt must not keep the scheduler
    /// from its other tasks. A database that can't be used refuses all of them, so that error stays one.
    pub(crate) fn tolerate<T>(&mut self, task: &'static str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => {
                self.refused.remove(task);
                Ok(Some(value))
            }
            Err(error @ Error::Unavailable { .. }) => Err(error),
            Err(error) => {
                if self.refused.insert(task) {
                    tracing::error!(%error, "the scheduler can't {task}; it tries again, and does its other tasks");
                }
                Ok(None)
            }
        }
    }
}
