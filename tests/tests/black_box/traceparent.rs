//! Promise: a job of a run knows its place in the trace of the run, in each attempt, whatever is killed. A trace of the caller is
//! continued.

use std::process::Command;

use windlass_tests::Sandbox;

use crate::http_server::{Server, answer};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Each attempt writes a line.
const PRINT: &str =
    "name = 'print'\n[jobs.a]\nrun = 'echo \"${TRACEPARENT-none} ${TRACESTATE-none}\" >> places'\n";

/// The trace and the span of each line of `places`.
fn places(sandbox: &Sandbox) -> Vec<(String, String)> {
    let place = |line: &str| {
        let parts: Vec<&str> = line.trim_end_matches(" none").split('-').collect();
        assert_eq!((parts.len(), parts[0], parts[1].len(), parts[2].len()), (4, "00", 32, 16), "{line}");
        (parts[1].to_owned(), parts[2].to_owned())
    };
    sandbox.read("places").lines().map(place).collect()
}

/// Runs `windlass` with a `TRACEPARENT`.
fn run_in_trace(sandbox: &Sandbox, traceparent: &str, arguments: &[&str]) {
    let mut command: Command = sandbox.command(arguments);
    command.env("TRACEPARENT", traceparent).env("TRACESTATE", "vendor=1");
    sandbox.start(command).wait().exited(0);
}

#[test]
fn each_attempt_is_a_span_of_its_own_in_the_trace_of_its_run() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "again.toml",
        "name = 'again'\n[workflows.low.jobs.b]\nrun = 'echo \"$TRACEPARENT\" >> places'\n[jobs.a]\nretry = { max_attempts = 2, delay = '0s' }\n\
         run = 'echo \"$TRACEPARENT\" >> places; test $WINDLASS_ATTEMPT -gt 1'\n[jobs.call]\nneeds = 'a'\nworkflow = 'low'\n",
    );
    sandbox.run(&["run", &file]).exited(0);
    let first = places(&sandbox);
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.iter().all(|(trace, _)| *trace == first[0].0), "one trace: {first:?}");
    assert!(first[0].1 != first[1].1 && first[1].1 != first[2].1, "{first:?}");
    sandbox.run(&["run", &file]).exited(0);
    assert_ne!(places(&sandbox)[3].0, first[0].0, "another run");
}

#[test]
fn an_attempt_after_a_crash_is_in_the_same_trace() {
    let sandbox = Sandbox::new();
    let file = sandbox.write(
        "slow.toml",
        "name = 'slow'\n[jobs.a]\nrun = 'echo \"$TRACEPARENT\" >> places; test $WINDLASS_ATTEMPT -gt 1 || sleep 1000'\n",
    );
    let mut engine = sandbox.spawn(&["run", &file]);
    windlass_tests::eventually("the first attempt", || sandbox.read("places").ends_with('\n').then_some(()));
    engine.kill_9();
    sandbox.run(&["resume", "1"]).exited(0);
    let [first, second] = places(&sandbox).try_into().expect("two attempts");
    assert_eq!(first.0, second.0);
    assert_ne!(first.1, second.1);
}

#[test]
fn the_trace_of_the_caller_is_continued_unless_it_is_invalid() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("print.toml", PRINT);
    run_in_trace(&sandbox, CALLER, &["run", &file]);
    run_in_trace(&sandbox, CALLER, &["submit", &file]);
    run_in_trace(&sandbox, "oops", &["run", &file]);
    let lines = sandbox.read("places");
    let [first, second] = places(&sandbox).try_into().expect("two runs");
    assert_eq!(first.0, "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_ne!(first.1, "00f067aa0ba902b7", "a span of its own");
    assert_ne!(second.0, first.0);
    assert!(lines.lines().all(|line| line.ends_with("-01 none")), "the state is the caller's: {lines}");
    let stored: Vec<Option<String>> =
        sandbox.tables().rows("SELECT traceparent FROM runs ORDER BY id", |row| row.get(0));
    assert_eq!(stored, [Some(CALLER.to_owned()), Some(CALLER.to_owned()), None]);
}

#[test]
fn a_variable_of_the_file_wins_and_a_job_without_a_run_has_none() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("own.toml", format!("{PRINT}env = {{ TRACEPARENT = 'mine' }}\n"));
    sandbox.run(&["run", &file]).exited(0);
    let payload = "{\"run\": \"echo ${TRACEPARENT-nothing} >> places\"}";
    sandbox.run(&["enqueue", "shell", "--payload", payload]).exited(0);
    run_in_trace(&sandbox, CALLER, &["worker", "--until-idle"]);
    assert_eq!(sandbox.read("places"), "mine none\nnothing\n");
}

#[test]
fn a_request_has_its_place_unless_the_file_has_one() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_request, stream| answer(stream, "200 OK", "", ""));
    let jobs = format!(
        "name = 'ask'\n[jobs.a]\nhttp = {{ url = '{url}' }}\n[jobs.b]\nneeds = 'a'\n\
         http = {{ url = '{url}', headers = {{ Traceparent = 'mine' }} }}\n",
        url = server.url("/x")
    );
    let file = sandbox.write("ask.toml", jobs);
    run_in_trace(&sandbox, CALLER, &["run", &file]);
    let headers: Vec<Option<String>> =
        server.requests().iter().map(|request| request.header("traceparent").map(str::to_owned)).collect();
    let derived = headers[0].as_deref().unwrap_or_default();
    assert!(derived.starts_with(&CALLER[..36]) && derived.ends_with("-01") && derived != CALLER, "{derived}");
    assert_eq!(headers[1].as_deref(), Some("mine"));
}
