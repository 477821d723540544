//! What the conditions make of ends of attempts.

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
    assert!(error.starts_with("`repeat.until` could not be decided: `output.state == 'done'`: "), "{error}");
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
