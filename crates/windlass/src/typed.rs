//! Handlers and results over types instead of JSON.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_engine::store::Job;
use windlass_engine::transition::Outcome;
use windlass_engine::{Error, JobStatus, Result};
use windlass_worker::{Attempt, Handler, failed, failed_for_good};

/// A handler that reads its payload as `P` and hands on what the function returns.
///
/// A payload that is no `P` fails the job for good; an error of the function fails the attempt, which
/// is repeated as the job allows.
pub fn typed<P, R, E>(
    function: impl Fn(&Attempt, P) -> std::result::Result<R, E> + Send + Sync,
) -> impl Handler
where
    P: DeserializeOwned,
    R: Serialize,
    E: Display,
{
    move |attempt: &Attempt| -> Outcome {
        let payload: P = match serde_json::from_str(attempt.payload()) {
            Ok(payload) => payload,
            Err(error) => return failed_for_good(format!("the payload does not fit: {error}")),
        };
        match function(attempt, payload) {
            Err(error) => failed(error.to_string()),
            Ok(value) => match serde_json::to_string(&value) {
                Ok(output) => Outcome::Successful { output: (output != "null").then_some(output) },
                Err(error) => failed_for_good(format!("the result can't be JSON: {error}")),
            },
        }
    }
}

/// What a successful job handed on, read as `R`: what its [`typed`] handler returned.
///
/// # Errors
/// [`Error::Invalid`] when the job is not SUCCESSFUL, with its last error, and when its output is no `R`.
pub fn output_of<R: DeserializeOwned>(job: &Job) -> Result<R> {
    let operation = || format!("read the output of job j{}", job.id);
    if job.status != JobStatus::Successful {
        let reason = job.last_error.as_deref().map_or_else(String::new, |error| format!(": {error}"));
        return Err(Error::invalid(operation(), format!("it is {}{reason}", job.status)));
    }
    serde_json::from_str(job.output.as_deref().unwrap_or("null"))
        .map_err(|error| Error::invalid(operation(), format!("it does not fit: {error}")))
}
