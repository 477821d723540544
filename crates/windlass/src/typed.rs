//! Handlers over types instead of JSON.

use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use windlass_engine::executor::{Attempt, Handler, failed, failed_for_good};
use windlass_engine::transition::Outcome;

/// A handler that reads its payload as `P` and hands on what the function returns.
///
/// A payload that is no `P` fails the job for good; an error of the function fails the attempt, which
/// is repeated as the job allows.
pub fn typed<P, R, E>(function: impl Fn(&Attempt, P) -> Result<R, E> + Send + Sync) -> impl Handler
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
