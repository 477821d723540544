//! A job that calls a workflow: the run that it starts, and what the end of that run makes of the job.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use windlass_workflow::calls::{CallParamsError, bind};
use windlass_workflow::{Param, Workflow, kinds};

use super::EndWithoutAttempt;
use crate::status::{RunStatus, StopReason};
use crate::transition::{Outcome, Repeat};

/// The most bytes of the outputs of a run, as JSON.
pub const OUTPUTS_BYTES_MAX: usize = 1024 * 1024;

/// What a job calls: a part of the JSON in `jobs.control`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The called workflow, as an index into those of the run's definition.
    pub workflow: usize,
    /// The values of its parameters. Texts may be templates.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Json>,
    /// The folder against which the called workflow resolves relative paths, relative to that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
}

impl Call {
    /// What an action calls; nothing if its workflow is not known.
    #[must_use]
    pub fn of(call: &kinds::call::Call) -> Option<Call> {
        let kinds::call::Call { workflow: _, params, called, dir } = call;
        Some(Call { workflow: (*called)?, params: params.clone(), dir: dir.clone() })
    }

    /// The params of the run that the job starts.
    ///
    /// # Errors
    /// How the job ends, if there are no such params.
    pub fn params(&self, declared: &[Param], values: &Json) -> Result<Map<String, Json>, EndWithoutAttempt> {
        bind(declared, &self.params, values).map_err(|error| {
            EndWithoutAttempt::failed(match error {
                CallParamsError::Template { .. } => format!("no run was started: {error}"),
                CallParamsError::Params(_) => format!("no run was started: the params are invalid: {error}"),
            })
        })
    }

    /// The folder of the run that the job starts, by the folder of the job's own run.
    #[must_use]
    pub fn dir(&self, dir_of_run: Option<&str>) -> Option<String> {
        match (dir_of_run, &self.dir) {
            (Some(dir), Some(own)) => {
                Some(std::path::Path::new(dir).join(own).to_string_lossy().into_owned())
            }
            (None, Some(own)) => Some(own.clone()),
            (dir, None) => dir.map(str::to_owned),
        }
    }
}

/// A run that a job has started, and that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedCall {
    /// The run.
    pub run_id: i64,
    /// The name of its workflow.
    pub workflow: String,
    /// How it ended.
    pub status: RunStatus,
    /// Why it was stopped.
    pub stop_reason: Option<StopReason>,
    /// Its failed jobs, without those that may fail: the names of the first, and how many there are.
    pub failed: (Vec<String>, i64),
}

impl EndedCall {
    /// What the end of the run makes of the attempt of the job. `outputs` are evaluated only after a success.
    #[must_use]
    pub fn outcome(&self, outputs: impl FnOnce() -> Result<Option<String>, String>) -> Outcome {
        let run = format!("run {} of `{}`", self.run_id, self.workflow);
        match (self.status, self.stop_reason) {
            (RunStatus::Successful, _) => match outputs() {
                Ok(output) => Outcome::Successful { output },
                Err(reason) => {
                    Outcome::Failed { error: format!("{run}: {reason}"), repeat: Repeat::Pointless }
                }
            },
            (RunStatus::Failed, Some(StopReason::TimedOut)) => {
                Outcome::TimedOut { error: format!("{run} reached its timeout"), repeat: Repeat::Allowed }
            }
            (RunStatus::Cancelled, Some(StopReason::Skipped)) => {
                Outcome::Skipped { reason: format!("skipped: the concurrency key of {run} had no free slot") }
            }
            (RunStatus::Cancelled, _) => Outcome::Cancelled { error: format!("{run} was cancelled") },
            (RunStatus::Failed | RunStatus::Pending | RunStatus::Running, _) => {
                Outcome::Failed { error: format!("{run} failed{}", self.names()), repeat: Repeat::Allowed }
            }
        }
    }

    fn names(&self) -> String {
        let (names, all) = &self.failed;
        let more = all - names.len() as i64;
        match (names.is_empty(), more > 0) {
            (true, _) => String::new(),
            (false, false) => format!(": {}", names.join(", ")),
            (false, true) => format!(": {} and {more} more", names.join(", ")),
        }
    }
}

/// Evaluates the outputs of a run that is over. Nothing if its workflow has none.
///
/// # Errors
/// Which output has no value, and why.
pub fn outputs(workflow: &Workflow, values: &Json) -> Result<Option<Json>, String> {
    if workflow.outputs.is_empty() {
        return Ok(None);
    }
    let mut outputs = Map::new();
    for (name, expression) in &workflow.outputs {
        let value = expression.known_value(values).map_err(|error| format!("`outputs.{name}`: {error}"))?;
        outputs.insert(name.clone(), value);
    }
    Ok(Some(Json::Object(outputs)))
}

/// The outputs as JSON text.
///
/// # Errors
/// They are too large.
pub fn outputs_text(workflow: &Workflow, values: &Json) -> Result<Option<String>, String> {
    let text = outputs(workflow, values)?.map(|outputs| outputs.to_string());
    match text {
        Some(text) if text.len() > OUTPUTS_BYTES_MAX => {
            Err(format!("its outputs have {} bytes, and the limit is {OUTPUTS_BYTES_MAX}", text.len()))
        }
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_end_of_a_run_is_the_end_of_the_job() {
        let ended = |status, stop_reason, failed: &[&str], all| {
            let failed = (failed.iter().map(|name| (*name).to_owned()).collect(), all);
            let call = EndedCall { run_id: 12, workflow: "load".to_owned(), status, stop_reason, failed };
            call.outcome(|| Ok(Some("{}".to_owned())))
        };
        let error = |outcome: Outcome| format!("{outcome:?}");
        let successful = ended(RunStatus::Successful, None, &[], 0);
        assert_eq!(successful, Outcome::Successful { output: Some("{}".to_owned()) });
        let few = error(ended(RunStatus::Failed, None, &["a", "b"], 2));
        assert!(few.contains("\"run 12 of `load` failed: a, b\""), "{few}");
        let many = error(ended(RunStatus::Failed, None, &["a", "b"], 9));
        assert!(many.contains("\"run 12 of `load` failed: a, b and 7 more\""), "{many}");
        let late = error(ended(RunStatus::Failed, Some(StopReason::TimedOut), &["a"], 1));
        assert!(
            late.starts_with("TimedOut") && late.contains("run 12 of `load` reached its timeout"),
            "{late}"
        );
        let skipped = ended(RunStatus::Cancelled, Some(StopReason::Skipped), &[], 0);
        assert!(matches!(skipped, Outcome::Skipped { .. }), "it was not needed: {skipped:?}");
        let cancelled = error(ended(RunStatus::Cancelled, Some(StopReason::Cancelled), &[], 0));
        assert!(cancelled.starts_with("Cancelled") && cancelled.contains("was cancelled"), "{cancelled}");
    }

    #[test]
    fn the_folder_of_a_called_file_is_relative_to_that_of_the_run() {
        let call = |dir: Option<&str>| Call { workflow: 0, params: Map::new(), dir: dir.map(str::to_owned) };
        for (own, of_run, expected) in [
            (None, Some("/a"), Some("/a")),
            (Some("sub"), Some("/a"), Some("/a/sub")),
            (Some("/b"), Some("/a"), Some("/b")),
            (Some("/b"), None, Some("/b")),
            (None, None, None),
        ] {
            assert_eq!(call(own).dir(of_run).as_deref(), expected);
        }
    }
}
