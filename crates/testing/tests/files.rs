//! The errors of test files.
#![allow(clippy::unwrap_used)]

mod support;

use support::errors;

const WORKFLOW: &str = r#"
name = "w"
[params]
day = { type = "date" }
mode = { type = "choice", choices = ["full", "delta"], default = "full" }
[jobs.load]
run = "load"
[jobs.each]
for_each = ["a"]
run = "each"
[jobs.call]
http = "https://example.com"
[jobs.night]
sleep = "1h"
[jobs.go]
approval = { prompt = "Go?", fields = { version = { type = "integer" } } }
"#;

#[test]
fn all_errors_come_at_once_with_their_places() {
    let text = r#"
[[case]]
nmae = "first"
now = "soon"
others = "suceed"
[case.params]
dya = "2026-01-01"
mode = "ful"
[case.jobs]
laod.attempts = [{}]
load.attempts = [{ exit_code = 256 }, { exit_cod = 1 }, { takes = 5 }, { exit_code = 1, signal = 9 }]
"load[0]".attempts = [{}]
"each[0]".attempts = []
call.attempts = [{ exit_code = 1 }, { status = 600 }, { status = 200, error = "no route" }]
night.attempts = [{}]
[[case.events]]
evnt = "paid"
[case.approvals]
load = {}
go = { fields = { version = "x" } }
[case.expect]
status = "SUCCESFUL"
[case.expect.jobs]
load = "RUNNING"
each = { attempt = 3 }
"#;
    let found = errors(WORKFLOW, text);
    let parts = [
        "a case needs a `name`",
        "unknown key `nmae` in a case",
        "w.test.toml:3:1",
        "did you mean `name`?",
        "`now` is not a time",
        "did you mean \"succeed\"?",
        "parameter `day` is required",
        "the workflow has no parameter `dya`",
        "did you mean `day`?",
        "`mode` has a wrong value",
        "the workflow has no job `laod`",
        "did you mean `load`?",
        "`exit_code` is out of range",
        "unknown key `exit_cod` in an attempt",
        "did you mean `exit_code`?",
        "`takes` must be a duration with a unit",
        "a process ends with an exit code or by a signal",
        "the workflow has no job `load[0]`",
        "the fake has no attempts",
        "unknown key `exit_code` in an attempt",
        "`status` is out of range",
        "a request has a `status`, or an `error` if no answer came",
        "`night` is not executed by a worker, so it has no fake",
        "an event needs the name of an event",
        "did you mean `event`?",
        "`load` is no approval",
        "field `version`",
        "`status` has no value \"SUCCESFUL\"",
        "`load` has no value \"RUNNING\"",
        "did you mean `attempts`?",
    ];
    for part in parts {
        assert!(found.contains(part), "{part:?} is missing in\n{found}");
    }
}

#[test]
fn a_file_without_cases_and_two_cases_with_one_name_are_errors() {
    assert!(errors(WORKFLOW, "").contains("the test file has no cases"));
    let twice = "[[case]]\nname = 'a'\nparams.day = '2026-01-01'\n".repeat(2);
    assert!(errors(WORKFLOW, &twice).contains("two cases have the name \"a\""));
    assert!(errors(WORKFLOW, "case = 3").contains("`case` must be a list of tables"));
}
