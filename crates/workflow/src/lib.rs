//! The definition of a workflow: parse, check, plan and draw. Pure: no input or output, no clock, no database.
//!
//! [`parse`] turns a [`Source`] into a [`Workflow`] in three steps: `tree` reads TOML, JSON or YAML, `lower` turns the tree into
//! the [`model`], and `report` shows the errors. A program can build the same model, and [`Workflow::check`] checks it.

mod build;
pub mod calls;
mod canonical;
mod check;
mod concurrency;
pub mod draw;
pub mod duration;
mod env;
mod expect;
pub mod expression;
mod field;
pub mod files;
pub mod for_each;
mod format;
pub mod graph;
mod handlers;
pub mod import;
mod include;
mod job_names;
mod key;
pub mod keys;
pub mod kinds;
pub mod limits;
mod lower;
pub mod model;
mod names;
pub mod params;
pub mod plan;
pub mod report;
pub mod schedule;
pub mod schema;
pub mod secrets;
pub mod source;
pub mod strict;
mod subset;
mod suggest;
pub mod support;
pub mod template;
mod tree;
pub mod trigger;
mod warnings;

pub use calls::CallError;
pub use canonical::hash_of_stored;
pub use draw::{DrawError, Drawing};
pub use expression::{Expression, ExpressionError, JobField, JobRead};
pub use field::WorkflowError;
pub use for_each::{ForEach, ItemSource, Matrix};
pub use format::format as format_toml;
pub use graph::Graph;
pub use kinds::Action;
pub use lower::{FileCalls, parse, parse_accepting};
pub use model::{Job, OnInterrupt, Repetition, Retry, RunHandler, When, Workflow};
pub use names::{check_event_name, check_schedule_name, check_variable_name};
pub use params::{Param, ParamKind};
pub use report::{Colour, Diagnostic, Report};
pub use source::{Format, IncludedText, STANDARD_INPUT, Source};
pub use subset::SubsetError;
pub use support::{Accepted, Support};
pub use tree::{has_too_many_parts, read_values};
pub use warnings::warnings;
