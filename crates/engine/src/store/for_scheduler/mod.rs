//! What the scheduler and the upkeep thread do: what time does to jobs and runs, and what dead workers leave.

pub(in crate::store) mod clock_steps;
pub(in crate::store) mod due;
pub(in crate::store) mod prune;
pub(in crate::store) mod reconcile;
pub(in crate::store) mod reports;
pub(in crate::store) mod rescue;
pub(in crate::store) mod slots;
