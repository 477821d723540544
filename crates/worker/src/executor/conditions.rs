//! Asks the conditions of a job about the end of an attempt: reads the values that they name. The decision is pure, in
//! `windlass_engine::attempt_end`.

use std::time::Duration;

use crate::handler::{Attempt, StopCause, failed_for_good};
use windlass_db::error::Error;
use windlass_engine::attempt_end::EndConditions;
use windlass_engine::transition::Outcome;
use windlass_engine::values::values;

/// How often the values are read if the database can't be used, with a pause between two tries.
const READ_TRIES_MAX: u32 = 300;
const READ_PAUSE: Duration = Duration::from_millis(200);

/// What the conditions of the job make of an outcome.
pub(super) fn judge(attempt: &Attempt, outcome: Outcome) -> Outcome {
    let job = attempt.job();
    let Some(conditions) = &job.conditions else { return outcome };
    if !conditions.are_asked(&job.retry_state, &outcome, attempt.result().is_some()) {
        return outcome;
    }
    for _try in 0..READ_TRIES_MAX {
        match read(attempt, conditions) {
            Ok(Some(Ok(values))) => {
                return conditions.judge(&job.retry_state, outcome, attempt.result(), values);
            }
            Ok(Some(Err(error))) => return failed_for_good(error),
            // Only jobs of a workflow have conditions.
            Ok(None) => return outcome,
            Err(error) if !error.is_temporary() => return failed_for_good(error.to_string()),
            Err(_passing) => {
                let stop = attempt.stop();
                if stop.is_fenced() || stop.cause() == Some(StopCause::Leaving) {
                    break;
                }
                // Not `Stop::wait`: an attempt at its timeout was asked to stop before.
                std::thread::sleep(READ_PAUSE);
            }
        }
    }
    Outcome::Interrupted { error: "the database could not be read for its conditions".to_owned() }
}

type Values = Result<serde_json::Value, String>;

/// Reads the values of the run and of the jobs that the conditions name.
fn read(attempt: &Attempt, conditions: &EndConditions) -> Result<Option<Values>, Error> {
    let Some(run) = attempt.run()? else { return Ok(None) };
    let jobs = attempt.values_of(&conditions.jobs_read())?;
    let end = attempt.run_end()?;
    Ok(Some(values(&run, end.as_ref(), jobs)))
}
