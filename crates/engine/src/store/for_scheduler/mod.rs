//! What the scheduler and the upkeep thread call: due jobs, rescue, reports of other workers, retention.

pub(in crate::store) mod clock_steps;
pub(in crate::store) mod deadlines;
pub(in crate::store) mod decisions;
pub(in crate::store) mod dispatch;
pub(in crate::store) mod due;
pub(in crate::store) mod prune;
pub(in crate::store) mod reconcile;
pub(in crate::store) mod reports;
pub(in crate::store) mod rescue;
mod run_ends;
mod run_slots;
pub(in crate::store) mod slots;
