//! The live progress of a run.
//!
//! [`tracker`] turns the states of jobs into events and counts. [`lines`] formats the events, and [`frame`] draws
//! the live view. These three are pure. [`display`] chooses between a live view on a terminal and plain lines in
//! a pipe, and [`screen`] writes. [`output_plan`] decides which output of jobs is shown, and [`output_lines`] formats it.

mod display;
mod frame;
mod lines;
mod output_lines;
mod output_plan;
mod screen;
mod tracker;

pub(crate) use display::{Display, FailedOutput};
pub(crate) use output_plan::{Order, OutputPlan, Shown, Streamed};
pub(crate) use screen::stderr_beside_view;
pub(crate) use tracker::{Change, JobState, Tracker};

#[cfg(test)]
pub(crate) mod examples {
    //! Jobs for the tests.

    use windlass_engine::JobStatus;

    use super::output_plan::Place;
    use super::{JobState, Order, OutputPlan};
    use crate::arguments::Show;

    /// Every line is shown.
    pub(crate) fn everything() -> OutputPlan {
        OutputPlan::of(Some(Show::All), Order::SideBySide, Place::Elsewhere)
    }

    pub(crate) fn job(id: i64, status: JobStatus) -> JobState {
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
