//! What `-o json` prints: a public, stable form, documented for scripts.
//!
//! Instants are RFC 3339 in UTC with milliseconds, durations are whole milliseconds, and what is
//! absent is `null`. The fields are in the order in which they are printed.

mod file;
mod job;
mod log;
mod queue;
mod run;
mod schedule;
mod stats;
mod why;
mod workflow;

pub(crate) use file::{FileError, ValidatedFile};
pub(crate) use job::{InspectedJob, JobView};
pub(crate) use log::LogView;
pub(crate) use queue::QueueView;
pub(crate) use run::{InspectedRun, RunView, SubmittedView};
pub(crate) use schedule::{BackfillView, InspectedSchedule, OccurrenceView, ScheduleView, UnstartedView};
pub(crate) use stats::StatsView;
pub(crate) use why::{ReasonView, WhyView};
pub(crate) use workflow::{AppliedView, DefinitionView, RegistrationView, VersionView};

use serde_json::Value;

use crate::time;

fn instant(at_ms: Option<i64>) -> Option<String> {
    at_ms.map(time::rfc3339)
}

fn duration_ms(started_at: Option<i64>, finished_at: Option<i64>) -> Option<i64> {
    Some((finished_at? - started_at?).max(0))
}

/// JSON from the tables. What is no JSON (another program wrote it) is shown as text.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
