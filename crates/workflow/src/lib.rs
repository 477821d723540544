//! The definition of a workflow: parse, check, plan. Pure: no I/O, no clock.

mod canonical;
pub mod model;

pub use model::{Action, Job, OnInterrupt, OutputSource, Param, ParamKind, Retry, Workflow};
