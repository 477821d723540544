//! The live progress of a run.
//!
//! [`tracker`] turns the states of jobs into events and counts. [`lines`] formats the events, and [`frame`] draws
//! the live view. These three are pure. [`display`] chooses between a live view on a terminal and plain lines in
//! a pipe, and [`screen`] writes.

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

    use windlass_engine::JobStatus;

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
