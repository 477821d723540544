//! Handlers with typed payloads and results instead of JSON.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_engine::store::Job;
use windlass_engine::transition::Outcome;
use windlass_engine::{Error, JobStatus, Result};
use windlass_worker::{Attempt, Handler, failed, failed_for_good};

/// Makes a handler from a function. The payload is parsed as `P`, and the returned value is the output of the job.
///
/// If the payload can't be parsed as `P`, the job fails without a retry. If the function returns an error, the attempt
/// fails, and the job is retried as its settings say.
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
            Err(error) => {
                return failed_for_good(format!("the payload does not have the expected type: {error}"));
            }
        };
        match function(attempt, payload) {
            Err(error) => failed(error.to_string()),
            Ok(value) => match serde_json::to_string(&value) {
                Ok(output) => Outcome::Successful { output: (output != "null").then_some(output) },
                Err(error) => failed_for_good(format!("the result can't be written as JSON: {error}")),
            },
        }
    }
}

/// The output of a successful job, parsed as `R`: the value that its [`typed`] handler returned.
///
/// # Errors
/// Returns [`Error::Invalid`] with the last error of the job if it is not SUCCESSFUL, or if its output can't be parsed as
/// `R`.
pub fn output_of<R: DeserializeOwned>(job: &Job) -> Result<R> {
    let operation = || format!("read the output of job j{}", job.id);
    if job.status != JobStatus::Successful {
        let reason = job.last_error.as_deref().map_or_else(String::new, |error| format!(": {error}"));
        return Err(Error::invalid(operation(), format!("it is {}{reason}", job.status)));
    }
    serde_json::from_str(job.output.as_deref().unwrap_or("null"))
        .map_err(|error| Error::invalid(operation(), format!("it does not have the expected type: {error}")))
}
