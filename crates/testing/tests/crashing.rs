//! Cases whose engine is ended after each of their commits.
#![allow(clippy::unwrap_used)]

mod support;

use support::crashes;

/// A workflow with most of what a file can say.
const MIXED: &str = r#"
name = "mixed"
[jobs.list]
http = { url = "https://example.com" }
retry = { max_attempts = 3, delay = "1m" }
[jobs.load]
needs = ["list"]
for_each = { in = "jobs.list.output.body", max_parallel = 2 }
run = "load"
output = "text"
[jobs.night]
needs = ["load"]
sleep = "6h"
[jobs.paid]
needs = ["load"]
wait_for = { event = "paid", timeout = "3d" }
[jobs.go]
needs = ["night", "paid"]
approval = { prompt = "Go?", timeout = "1d" }
[jobs.never]
needs = ["load"]
if = "1 == 2"
run = "never"
[jobs.ship]
needs = ["go", "never"]
when = "none_failed"
run = "ship"
timeout = "1h"
retry = { max_attempts = 2 }
[finally.clean]
run = "clean"
"#;

const MIXED_CASE: &str = r#"
[[case]]
name = "x"
[case.jobs]
list.attempts = [{ status = 503, takes = "1s" }, { output = ["a", "b", "c"], takes = "2s" }]
load.attempts = [{ output = "loaded", takes = "1m" }]
"load[1]".attempts = [{ output = "late", takes = "5m" }]
ship.attempts = [{ exit_code = 1, takes = "1m" }, { takes = "1m" }]
clean.attempts = [{ takes = "1s" }]
[[case.events]]
event = "paid"
after = "8h"
[case.approvals.go]
after = "1h"
"#;

#[test]
fn a_new_engine_carries_on_after_each_commit_of_a_case() {
    let found = crashes(MIXED, MIXED_CASE);
    assert_eq!(found.differences, []);
    assert_eq!(found.left_to_a_person, Vec::<String>::new());
    assert_eq!(found.tried, found.commits);
    assert!(found.commits > 10, "{}", found.commits);
    let repeated: Vec<(&str, bool)> =
        found.repeated.iter().map(|repeated| (repeated.job.as_str(), repeated.is_safe)).collect();
    assert_eq!(repeated, [("clean", false), ("list", true), ("load", false), ("ship", false)]);
}

#[test]
fn a_job_that_may_not_be_repeated_is_left_to_a_person() {
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\n[jobs.pay]\nneeds = ['a']\nrun = 'pay'\non_interrupt = 'fail'\n\
                    [jobs.b]\nneeds = ['pay']\nrun = 'b'\n";
    let found = crashes(workflow, "[[case]]\nname = 'x'\nothers = 'succeed'\n");
    assert_eq!(found.differences, []);
    assert_eq!(found.left_to_a_person, ["pay"]);
    let repeated: Vec<&str> = found.repeated.iter().map(|repeated| repeated.job.as_str()).collect();
    assert_eq!(repeated, ["a", "b"], "and not `pay`");
}

#[test]
fn an_end_that_a_repetition_changes_is_named_once_with_its_commit() {
    // The deadline is enough for one attempt of two minutes, and not for a second one.
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\ndeadline = '3m'\n[jobs.b]\nneeds = ['a']\nrun = 'b'\n";
    let case = "[[case]]\nname = 'x'\nothers = 'succeed'\n[case.jobs.a]\nattempts = [{ takes = '2m' }]\n";
    let found = crashes(workflow, case);
    let differences: Vec<_> = found
        .differences
        .iter()
        .map(|found| {
            (found.job.as_deref(), found.aspect, found.undisturbed.as_str(), found.disturbed.as_str())
        })
        .collect();
    let expected = [
        (None, "status", "SUCCESSFUL", "FAILED"),
        (Some("a"), "status", "SUCCESSFUL", "FAILED"),
        (Some("b"), "status", "SUCCESSFUL", "SKIPPED"),
    ];
    assert_eq!(differences, expected);
    assert!(found.differences.iter().all(|found| found.after_commit > 1), "{found:?}");
}

#[test]
fn an_attempt_that_is_stopped_is_not_repeated_after_its_interruption() {
    // The engine is ended when it begins to write the end of each of these jobs.
    let workflow =
        "name = 'w'\n[jobs.late]\nrun = 'late'\ndeadline = '1h'\n[jobs.cancelled]\nrun = 'cancelled'\n";
    let case = "[[case]]\nname = 'x'\ncancel_after = '2h'\n[case.jobs]\nlate.attempts = [{ takes = '9h' }]\n\
                cancelled.attempts = [{ takes = '9h' }]\n";
    assert_eq!(crashes(workflow, case).differences, []);
}

#[test]
fn a_job_of_a_workflow_that_is_called_again_is_left_to_a_person_too() {
    let workflow = "name = 'w'\n[jobs.a]\nworkflow = 'inner'\nretry = { max_attempts = 2, delay = '1m' }\n\
                    [workflows.inner.jobs.check]\nrun = 'check'\n[workflows.inner.jobs.pay]\nneeds = ['check']\nrun = 'pay'\n\
                    on_interrupt = 'fail'\n[workflows.inner.jobs.end]\nneeds = ['pay']\nrun = 'end'\n";
    let case = "[[case]]\nname = 'x'\nothers = 'succeed'\n[case.jobs]\n'a/check'.attempts = [{}, { exit_code = 1 }]\n\
                'a/end'.attempts = [{ exit_code = 1 }]\n";
    let found = crashes(workflow, case);
    assert_eq!(found.differences, []);
    assert_eq!(found.left_to_a_person, ["a/pay"]);
}

#[test]
fn the_instants_in_the_outputs_of_items_are_no_difference() {
    // After a crash the first job ends later, and so does the wait of the items.
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\n[jobs.go]\nneeds = ['a']\nfor_each = ['x', 'y']\n\
                    approval = { prompt = 'Go?' }\n";
    let case = "[[case]]\nname = 'x'\n[case.jobs]\na.attempts = [{ takes = '1h' }]\n[case.approvals.go]\nafter = '1h'\n";
    assert_eq!(crashes(workflow, case).differences, []);
}
