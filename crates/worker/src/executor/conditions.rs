//! Asks the conditions of a job about the end of an attempt: reads the values that they name. The decision is pure, in
//! `windlass_engine::attempt_end`.

use std::time::Duration;

use crate::handler::{Attempt, StopCause, failed_for_good};
use windlass_db::error::Error;
use windlass_engine::attempt_end::EndConditions;
use windlass_engine::set_variables::SetVariable;
use windlass_engine::transition::Outcome;
use windlass_engine::values::values;
use windlass_system::steps::pause;

/// How often the values are read if the database can't be used, with a pause between two tries.
const READ_TRIES_MAX: u32 = 300;
const READ_PAUSE: Duration = Duration::from_millis(200);

/// What the conditions of the job make of an outcome, and the variables that a success sets.
pub(super) fn judge(attempt: &Attempt, outcome: Outcome) -> (Outcome, Vec<SetVariable>) {
    let job = attempt.job();
    let Some(conditions) = &job.conditions else { return (outcome, Vec::new()) };
    if !conditions.are_asked(&job.retry_state, &outcome, attempt.result().is_some()) {
        return (outcome, Vec::new());
    }
    for _try in 0..READ_TRIES_MAX {
        match conclude(attempt, conditions, &outcome) {
            Ok(concluded) => return concluded,
            Err(error) if !error.is_temporary() => return (failed_for_good(error.to_string()), Vec::new()),
            Err(_passing) => {
                let stop = attempt.stop();
                if stop.is_fenced() || stop.cause() == Some(StopCause::Leaving) {
                    break;
                }
                // Not `Stop::wait`: an attempt at its timeout was asked to stop before.
                pause(attempt.clock(), READ_PAUSE);
            }
        }
    }
    let error = "the database could not be read for its conditions".to_owned();
    (Outcome::Interrupted { error }, Vec::new())
}

/// Reads the values that the conditions name, and asks the conditions.
fn conclude(
    attempt: &Attempt,
    conditions: &EndConditions,
    outcome: &Outcome,
) -> Result<(Outcome, Vec<SetVariable>), Error> {
    // Only jobs of a workflow have conditions.
    let Some(run) = attempt.run()? else { return Ok((outcome.clone(), Vec::new())) };
    let jobs = attempt.values_of(&conditions.jobs_read())?;
    let end = attempt.run_end()?;
    let variables = attempt.variables(&conditions.variables_read())?;
    let job = attempt.job();
    let (outcome, set) = match values(&run, end.as_ref(), jobs, job.item.as_ref(), variables) {
        Ok(values) => conditions.conclude(&job.retry_state, outcome.clone(), attempt.result(), values),
        Err(error) => return Ok((failed_for_good(error), Vec::new())),
    };
    Ok(match attempt.refused_variables(&set)? {
        Some(reason) => (failed_for_good(reason), Vec::new()),
        None => (outcome, set),
    })
}
