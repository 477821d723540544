//! What the conditions of a job make of the end of an attempt: `skip_if`, `success_if`, `repeat.until` and `retry.if`, asked
//! in this order.
//! Pure: the one who has the result reads the values, asks here, and writes what follows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use windlass_workflow::{Expression, Job, Repetition};

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
    /// How many rounds have ended so. It changes with each round, and a retry of the run sets it to 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub rounds: i64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The names of the conditions in the JSON.
const NAMES: [&str; 4] = ["skip_if", "success_if", "retry_if", "repeat"];

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
        let all = [&self.skip_if, &self.success_if, &self.retry_if].into_iter().flatten();
        let until = self.repeat.as_ref().map(|repeat| &repeat.until);
        let mut names: Vec<String> =
            all.chain(until).flat_map(Expression::reads).map(|read| read.job).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether a condition is asked about this outcome. `result` says whether the handler came to a result.
    #[must_use]
    pub fn are_asked(&self, retry_state: &RetryState, outcome: &Outcome, has_result: bool) -> bool {
        let is_about_result = self.skip_if.is_some() || self.success_if.is_some() || self.repeat.is_some();
        match outcome {
            Outcome::Successful { .. } => is_about_result && has_result,
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
mod tests {
    use windlass_workflow::OnInterrupt;

    use super::*;
    use crate::transition::Backoff;

    fn retry_state(failures: i64) -> RetryState {
        RetryState {
            attempt: 7,
            failures,
            max_attempts: 3,
            interruptions: 0,
            max_interruptions: 2,
            on_interrupt: OnInterrupt::Rerun,
            backoff: Backoff::default(),
        }
    }

    fn condition(text: &str) -> Option<Expression> {
        (!text.is_empty()).then(|| Expression::parse(text).expect("an expression"))
    }

    fn conditions(skip_if: &str, success_if: &str, retry_if: &str) -> EndConditions {
        EndConditions {
            skip_if: condition(skip_if),
            success_if: condition(success_if),
            retry_if: condition(retry_if),
            ..EndConditions::default()
        }
    }

    fn ended(exit_code: Option<i64>, signal: Option<i64>, output: Option<&str>) -> (Outcome, AttemptResult) {
        let output = output.map(str::to_owned);
        let outcome = match exit_code {
            Some(0) => Outcome::Successful { output: output.clone() },
            _ => failed("it failed"),
        };
        let names = json!({ "exit_code": exit_code, "signal": signal });
        let names = names.as_object().cloned().unwrap_or_default();
        (outcome, AttemptResult { names, output: Ok(output) })
    }

    fn failed(error: &str) -> Outcome {
        Outcome::Failed { error: error.to_owned(), repeat: Repeat::Allowed }
    }

    fn for_good(error: &str) -> Outcome {
        Outcome::Failed { error: error.to_owned(), repeat: Repeat::Pointless }
    }

    fn values() -> Json {
        json!({ "params": { "mode": "full" }, "run": { "id": 3 },
                "jobs": { "a": { "status": "FAILED", "output": 5 } } })
    }

    fn judged(conditions: &EndConditions, failures: i64, end: (Outcome, AttemptResult)) -> Outcome {
        let (outcome, result) = end;
        assert!(conditions.are_asked(&retry_state(failures), &outcome, true));
        conditions.judge(&retry_state(failures), outcome, Some(&result), values())
    }

    #[test]
    fn another_exit_code_is_a_success_with_its_output_and_zero_may_be_none() {
        let either = conditions("", "exit_code in [0, 3]", "");
        let success = |output: Option<&str>| Outcome::Successful { output: output.map(str::to_owned) };
        assert_eq!(judged(&either, 0, ended(Some(3), None, Some("7"))), success(Some("7")));
        assert_eq!(judged(&either, 0, ended(Some(0), None, None)), success(None));
        assert_eq!(judged(&either, 0, ended(Some(4), None, Some("7"))), failed("it failed"));
        assert_eq!(judged(&either, 0, ended(None, Some(9), None)), failed("it failed"), "by a signal");
        let empty = conditions("", "output.rows > 0", "");
        assert_eq!(
            judged(&empty, 0, ended(Some(0), None, Some("{\"rows\": 0}"))),
            failed("`success_if` was false: output.rows > 0")
        );
    }

    #[test]
    fn skip_if_is_asked_before_success_if_and_success_if_before_retry_if() {
        let all = conditions("exit_code == 99", "exit_code in [0, 99]", "exit_code != 64");
        assert_eq!(
            judged(&all, 0, ended(Some(99), None, None)),
            Outcome::Skipped { reason: "skipped: `skip_if` was true: exit_code == 99".to_owned() }
        );
        assert_eq!(judged(&all, 0, ended(Some(1), None, None)), failed("it failed"));
        let reason = "it failed; not tried again: `retry.if` was false: exit_code != 64";
        assert_eq!(judged(&all, 0, ended(Some(64), None, None)), for_good(reason));
        assert_eq!(judged(&all, 2, ended(Some(64), None, None)), failed("it failed"), "the last attempt");
        assert_eq!(judged(&all, 0, ended(None, Some(15), None)), failed("it failed"), "it has no exit code");
    }

    #[test]
    fn conditions_read_the_run_its_jobs_and_the_attempt() {
        for text in [
            "params.mode == 'full'",
            "run.id == 3",
            "jobs.a.status == 'FAILED' and jobs.a.output == 5",
            "attempt == 7",
            "not timed_out",
            "output == 'x' and signal is none and exit_code == 1",
        ] {
            let skipped = judged(&conditions(text, "", ""), 0, ended(Some(1), None, Some("\"x\"")));
            assert!(matches!(skipped, Outcome::Skipped { .. }), "{text}: {skipped:?}");
        }
        let reads = conditions("jobs.b.output", "jobs.a.status == 'x'", "jobs.b.status == 'x'").jobs_read();
        assert_eq!(reads, ["a", "b"]);
    }

    #[test]
    fn a_condition_that_can_not_be_decided_fails_the_attempt_for_good() {
        for (conditions, end, reason) in [
            (
                conditions("output.x", "", ""),
                ended(Some(0), None, Some("{\"x\": 1}")),
                "`skip_if` could not be decided: `output.x`: it gives a number, not true or false",
            ),
            (
                conditions("", "output.y == 1", ""),
                ended(Some(1), None, None),
                "it failed; `success_if` could not be decided: `output.y == 1`: ",
            ),
            (
                conditions("", "", "output.y == 1"),
                ended(Some(1), None, None),
                "it failed; `retry.if` could not be decided: `output.y == 1`: ",
            ),
        ] {
            let Outcome::Failed { error, repeat } = judged(&conditions, 0, end) else { panic!("{reason}") };
            assert!(error.starts_with(reason), "{error}");
            assert_eq!(repeat, Repeat::Pointless);
        }
    }

    #[test]
    fn a_job_that_repeats_has_rounds_until_its_condition_holds() {
        let repeat = |rounds, retry_if: &str| {
            let until = Expression::parse("output.state == 'done'").expect("an expression");
            let repeat = Some(Box::new(Repetition { until, every_ms: 30_000, max: 3 }));
            EndConditions { repeat, rounds, ..conditions("exit_code == 99", "exit_code < 3", retry_if) }
        };
        let output = Some("{\"state\": \"waits\"}");
        let again = |rounds| Outcome::Again {
            rounds,
            wait_ms: 30_000,
            reason: format!("not so after {rounds} of 3 rounds: output.state == 'done'"),
        };
        assert_eq!(judged(&repeat(0, ""), 0, ended(Some(0), None, output)), again(1));
        assert_eq!(judged(&repeat(1, "false"), 0, ended(Some(2), None, output)), again(2), "a success");
        let last = judged(&repeat(2, ""), 0, ended(Some(0), None, output));
        assert_eq!(last, for_good("not so after 3 rounds: output.state == 'done'"));
        let done = Some("{\"state\": \"done\"}");
        let success = Outcome::Successful { output: done.map(str::to_owned) };
        assert_eq!(judged(&repeat(2, ""), 0, ended(Some(0), None, done)), success);
        assert_eq!(judged(&repeat(0, ""), 0, ended(Some(3), None, done)), failed("it failed"));
        let skipped = judged(&repeat(0, ""), 0, ended(Some(99), None, done));
        assert!(matches!(skipped, Outcome::Skipped { .. }));
        let Outcome::Failed { error, repeat } = judged(&repeat(0, ""), 0, ended(Some(0), None, None)) else {
            panic!("it could be decided")
        };
        assert!(
            error.starts_with("`repeat.until` could not be decided: `output.state == 'done'`: "),
            "{error}"
        );
        assert_eq!(repeat, Repeat::Pointless);
    }

    #[test]
    fn a_timeout_is_never_a_success_and_retry_if_is_asked_about_it() {
        let all = conditions("true", "true", "not timed_out");
        let timed_out = |error: &str, repeat| Outcome::TimedOut { error: error.to_owned(), repeat };
        let (_, result) = ended(Some(3), None, Some("1"));
        let judged = all.judge(&retry_state(0), timed_out("late", Repeat::Allowed), Some(&result), values());
        let error = "late; not tried again: `retry.if` was false: not timed_out";
        assert_eq!(judged, timed_out(error, Repeat::Pointless));
        let no_code = conditions("", "", "exit_code is none and output is none");
        let late = timed_out("late", Repeat::Allowed);
        assert_eq!(no_code.judge(&retry_state(0), late.clone(), Some(&result), values()), late);
    }

    #[test]
    fn an_attempt_without_a_result_is_asked_about_a_retry_only() {
        let all = conditions("true", "true", "false");
        let judged = all.judge(&retry_state(0), failed("no program"), None, values());
        assert_eq!(judged, for_good("no program; not tried again: `retry.if` was false: false"));
        for outcome in [
            Outcome::Interrupted { error: String::new() },
            Outcome::Cancelled { error: String::new() },
            Outcome::Unstarted,
            Outcome::OutOfResources { reason: String::new() },
            for_good("no program"),
            Outcome::Successful { output: None },
        ] {
            assert!(!all.are_asked(&retry_state(0), &outcome, false), "{outcome:?}");
            assert_eq!(all.judge(&retry_state(0), outcome.clone(), None, values()), outcome);
        }
    }

    #[test]
    fn an_invalid_output_is_null_in_conditions_and_no_output_of_a_success() {
        let (outcome, _) = ended(Some(1), None, None);
        let result = AttemptResult { output: Err("no JSON".to_owned()), ..AttemptResult::default() };
        let success = conditions("", "output is none", "");
        assert_eq!(success.judge(&retry_state(0), outcome, Some(&result), values()), failed("no JSON"));
    }

    #[test]
    fn conditions_are_part_of_the_json_of_a_retry() {
        assert_eq!(EndConditions::parse(r#"{"delay_ms":5}"#), Ok(None));
        assert_eq!(EndConditions::parse("nothing"), Ok(None), "another program wrote it");
        let read = EndConditions::parse(r#"{"delay_ms":5,"skip_if":"exit_code == 9"}"#);
        assert_eq!(read, Ok(Some(conditions("exit_code == 9", "", ""))));
        assert!(EndConditions::parse(r#"{"skip_if":"exit_code =="}"#).is_err());
    }
}
