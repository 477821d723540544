//! What the conditions of a job make of the end of an attempt: `skip_if`, `success_if`, `repeat.until` and `retry.if`, asked
//! in this order. After a success the values of `set_variables` are evaluated.
//! Pure: the one who has the result reads the values, asks here, and writes what follows.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use windlass_workflow::{Expression, Job, Repetition};

use crate::set_variables::{self, SetVariable};
use crate::transition::{Outcome, Repeat, RetryState};

/// The conditions that are asked at the end of an attempt. They are part of the JSON in `jobs.retry`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndConditions {
    /// When this holds, the job is SKIPPED as not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_if: Option<Expression>,
    /// What counts as a success, in place of the rule of the job's kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_if: Option<Expression>,
    /// A failed attempt is repeated only if this holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_if: Option<Expression>,
    /// A job that succeeds is executed again until a condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Box<Repetition>>,
    /// Variables that get the values of these expressions when the job succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_variables: Option<Box<BTreeMap<String, Expression>>>,
    /// How many rounds have ended so. It changes with each round, and a retry of the run sets it to 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: i64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The names of the conditions and of the variables in the JSON.
const NAMES: [&str; 5] = ["skip_if", "success_if", "retry_if", "repeat", "set_variables"];

/// What a handler found at the end of its work, for the conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptResult {
    /// The names of the job's kind that conditions can read. `shell` has `exit_code` and `signal`,
    /// `http` has `status` and `headers`.
    pub names: Map<String, Json>,
    /// The output as JSON, or why it is invalid. It is there whether the kind's own rule says success or not.
    pub output: Result<Option<String>, String>,
}

impl Default for AttemptResult {
    fn default() -> Self {
        AttemptResult { names: Map::new(), output: Ok(None) }
    }
}

impl EndConditions {
    /// The conditions of a job of a workflow.
    #[must_use]
    pub fn of(job: &Job) -> EndConditions {
        EndConditions {
            skip_if: job.skip_if.clone(),
            success_if: job.success_if.clone(),
            retry_if: job.retry.condition.clone(),
            repeat: job.repeat.clone(),
            set_variables: job.set_variables.clone(),
            rounds: 0,
        }
    }

    /// Reads the conditions from the JSON in `jobs.retry`. A job without conditions has none.
    ///
    /// # Errors
    /// One of them can't be read. Then it is unknown what the end of an attempt means.
    pub fn parse(json: &str) -> Result<Option<EndConditions>, String> {
        match serde_json::from_str::<EndConditions>(json) {
            Ok(conditions) if conditions == EndConditions::default() => Ok(None),
            Ok(conditions) => Ok(Some(conditions)),
            // Another program may have written anything. Without a condition it means the default.
            Err(_) if !NAMES.iter().any(|name| json.contains(name)) => Ok(None),
            Err(error) => Err(format!("its conditions can't be read: {error}")),
        }
    }

    /// The names of the jobs that the conditions read, sorted.
    #[must_use]
    pub fn jobs_read(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.expressions().flat_map(Expression::reads).map(|read| read.job).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The names of the variables that the conditions and the new values read.
    #[must_use]
    pub fn variables_read(&self) -> BTreeSet<String> {
        self.expressions().flat_map(Expression::variables_read).collect()
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let conditions = [&self.skip_if, &self.success_if, &self.retry_if].into_iter().flatten();
        let until = self.repeat.as_ref().map(|repeat| &repeat.until);
        let values = self.set_variables.iter().flat_map(|variables| variables.values());
        conditions.chain(until).chain(values)
    }

    /// Whether a condition is asked about this outcome. `result` says whether the handler came to a result.
    #[must_use]
    pub fn are_asked(&self, retry_state: &RetryState, outcome: &Outcome, has_result: bool) -> bool {
        let is_about_result = self.skip_if.is_some() || self.success_if.is_some() || self.repeat.is_some();
        match outcome {
            Outcome::Successful { .. } => (is_about_result && has_result) || self.set_variables.is_some(),
            Outcome::Failed { repeat, .. } => {
                (is_about_result && has_result) || self.asks_retry(retry_state, *repeat)
            }
            Outcome::TimedOut { repeat, .. } => self.asks_retry(retry_state, *repeat),
            Outcome::Skipped { .. }
            | Outcome::Again { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Unstarted
            | Outcome::OutOfResources { .. } => false,
        }
    }

    fn asks_retry(&self, retry_state: &RetryState, repeat: Repeat) -> bool {
        let is_left = retry_state.failures.saturating_add(1) < retry_state.max_attempts;
        self.retry_if.is_some() && is_left && repeat != Repeat::Pointless
    }

    /// What the conditions make of an outcome, and the variables that a success sets. `values` are those of the run and its
    /// jobs.
    #[must_use]
    pub fn conclude(
        &self,
        retry_state: &RetryState,
        outcome: Outcome,
        result: Option<&AttemptResult>,
        values: Json,
    ) -> (Outcome, Vec<SetVariable>) {
        let Some(expressions) = &self.set_variables else {
            return (self.judge(retry_state, outcome, result, values), Vec::new());
        };
        let judged = self.judge(retry_state, outcome, result, values.clone());
        let Outcome::Successful { output } = &judged else { return (judged, Vec::new()) };
        let ended = AttemptResult {
            names: result.map(|result| result.names.clone()).unwrap_or_default(),
            output: Ok(output.clone()),
        };
        let values = with_names(values, retry_state.attempt, false, Some(&ended));
        match set_variables::evaluate(expressions, &values) {
            Ok(variables) => (judged, variables),
            Err(error) => (Outcome::Failed { error, repeat: Repeat::Pointless }, Vec::new()),
        }
    }

    /// What the conditions make of an outcome. `values` are those of the run and its jobs.
    ///
    /// A timeout is never a success, so only `retry.if` is asked about it. The same is true for an attempt without a
    /// result: its program did not start, or its end is unknown.
    #[must_use]
    pub fn judge(
        &self,
        retry_state: &RetryState,
        outcome: Outcome,
        result: Option<&AttemptResult>,
        values: Json,
    ) -> Outcome {
        let is_timeout = matches!(outcome, Outcome::TimedOut { .. });
        let values = with_names(values, retry_state.attempt, is_timeout, result);
        let judged = match (outcome, result) {
            (outcome @ (Outcome::Successful { .. } | Outcome::Failed { .. }), Some(result)) => {
                self.judge_round(self.judge_result(outcome, result, &values), &values)
            }
            (outcome, _) => outcome,
        };
        self.judge_retry(retry_state, judged, &values)
    }

    fn judge_result(&self, outcome: Outcome, result: &AttemptResult, values: &Json) -> Outcome {
        if let Some(skip_if) = &self.skip_if {
            match skip_if.holds(values) {
                Ok(true) => {
                    return Outcome::Skipped {
                        reason: format!("skipped: `skip_if` was true: {}", skip_if.text()),
                    };
                }
                Ok(false) => {}
                Err(error) => return undecided(outcome, "skip_if", &error.to_string()),
            }
        }
        let Some(success_if) = &self.success_if else { return outcome };
        match (success_if.holds(values), outcome) {
            (Ok(true), _) => match &result.output {
                Ok(output) => Outcome::Successful { output: output.clone() },
                Err(error) => Outcome::Failed { error: error.clone(), repeat: Repeat::Allowed },
            },
            (Ok(false), Outcome::Successful { .. }) => {
                let error = format!("`success_if` was false: {}", success_if.text());
                Outcome::Failed { error, repeat: Repeat::Allowed }
            }
            (Ok(false), outcome) => outcome,
            (Err(error), outcome) => undecided(outcome, "success_if", &error.to_string()),
        }
    }

    /// Asks whether a success is the last round.
    fn judge_round(&self, outcome: Outcome, values: &Json) -> Outcome {
        let (Outcome::Successful { .. }, Some(repeat)) = (&outcome, &self.repeat) else { return outcome };
        let rounds = self.rounds.saturating_add(1);
        match repeat.until.holds(values) {
            Ok(true) => outcome,
            Ok(false) if rounds >= repeat.max => {
                let error = format!("not so after {rounds} rounds: {}", repeat.until.text());
                Outcome::Failed { error, repeat: Repeat::Pointless }
            }
            Ok(false) => {
                let reason =
                    format!("not so after {rounds} of {} rounds: {}", repeat.max, repeat.until.text());
                Outcome::Again { rounds, wait_ms: repeat.every_ms, reason }
            }
            Err(error) => undecided(outcome, "repeat.until", &error.to_string()),
        }
    }

    fn judge_retry(&self, retry_state: &RetryState, outcome: Outcome, values: &Json) -> Outcome {
        let repeat = match &outcome {
            Outcome::Failed { repeat, .. } | Outcome::TimedOut { repeat, .. } => *repeat,
            Outcome::Successful { .. }
            | Outcome::Skipped { .. }
            | Outcome::Again { .. }
            | Outcome::Cancelled { .. }
            | Outcome::Interrupted { .. }
            | Outcome::Unstarted
            | Outcome::OutOfResources { .. } => return outcome,
        };
        let Some(retry_if) = self.retry_if.as_ref().filter(|_condition| self.asks_retry(retry_state, repeat))
        else {
            return outcome;
        };
        match retry_if.holds(values) {
            Ok(true) => outcome,
            Ok(false) => {
                for_good(outcome, &format!("not tried again: `retry.if` was false: {}", retry_if.text()))
            }
            Err(error) => undecided(outcome, "retry.if", &error.to_string()),
        }
    }
}

/// Adds the names of an attempt to the values of the run and its jobs.
fn with_names(mut values: Json, attempt: i64, is_timeout: bool, result: Option<&AttemptResult>) -> Json {
    let output: Option<Json> = match result.map(|result| &result.output) {
        Some(Ok(Some(output))) if !is_timeout => serde_json::from_str(output).ok(),
        // An output that is missing or invalid is null.
        Some(Ok(_) | Err(_)) | None => None,
    };
    if let Some(names) = values.as_object_mut() {
        for name in ["exit_code", "signal", "status"] {
            names.insert(name.to_owned(), Json::Null);
        }
        names.insert("headers".to_owned(), json!({}));
        names.insert("output".to_owned(), output.unwrap_or_default());
        names.insert("attempt".to_owned(), json!(attempt));
        names.insert("timed_out".to_owned(), json!(is_timeout));
        names.extend(result.into_iter().flat_map(|result| result.names.clone()));
        if is_timeout {
            names.insert("exit_code".to_owned(), Json::Null);
        }
    }
    values
}

/// The failure of an attempt about which a condition could not be decided. It would fail again.
fn undecided(outcome: Outcome, place: &str, error: &str) -> Outcome {
    for_good(outcome, &format!("`{place}` could not be decided: {error}"))
}

/// The failure without a retry, with one more reason.
fn for_good(outcome: Outcome, reason: &str) -> Outcome {
    let repeat = Repeat::Pointless;
    match outcome {
        Outcome::Failed { error, .. } => Outcome::Failed { error: format!("{error}; {reason}"), repeat },
        Outcome::TimedOut { error, .. } => Outcome::TimedOut { error: format!("{error}; {reason}"), repeat },
        Outcome::Successful { .. }
        | Outcome::Skipped { .. }
        | Outcome::Again { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Unstarted
        | Outcome::OutOfResources { .. } => Outcome::Failed { error: reason.to_owned(), repeat },
    }
}

#[cfg(test)]
mod tests;
