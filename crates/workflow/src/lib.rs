//! The definition of a workflow: parse, check, plan. Pure: no I/O, no clock.

mod build;
mod canonical;
mod check;
pub mod draw;
pub mod duration;
pub mod graph;
mod job_names;
pub mod limits;
pub(crate) mod lower;
pub mod model;
pub mod params;
pub mod report;
pub mod schedule;
pub mod source;
pub mod strict;
mod suggest;
pub mod template;
mod tree;

pub use canonical::hash_of_stored;
pub use check::WorkflowError;
pub use draw::{DrawError, Drawing};
pub use graph::Graph;
pub use lower::{check_schedule_name, parse};
pub use model::{Action, Job, OnInterrupt, OutputSource, Param, ParamKind, Retry, Workflow};
pub use report::{Colour, Diagnostic, Report};
pub use source::{Format, Source};
pub use tree::has_too_many_parts;
