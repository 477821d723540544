//! Finds the run, job or workflow that a person named. An unknown name is an error with the most similar name.

mod run_or_job;
mod similar_name;
mod workflow;

pub(crate) use run_or_job::{FoundRunOrJob, job, job_by_name, named_run, run, run_or_job};
pub(crate) use similar_name::nearest_name;
pub(crate) use workflow::{no_workflow, workflow};
