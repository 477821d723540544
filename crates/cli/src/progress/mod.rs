//! The progress of a run, shown while it happens.
//!
//! [`tracker`] turns the states of jobs into events and a summary of what is going on; it is pure.
//! [`lines`] words the events, [`frame`] draws the live view; both are pure too. [`display`] chooses
//! between a live view on a terminal and one plain line a change in a pipe; [`screen`] writes.

mod display;
mod frame;
mod lines;
mod screen;
mod tracker;

pub(crate) use display::Display;
pub(crate) use screen::stderr_beside_view;
pub(crate) use tracker::{Change, Event, JobState, Tracker};

#[cfg(test)]
mod examples {
    //! Jobs for the tests.

    use windlass::JobStatus;

    use super::JobState;

    pub(super) fn job(id: i64, status: JobStatus) -> JobState {
        JobState {
            id,
            name: format!("job{id}"),
            status,
            attempt: 0,
            max_attempts: 1,
            failures: 0,
            interruptions: 0,
            execute_after_ms: 0,
            started_at_ms: None,
            finished_at_ms: None,
            updated_at_ms: 1_000,
            allow_failure: false,
            last_error: None,
        }
    }
}
