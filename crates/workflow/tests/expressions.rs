//! Bare expressions: what is allowed, what they read, and what they give.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use windlass_workflow::{Expression, JobField, limits};

fn values() -> Value {
    json!({
        "params": { "mode": "full", "rows": 3, "quick": true, "title": null },
        "run": { "id": 7, "workflow": "nightly" },
        "jobs": {
            "a": { "status": "FAILED", "output": { "rows": [1, 2] }, "error": "exit code 3", "exit_code": 3, "failures": 2 },
            "killed": { "status": "FAILED", "output": null, "error": null, "exit_code": null, "failures": 1 },
        },
        "exit_code": null,
        "signal": 9,
        "timed_out": false,
    })
}

fn holds(text: &str) -> Result<bool, String> {
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{error}"));
    expression.holds(&values()).map_err(|error| error.message)
}

#[test]
fn conditions_hold_or_do_not() {
    let cases = [
        ("params.mode == 'full'", true),
        ("params.mode in ['full', 'delta'] and not timed_out", true),
        ("params.quick", true),
        ("not params.quick or params.rows > 2", true),
        ("1 < params.rows <= 3", true),
        ("1 < params.rows < 3", false),
        ("jobs.a.status == 'FAILED' and jobs.a.failures >= 2", true),
        ("jobs['a'].output.rows[1] == 2", true),
        ("jobs.a.output.rows[-1] == 2", true),
        ("jobs.a.output.rows[:1] == [1]", true),
        ("jobs.a.output.rows | length == 2", true),
        ("'rows' in jobs.a.output", true),
        ("'code' in jobs.a.error", true),
        ("5 not in jobs.a.output.rows", true),
        ("params.rows + 1 == 4 and 7 // 2 == 3 and 7 % 2 == 1 and -params.rows == -3", true),
        ("(params.mode | upper) == 'FULL'", true),
        ("params.title | default('none') == 'none'", true),
        ("jobs.killed.output.total | default(0) == 0", true),
        ("jobs.a.output.total is defined", false),
        ("params.title is none", true),
        ("true if params.quick else false", true),
        ("1 == 1.0", true),
        ("1 == '1'", false),
        ("1 == true", false),
    ];
    for (text, expected) in cases {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn no_exit_code_is_unequal_to_everything_and_neither_less_nor_greater() {
    for name in ["exit_code", "jobs.killed.exit_code"] {
        for (condition, expected) in [
            ("NAME != 64", true),
            ("NAME == 0", false),
            ("NAME == NAME", false),
            ("NAME != NAME", true),
            ("NAME < 64", false),
            ("NAME <= 64", false),
            ("NAME > 64", false),
            ("NAME >= 64", false),
            ("64 > NAME", false),
            ("64 < NAME", false),
            ("NAME in [0, 1]", false),
            ("NAME not in [0, 1]", true),
            ("0 < NAME < 9", false),
            ("NAME is none", true),
        ] {
            assert_eq!(holds(&condition.replace("NAME", name)), Ok(expected), "{name}: {condition}");
        }
    }
}

#[test]
fn a_condition_that_is_neither_true_nor_false_is_an_error() {
    let cases = [
        ("params.mode", "it gives text, not true or false"),
        ("params.rows", "it gives a number, not true or false"),
        ("jobs.a.output", "it gives an object"),
        ("[true]", "it gives a list"),
        ("params.title", "parameter `title` has no value"),
        ("params.mode and true", "need true or false, not text"),
        ("not params.rows", "need true or false, not a number"),
        ("1 if params.rows else 2", "need true or false, not a number"),
        ("params.absent == 1", "`params` has no field `absent`"),
        ("exit_code != 1 and jobs.a.output.total == 1", "`jobs.a.output` has no field `total`"),
        ("jobs.killed.output.total == 1", "job `killed` has no output"),
        ("jobs.a.output.rows[9] == 1", "has no item 9; it has 2 items"),
        ("params.mode < 3", "`<` and `>` compare two numbers or two texts, not text with a number"),
        ("3 in params.mode", "`in` needs a list, or a text in a text, not a number in text"),
        ("params.mode | date", "needs a date"),
        ("1 / 0 == 1", ""),
    ];
    for (text, reason) in cases {
        let message = holds(text).expect_err(text);
        assert!(message.contains(reason), "{text}: {message}");
    }
}

#[test]
fn what_is_not_needed_is_not_evaluated() {
    assert_eq!(holds("params.quick or params.absent == 1"), Ok(true));
    assert_eq!(holds("not params.quick and params.absent == 1"), Ok(false));
}

#[test]
fn an_expression_that_is_not_allowed_is_refused() {
    let long = format!("'{}' == ''", "x".repeat(limits::EXPRESSION_BYTES));
    let deep = limits::EXPRESSION_NESTING + 1;
    let nested = format!("{}true{}", "(".repeat(deep), ")".repeat(deep));
    let signs = format!("{}1 == 1", "- ".repeat(deep));
    let nots = format!("{}true", "not ".repeat(deep));
    let cases = [
        ("", "the expression is empty"),
        ("{{ params.mode }}", "an expression stands without braces"),
        ("params.mode == {{ x }}", "an expression stands without braces"),
        ("params.mode ==", "not an expression"),
        ("range(9) == 1", "expressions have no functions"),
        ("'x' * 1000000000 == ''", "no multiplication"),
        ("(1, 2) == 1", "a list stands in square brackets"),
        ("a is divisibleby 3", "there is no test `divisibleby`"),
        (&long, "at most 500 bytes"),
        (&nested, "no more than 32 brackets"),
        (&signs, "no more than 32 signs"),
        (&nots, "no more than 32 signs"),
    ];
    for (text, reason) in cases {
        let message = Expression::parse(text).unwrap_err().to_string();
        assert!(message.contains(reason), "{text}: {message}");
        assert!(message.len() < 300, "{message}");
    }
}

#[test]
fn an_evaluation_has_a_limited_number_of_steps() {
    let within = vec!["1"; 40].join("+");
    assert_eq!(holds(&format!("{within} == 40")), Ok(true));
    let beyond = vec!["1"; 240].join("+");
    assert!(holds(&format!("{beyond} == 240")).unwrap_err().contains("too many steps"));
}

#[test]
fn the_deepest_expression_fits_a_small_stack() {
    let (limit, nesting) = (limits::EXPRESSION_BYTES, limits::EXPRESSION_NESTING);
    let expressions = [
        "(".repeat(limit),
        "[(".repeat(limit / 2),
        "a[".repeat(limit / 2),
        format!("{}true{}", "(".repeat(nesting), ")".repeat(nesting)),
        format!("{}1 == 1", "-".repeat(limit - 6)),
        format!("{}true", "not ".repeat(limit / 4 - 1)),
        format!("a{}", "+a".repeat(limit / 2 - 1)),
        format!("a{}", ".a".repeat(limit / 2 - 1)),
        format!("a{}", "|lower".repeat(limit / 6 - 1)),
        format!("a{}", " if a else a".repeat(limit / 12 - 1)),
    ];
    let evaluate = move || {
        for text in expressions {
            if let Ok(expression) = Expression::parse(text) {
                let _ = expression.holds(&json!({"a": "x"}));
            }
        }
    };
    std::thread::Builder::new().stack_size(1024 * 1024).spawn(evaluate).unwrap().join().unwrap();
}

#[test]
fn the_reads_of_jobs_are_known() {
    let text = "jobs.a.status == 'FAILED' and jobs['my-job'].output.rows[jobs.a.failures] > 0 or jobs.a.status == ''";
    let reads = Expression::parse(text).unwrap().reads();
    let reads: Vec<(&str, JobField)> = reads.iter().map(|read| (read.job.as_str(), read.field)).collect();
    assert_eq!(reads, [("a", JobField::Status), ("a", JobField::Failures), ("my-job", JobField::Output)]);
}

#[test]
fn the_stored_form_is_the_text() {
    let expression = Expression::parse("exit_code in [0, 3]").unwrap();
    let stored = serde_json::to_string(&expression).unwrap();
    assert_eq!(stored, "\"exit_code in [0, 3]\"");
    assert_eq!(serde_json::from_str::<Expression>(&stored).unwrap(), expression);
    assert!(serde_json::from_str::<Expression>("\"exit_code in [\"").is_err());
}

#[test]
fn two_times_with_offsets_are_compared_as_instants() {
    let holds = |text: &str| Expression::parse(text).unwrap().holds(&serde_json::json!({})).unwrap();
    for text in [
        "'2026-01-31T12:00:00+01:00' == '2026-01-31T11:00:00Z'",
        "'2026-01-31T12:00:00+01:00' < '2026-01-31T11:30:00Z'",
        "'2026-01-31T12:00:00+01:00' >= '2026-01-31T11:00:00.000Z'",
        "'2026-01-31T12:00:00+01:00' in ['x', '2026-01-31T11:00:00Z']",
        "'2026-01-31' < '2026-02-01'",
        "'2026-01-31T12:00:00' != '2026-01-31T11:00:00Z'",
    ] {
        assert!(holds(text), "{text}");
    }
}
