//! The definition of a workflow: parse, check, plan. Pure: no I/O, no clock.

pub mod model;

pub use model::{Action, Job, OnInterrupt, OutputSource, Param, ParamKind, Retry, Workflow};
