//! The JSON that Windlass shows to programs: a public, stable form, documented for scripts.
//!
//! Each view is made from rows of the store and does nothing but serialize, so that the command line
//! (`-o json`) and a web page show the same. Instants are RFC 3339 in UTC with milliseconds. Durations are
//! whole milliseconds. An absent value is `null`. Fields are printed in the order of the declaration.

mod accepted;
mod access;
mod artifact;
mod changed;
mod database;
mod doctor;
mod error;
mod file;
mod job;
mod log;
mod notification;
mod plan;
mod queue;
mod rate;
mod run;
mod schedule;
mod schema;
mod stats;
mod test;
mod time;
#[cfg(feature = "otlp")]
mod trace;
mod variable;
mod why;
mod workflow;
mod workflow_changes;
mod written_file;

pub use accepted::{EnqueuedView, SignalView};
pub use access::{AuditView, NewTokenView, OpenedView, TokenView};
pub use artifact::ArtifactView;
pub use changed::{
    CancelledJob, CancelledRun, ChangedJob, ChangedQueue, ChangedSchedule, ChangedWorkflow, DeletedJob,
    DeletedJobs, RetriedJobPreview, RetriedJobs, RetriedRun, RetryPreviewView,
};
pub use database::{
    BackupView, CheckView, CopiedView, MigratedView, ProblemView, PrunedView, RestoredView, VacuumedView,
};
pub use doctor::{DoctorView, FindingState, FindingView};
pub use error::{ErrorDetails, ErrorKind, ErrorView};
pub use file::{FileError, PlaceView, ValidatedFile};
pub use job::{AttemptView, InspectedJob, JobView, names_of_needed_jobs};
pub use log::LogView;
pub use notification::{NotificationView, NotifyView, TargetView, TriedTarget, message_of};
pub use plan::{
    CriticalPathView, PastRunView, PlanView, PlannedJobView, PlannedLimitView, PlannedSecretView,
};
pub use queue::QueueView;
pub use rate::{parse_duration, parse_rate, rate_interval};
pub use run::{InspectedRun, JobCountsView, RunView, SubmittedView, needed_jobs_of_run, workspace_path};
pub use schedule::{
    BackfillView, InspectedSchedule, OccurrenceView, ScheduleView, UnstartedView, catchup_name, overlap_name,
};
pub use schema::{make_exact, schema_generator};
pub use stats::{StatsView, WorkerView};
pub use test::{CrashDifferenceView, CrashesView, DifferenceView, RepeatedView, TestedCase};
pub use time::{Instant, rfc3339};
#[cfg(feature = "otlp")]
pub use trace::{SpansLeftOut, attempt_span, job_span, run_span, successful_attempt_span, trace_request};
pub use variable::{DeletedVariable, VariableView};
pub use why::{ExplainedRun, ReasonSentence, ReasonView, WhyRunView, WhyView, reason_kind};
pub use workflow::{AppliedView, DefinitionView, RegistrationView, VersionView};
pub use workflow_changes::{ChangedPart, PartChanges, WorkflowChanges};
pub use written_file::{FormattedFile, ImportView, ImportedFile, WrittenFile};

use serde_json::Value;

/// JSON from the tables. Another program may have written something else there: that is shown as text.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
