//! The order of the tables of jobs: `jobs`, then one of `on_success`, `on_failure` and `on_cancel`, then `finally`.

use crate::model::RunHandler;

/// When the jobs of one table are over, for the jobs of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// They are over before.
    Before,
    /// It is the same table, so `needs` decides.
    Same,
    /// They are not over, or are not executed in the same run.
    NotBefore,
}

/// When the jobs of `other` are over, for the jobs of `own`. Nothing stands for the table `jobs`.
pub(crate) fn order(own: Option<RunHandler>, other: Option<RunHandler>) -> Order {
    let phase = |handler: Option<RunHandler>| handler.map_or(0, RunHandler::phase);
    if own == other {
        Order::Same
    } else if phase(other) < phase(own) {
        Order::Before
    } else {
        Order::NotBefore
    }
}
