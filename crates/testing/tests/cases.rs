//! Cases of workflows, from their files to what is seen of their runs.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use support::{TestedCase, differences, observe, tested};
use windlass_engine::{JobStatus, RunStatus};

const RETRIES: &str = r#"
name = "retries"
[jobs.load]
run = "./load.sh"
output = "json"
retry = { max_attempts = 3, delay = "1m", jitter = 0, factor = 2, if = "exit_code != 64" }
timeout = "10m"
[jobs.check]
needs = ["load"]
if = "jobs.load.output.rows > 0"
run = "true"
env = { ROWS = "{{ jobs.load.output.rows }}" }
success_if = "exit_code in [0, 3]"
skip_if = "exit_code == 99"
[jobs.tell]
needs = ["check"]
http = { url = "https://example.com/{{ jobs.load.output.rows }}", method = "POST", json = { rows = "{{ jobs.load.output.rows }}" } }
[on_failure.alert]
run = "false"
"#;

#[test]
fn fakes_end_as_processes_and_requests_do() {
    let case = r#"
        [[case]]
        name = "all at once"
        now = 2026-03-01T08:00:00Z
        [case.jobs.load]
        attempts = [
            { exit_code = 1, error = "no connection", takes = "5s" },
            { takes = "1h" },
            { output = { rows = 7 }, takes = "2m" },
        ]
        [case.jobs.check]
        attempts = [{ exit_code = 3 }]
        [case.jobs.tell]
        attempts = [{ status = 503 }]
        [case.jobs.alert]
        attempts = [{}]
        [case.expect]
        status = "FAILED"
        [case.expect.jobs]
        load = { status = "SUCCESSFUL", attempts = 3, output = { rows = 7 } }
        check = "SUCCESSFUL"
        tell = { status = "FAILED", error = "status 503", attempts = 1 }
        alert = "SUCCESSFUL"
    "#;
    let TestedCase { observed, differences, .. } = tested(RETRIES, case);
    assert_eq!(differences, []);
    // 5 s, the delay of 1 m, the timeout of 10 m, the delay of 2 m, 2 m.
    assert_eq!(observed.took_ms, (5 + 60 + 600 + 120 + 120) * 1_000);
}

#[test]
fn conditions_decide_about_fakes() {
    for (fake, expected) in [
        ("load = { attempts = [{ exit_code = 64 }] }", [("load", "FAILED"), ("check", "SKIPPED")]),
        ("load = { attempts = [{ output = '{' }] }", [("load", "FAILED"), ("check", "SKIPPED")]),
        ("load = { attempts = [{ output = { rows = 0 } }] }", [("load", "SUCCESSFUL"), ("check", "SKIPPED")]),
        (
            "load = { attempts = [{ output = { rows = 1 } }] }\ncheck = { attempts = [{ exit_code = 99 }] }",
            [("load", "SUCCESSFUL"), ("check", "SKIPPED")],
        ),
        (
            "load = { attempts = [{ output = { rows = 1 } }] }\ncheck = { attempts = [{ signal = 9 }] }",
            [("load", "SUCCESSFUL"), ("check", "FAILED")],
        ),
        ("load = { attempts = [{ output = { lines = 1 } }] }", [("load", "SUCCESSFUL"), ("check", "FAILED")]),
    ] {
        let observed =
            observe(RETRIES, &format!("[[case]]\nname = 'x'\nothers = 'succeed'\n[case.jobs]\n{fake}"));
        let found: BTreeMap<&str, JobStatus> =
            observed.jobs.iter().map(|(name, job)| (name.as_str(), job.status)).collect();
        for (job, status) in expected {
            assert_eq!(found[job].as_str(), status, "{job} of {fake}: {observed:#?}");
        }
    }
}

#[test]
fn a_job_without_a_fake_fails_its_case_unless_others_succeed() {
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\n[jobs.b]\nhttp = 'https://example.com'\n";
    let found = differences(workflow, "[[case]]\nname = 'x'\n");
    let jobs: Vec<_> = found.iter().map(|found| (found.job.as_deref(), found.aspect)).collect();
    assert_eq!(jobs, [(Some("a"), "fake"), (Some("b"), "fake")]);
    assert_eq!(differences(workflow, "[[case]]\nname = 'x'\nothers = 'succeed'\n"), []);
}

const WAITS: &str = r#"
name = "waits"
[jobs.night]
sleep = "12h"
[jobs.paid]
needs = ["night"]
wait_for = { event = "paid", key = "7", timeout = "3d" }
[jobs.release]
needs = ["paid"]
approval = { prompt = "Now?", timeout = "1d", fields = { version = { type = "integer" } } }
[jobs.ship]
needs = ["release"]
run = "./ship.sh"
env = { VERSION = "{{ jobs.release.output.fields.version }}" }
"#;

const WAITED: &str = r#"
[[case]]
name = "a day and more"
[case.jobs.ship]
attempts = [{ takes = "10m" }]
[[case.events]]
event = "paid"
key = "7"
payload = { amount = 3 }
after = "20h"
[case.approvals.release]
by = "ada"
fields = { version = 4 }
after = "6h"
[case.expect.jobs]
ship = "SUCCESSFUL"
"#;

#[test]
fn waits_of_a_day_take_no_time() {
    observe(WAITS, WAITED);
    let began = Instant::now();
    let TestedCase { observed, differences, .. } = tested(WAITS, WAITED);
    let took = began.elapsed();
    assert_eq!(differences, []);
    assert_eq!(observed.took_ms, (26 * 60 + 10) * 60 * 1_000);
    assert!(took < Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 100 }), "{took:?}");
}

#[test]
fn a_wait_that_nothing_ends_is_named() {
    let workflow = "name = 'w'\n[jobs.paid]\nwait_for = { event = 'paid' }\n";
    let found = differences(workflow, "[[case]]\nname = 'x'\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].job.as_deref(), found[0].actual.as_str()),
        (Some("paid"), "waits for an event, and nothing comes")
    );
    let late = WAITED.replace("20h", "9d").replace("SUCCESSFUL", "SKIPPED");
    let observed = observe(WAITS, &late);
    assert_eq!((observed.status, observed.jobs["paid"].status), (RunStatus::Failed, JobStatus::Failed));
    let rejected = WAITED.replace("fields = { version = 4 }", "reject = 'no'");
    assert_eq!(observe(WAITS, &rejected).jobs["release"].error.as_deref(), Some("rejected by ada: no"));
}

#[test]
fn items_have_fakes_of_their_own_or_that_of_their_group() {
    let workflow = r#"
        name = "w"
        [jobs.load]
        for_each = { in = ["a", "b", "c"], max_parallel = 1 }
        run = "load"
    "#;
    let case = r#"
        [[case]]
        name = "x"
        [case.jobs.load]
        attempts = [{ takes = "1m", output = "1" }]
        [case.jobs."load[1]"]
        attempts = [{ takes = "10m", exit_code = 2 }]
        [case.expect]
        status = "FAILED"
        [case.expect.jobs]
        load = { status = "FAILED", output = [1, {}, 1] }
        "load[1]" = { status = "FAILED", attempts = 1 }
        "load[2]" = "SUCCESSFUL"
    "#;
    let TestedCase { observed, differences, .. } = tested(workflow, &case.replace("[1, {}, 1]", "[1, 0, 1]"));
    assert_eq!(observed.took_ms, 12 * 60_000);
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!((differences[0].aspect, differences[0].actual.as_str()), ("output", "[1,null,1]"));
}

#[test]
fn jobs_run_side_by_side_by_the_clock_of_the_case() {
    let workflow =
        "name = 'w'\n[jobs.a]\nrun = 'a'\n[jobs.b]\nrun = 'b'\n[jobs.c]\nneeds = ['a', 'b']\nrun = 'c'\n";
    let case = "[[case]]\nname = 'x'\n[case.jobs]\na.attempts = [{ takes = '3h' }]\nb.attempts = [{ takes = '2h' }]\n\
                c.attempts = [{ takes = '1h' }]\n";
    assert_eq!(observe(workflow, case).took_ms, 4 * 3_600_000);
}

#[test]
fn jobs_of_called_workflows_have_fakes_and_outputs_are_compared() {
    let workflow = r#"
        name = "w"
        outputs = { rows = "jobs.each.output" }
        [jobs.each]
        for_each = ["a", "b"]
        workflow = "copy"
        params = { table = "{{ item }}" }
        [workflows.copy]
        params = { table = {} }
        outputs = "jobs.count.output"
        [workflows.copy.jobs.count]
        run = "count"
        output = "json"
        [workflows.copy.jobs.go]
        needs = ["count"]
        approval = { prompt = "{{ params.table }}?" }
    "#
    .replace("outputs = \"jobs.count.output\"", "outputs = { rows = \"jobs.count.output\" }");
    let case = r#"
        [[case]]
        name = "x"
        [case.jobs."each/count"]
        attempts = [{ output = 3, takes = "1m" }]
        [case.jobs."each[1]/count"]
        attempts = [{ output = 4, takes = "5m" }]
        [case.approvals."each[0]/go"]
        after = "1h"
        [case.approvals."each[1]/go"]
        after = "1m"
        [case.expect.jobs]
        "each[1]/count" = "SUCCESSFUL"
        [case.expect.outputs]
        rows = [{ rows = 3 }, { rows = 5 }]
    "#;
    let TestedCase { observed, differences, .. } = tested(&workflow, case);
    assert_eq!(observed.took_ms, 61 * 60_000);
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!(differences[0].actual, r#"[{"rows":3},{"rows":4}]"#);
    let crashes = support::crashes(&workflow, &case.replace("rows = 5", "rows = 4"));
    assert_eq!(crashes.differences, []);
}

#[test]
fn each_round_of_a_repetition_is_an_attempt() {
    let workflow = r#"
        name = "w"
        [jobs.poll]
        run = "poll"
        output = "text"
        repeat = { until = "output == 'done'", every = "30s", max = 5 }
    "#;
    let case = r#"
        [[case]]
        name = "x"
        [case.jobs.poll]
        attempts = [{ output = "busy" }, { output = "busy" }, { output = "done" }]
        [case.expect.jobs]
        poll = { status = "SUCCESSFUL", output = "done", attempts = 3 }
    "#;
    let TestedCase { observed, differences, .. } = tested(workflow, case);
    assert_eq!((differences, observed.took_ms), (vec![], 60_000));
    assert_eq!(support::crashes(workflow, case).differences, []);
    let never = case.replace(r#", { output = "done" }"#, "");
    assert_eq!(observe(workflow, &never).jobs["poll"].status, JobStatus::Failed);
}

#[test]
fn a_run_with_a_workspace_has_it_beside_the_temporary_database() {
    let workflow = "name = 'w'\nworkspace = true\n[jobs.a]\nrun = 'a'\noutput = 'json'\n\
                    env = { FOLDER = '{{ run.workspace }}' }\n";
    let case = "[[case]]\nname = 'x'\nothers = 'succeed'\n";
    assert_eq!(differences(workflow, case), []);
    assert_eq!(support::crashes(workflow, case).differences, []);
}

#[test]
fn the_path_of_a_saved_file_is_the_same_in_each_run_of_a_case() {
    let workflow = "name = 'w'\nworkspace = true\n[jobs.get]\nhttp = { url = 'https://example.com', save = 'x.bin' }\n\
                    [jobs.pause]\nneeds = ['get']\nsleep = '1h'\n";
    let case = "[[case]]\nname = 'x'\nothers = 'succeed'\n";
    let output = observe(workflow, case).jobs["get"].output.clone().unwrap();
    assert_eq!(output["file"], "/case/case.db.files/runs/1/x.bin");
    assert_eq!(support::crashes(workflow, case).differences, []);
}

#[test]
fn a_case_can_cancel_its_run() {
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\n[jobs.b]\nneeds = ['a']\nsleep = '1d'\n[jobs.c]\nneeds = ['a']\nrun = 'c'\n\
                    [on_cancel.tell]\nrun = 'tell'\n[on_failure.alert]\nrun = 'alert'\n";
    let case = r#"
        [[case]]
        name = "x"
        others = "succeed"
        cancel_after = "2h"
        [case.jobs]
        a.attempts = [{ takes = "1h" }]
        c.attempts = [{ takes = "3h" }]
        [case.expect]
        status = "CANCELLED"
        jobs = { a = "SUCCESSFUL", b = "CANCELLED", c = "CANCELLED", tell = "SUCCESSFUL", alert = "SKIPPED" }
    "#;
    let TestedCase { observed, differences, .. } = tested(workflow, case);
    assert_eq!((differences, observed.took_ms), (vec![], 2 * 3_600_000));
    let longer = case.replace(r#"c.attempts = [{ takes = "3h" }]"#, r#"c.attempts = [{ takes = "300h" }]"#);
    assert_eq!(support::crashes(workflow, &longer).differences, []);
    let late = case.replace(r#"cancel_after = "2h""#, r#"cancel_after = "9d""#);
    assert_eq!(observe(workflow, &late).status, RunStatus::Successful);
}

#[test]
fn a_job_that_requires_something_of_its_worker_is_executed() {
    let workflow = "name = 'w'\n[jobs.a]\nrun = 'a'\nrequires = ['gpu']\ncode_version = 7\n[jobs.b]\nworkflow = 'inner'\n\
                    [workflows.inner.jobs.c]\nrun = 'c'\nrequires = ['disk', 'gpu']\n";
    let case = "[[case]]\nname = 'x'\nothers = 'succeed'\n";
    assert_eq!(differences(workflow, case), []);
}
