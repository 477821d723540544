//! Promise: the trace of a run that ended reaches the collector at least once, with the same ids each time, whatever is killed
//! between. Tests of a program with the feature `otlp`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::Value;
use windlass_test_database::Access;
use windlass_tests::{Sandbox, eventually};

use crate::http_server::{Request, Server, answer};
use crate::support::serve;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn configure(sandbox: &Sandbox, url: &str) {
    sandbox.write("windlass.toml", format!("[traces]\nendpoint = '{url}'\n"));
}

fn collector() -> Server {
    Server::start(|_request, stream| answer(stream, "200 OK", "Content-Type: application/json\r\n", "{}"))
}

fn statuses(sandbox: &Sandbox) -> Vec<String> {
    sandbox.tables().rows("SELECT status FROM notifications ORDER BY id", |row| row.get(0))
}

fn await_deliveries(sandbox: &Sandbox, count: usize) {
    eventually("the deliveries", || (statuses(sandbox) == vec!["DELIVERED"; count]).then_some(()));
}

/// A span as the collector got it.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    trace: String,
    id: String,
    parent: Option<String>,
    name: String,
    error: Option<String>,
    times: (u64, u64),
    attributes: BTreeMap<String, String>,
}

impl Span {
    fn read(json: &Value) -> Span {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let number = |value: &Value| text(value).parse::<u64>().expect("a number as a text");
        let attribute = |attribute: &Value| {
            let (sort, value) =
                attribute["value"].as_object().and_then(|value| value.iter().next()).expect("one value");
            let value = if sort == "boolValue" { value.to_string() } else { text(value) };
            (text(&attribute["key"]), value)
        };
        let span = Span {
            trace: text(&json["traceId"]),
            id: text(&json["spanId"]),
            parent: json.get("parentSpanId").map(text),
            name: text(&json["name"]),
            error: (json["status"]["code"] == 2).then(|| text(&json["status"]["message"])),
            times: (number(&json["startTimeUnixNano"]), number(&json["endTimeUnixNano"])),
            attributes: json["attributes"].as_array().expect("a list").iter().map(attribute).collect(),
        };
        assert!((span.trace.len(), span.id.len()) == (32, 16) && span.times.0 <= span.times.1, "{span:?}");
        span
    }

    fn is(&self, key: &str, value: &str) -> bool {
        self.attributes.get(key).is_some_and(|own| own == value)
    }
}

fn spans_of(request: &Request) -> Vec<Span> {
    let json: Value = serde_json::from_str(&request.body).expect("JSON");
    let spans = json["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans");
    spans.iter().map(Span::read).collect()
}

fn spans(server: &Server) -> Vec<Span> {
    server.requests().iter().flat_map(spans_of).collect()
}

/// The span of the job of this name, or of one of its attempts.
fn find<'s>(spans: &'s [Span], job: &str, attempt: Option<i64>) -> &'s Span {
    let found: Vec<&Span> = spans
        .iter()
        .filter(|span| span.is("windlass.job", job))
        .filter(|span| match attempt {
            Some(attempt) => span.is("windlass.attempt", &attempt.to_string()),
            None => !span.attributes.contains_key("windlass.attempt"),
        })
        .collect();
    assert_eq!(found.len(), 1, "{job} {attempt:?} in {spans:#?}");
    found[0]
}

const EVERYTHING: &str = r#"
name = "everything"
params = { token = { default = "in-a-param" } }
[workflows.low.jobs.inner]
run = 'echo "$TRACEPARENT" > inner'
[jobs.flaky]
retry = { max_attempts = 2, delay = "0s" }
env = { SECRET = "in-the-environment" }
run = 'echo "$TRACEPARENT" >> flaky; test $WINDLASS_ATTEMPT -gt 1 || { echo "no luck" >&2; exit 3; }'
[jobs.never]
if = "false"
run = "true"
[jobs.each]
needs = "flaky"
for_each = ["x", "y"]
run = 'true'
[jobs.call]
needs = "flaky"
workflow = "low"
[jobs.bad]
needs = "flaky"
run = 'echo "no disk" >&2; exit 4'
[jobs.after]
needs = "bad"
run = "true"
"#;

#[test]
fn a_run_is_a_trace_with_a_span_for_each_job_and_each_attempt() {
    let sandbox = Sandbox::new();
    let server = collector();
    sandbox.write(
        "windlass.toml",
        format!(
            "[traces]\nendpoint = '{}'\n[traces.headers]\nX-Tenant = 'a'\nAuthorization = {{ command = ['echo', 'Bearer sesame'] }}\n",
            server.url("/v1/traces")
        ),
    );
    let _service = serve(&sandbox);
    let file = sandbox.write("everything.toml", EVERYTHING);
    let mut command = sandbox.command(&["submit", &file]);
    command.env("TRACEPARENT", CALLER);
    sandbox.start(command).wait().exited(0);
    await_deliveries(&sandbox, 1);
    let [request] = server.requests().try_into().expect("one request");
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(
        (request.header("x-tenant"), request.header("authorization")),
        (Some("a"), Some("Bearer sesame"))
    );
    let spans = spans_of(&request);
    assert!(spans.iter().all(|span| span.trace == CALLER[3..35]), "{spans:#?}");
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    assert_eq!(ids.len(), spans.len(), "each span once");
    let top = spans.iter().find(|span| span.name == "everything").expect("the run");
    assert_eq!(top.parent.as_deref(), Some(&CALLER[36..52]));
    assert!(top.is("windlass.run.status", "FAILED") && top.error.is_some(), "{top:?}");
    let parent_of = |span: &Span| span.parent.clone().expect("a parent");
    let flaky = find(&spans, "flaky", None);
    assert_eq!((parent_of(flaky), &flaky.error), (top.id.clone(), &None));
    let (first, second) = (find(&spans, "flaky", Some(1)), find(&spans, "flaky", Some(2)));
    assert_eq!((parent_of(first), parent_of(second)), (flaky.id.clone(), flaky.id.clone()));
    assert_eq!(first.error.as_deref(), Some("exit code 3: no luck"));
    assert!(first.is("windlass.outcome", "failed") && first.is("error.type", "failed"), "{first:?}");
    assert!(second.is("windlass.outcome", "successful") && second.is("process.exit.code", "0"), "{second:?}");
    assert_eq!((flaky.times.0, flaky.times.1), (first.times.0, second.times.1));
    let told: Vec<String> = sandbox.read("flaky").lines().map(|line| line[36..52].to_owned()).collect();
    assert_eq!(told, [first.id.as_str(), second.id.as_str()], "the job was told its span");
    for (name, status) in [("never", "SKIPPED"), ("after", "SKIPPED")] {
        let skipped = find(&spans, name, None);
        assert!(skipped.is("windlass.job.status", status) && skipped.error.is_none(), "{skipped:?}");
        assert_eq!(parent_of(skipped), top.id);
    }
    assert_eq!(find(&spans, "bad", None).error.as_deref(), Some("exit code 4: no disk"));
    let group = find(&spans, "each", None);
    for item in ["each[0]", "each[1]"] {
        assert_eq!(parent_of(find(&spans, item, None)), group.id);
    }
    let low = spans.iter().find(|span| span.name == "low").expect("the run below");
    assert_eq!(parent_of(low), find(&spans, "call", None).id);
    assert_eq!(parent_of(find(&spans, "inner", None)), low.id);
    assert_eq!(find(&spans, "inner", Some(1)).id, sandbox.read("inner")[36..52]);
    for secret in ["in-a-param", "in-the-environment", "sesame"] {
        assert!(!request.body.contains(secret), "{secret}");
    }
}

#[test]
fn a_second_export_has_the_same_ids_and_a_retry_adds_attempts() {
    let sandbox = Sandbox::new();
    let server = collector();
    configure(&sandbox, &server.url("/"));
    let mut service = serve(&sandbox);
    let file =
        sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'test -e there'\n[jobs.b]\nrun = 'true'\n");
    sandbox.run(&["submit", &file]).exited(0);
    await_deliveries(&sandbox, 1);
    let first = spans(&server);
    service.kill_9();
    // A delivery that was not recorded is repeated by another process.
    sandbox
        .database()
        .sql(Access::Write)
        .execute("UPDATE notifications SET status = 'PENDING', finished_at = NULL, next_at = 0");
    let _next = serve(&sandbox);
    eventually("the second delivery", || (spans(&server).len() >= 2 * first.len()).then_some(()));
    assert_eq!(spans(&server)[first.len()..], first[..], "the same");
    sandbox.write("there", "");
    sandbox.run(&["retry", "1"]).exited(0);
    eventually("the third delivery", || {
        (server.requests().len() == 3 && statuses(&sandbox).iter().all(|status| status == "DELIVERED"))
            .then_some(())
    });
    let third = spans_of(&server.requests()[2]);
    let ids = |spans: &[Span]| -> BTreeSet<String> { spans.iter().map(|span| span.id.clone()).collect() };
    let added: Vec<String> = ids(&third).difference(&ids(&first)).cloned().collect();
    assert_eq!(added, [find(&third, "a", Some(2)).id.as_str()]);
    assert!(ids(&first).is_subset(&ids(&third)), "the earlier spans keep their ids");
    assert_eq!(find(&third, "a", None).error, None);
}

#[test]
fn the_trace_of_a_run_that_ended_while_nobody_served_arrives_later() {
    let sandbox = Sandbox::new();
    let server = collector();
    configure(&sandbox, &server.url("/"));
    let mut service = serve(&sandbox);
    service.kill_9();
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["run", &file]).exited(0);
    assert!(server.requests().is_empty());
    let _next = serve(&sandbox);
    await_deliveries(&sandbox, 1);
    assert_eq!(spans(&server).len(), 3);
}

/// The service is killed while the collector has the request and has not answered: the trace comes again.
#[test]
fn a_trace_is_sent_again_when_the_service_was_killed_before_the_answer() {
    let sandbox = Sandbox::new();
    let answers = Arc::new(AtomicBool::new(false));
    let answering = Arc::clone(&answers);
    let server = Server::start(move |_request, stream| {
        if answering.load(Ordering::Acquire) {
            answer(stream, "200 OK", "", "{}")
        } else {
            // Until the client is gone.
            let _closed = std::io::Read::read(stream, &mut [0]);
        }
    });
    configure(&sandbox, &server.url("/v1/traces"));
    let mut service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the request", || (server.requests().len() == 1).then_some(()));
    service.kill_9();
    assert_eq!(statuses(&sandbox), ["PENDING"]);
    answers.store(true, Ordering::Release);
    // The lease of the killed service.
    sandbox.database().sql(Access::Write).execute("UPDATE notifications SET next_at = 0");
    let _next = serve(&sandbox);
    await_deliveries(&sandbox, 1);
    let requests = server.requests();
    assert_eq!(spans_of(&requests[0]), spans_of(&requests[1]), "the same spans");
}

#[test]
fn an_attempt_that_was_killed_is_in_the_trace() {
    let sandbox = Sandbox::new();
    let server = collector();
    configure(&sandbox, &server.url("/"));
    let mut service = serve(&sandbox);
    let file = sandbox.write(
        "f.toml",
        "name = 'f'\n[jobs.a]\nrun = 'echo \"$TRACEPARENT\" >> places; test $WINDLASS_ATTEMPT -gt 1 || sleep 1000'\n",
    );
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the first attempt", || sandbox.read("places").ends_with('\n').then_some(()));
    service.kill_9();
    let _next = serve(&sandbox);
    await_deliveries(&sandbox, 1);
    let spans = spans(&server);
    let (killed, second) = (find(&spans, "a", Some(1)), find(&spans, "a", Some(2)));
    assert!(killed.is("windlass.outcome", "interrupted") && killed.error.is_some(), "{killed:?}");
    let told: Vec<String> = sandbox.read("places").lines().map(|line| line[36..52].to_owned()).collect();
    assert_eq!(told, [killed.id.as_str(), second.id.as_str()]);
}

#[test]
fn a_collector_that_is_down_or_redirects_gets_the_trace_later() {
    let sandbox = Sandbox::new();
    let elsewhere = collector();
    let to = elsewhere.url("/");
    let is_up = Arc::new(AtomicBool::new(false));
    let up = Arc::clone(&is_up);
    let server = Server::start(move |_request, stream| match up.load(Ordering::Acquire) {
        true => answer(stream, "200 OK", "", "{}"),
        false => answer(stream, "307 Temporary Redirect", &format!("Location: {to}\r\n"), ""),
    });
    configure(&sandbox, &server.url("/?token=sesame"));
    let service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["submit", &file]).exited(0);
    let error = eventually("a failed delivery", || {
        let errors: Vec<Option<String>> =
            sandbox.tables().rows("SELECT last_error FROM notifications", |row| row.get(0));
        errors.into_iter().next().flatten()
    });
    assert_eq!(error, "status 307 Temporary Redirect; redirects are not followed");
    is_up.store(true, Ordering::Release);
    let hurry = || {
        sandbox
            .database()
            .sql(Access::Write)
            .execute("UPDATE notifications SET next_at = 0 WHERE status = 'PENDING'");
    };
    hurry();
    await_deliveries(&sandbox, 1);
    assert_eq!(spans_of(server.requests().last().expect("a request")).len(), 3);
    assert!(elsewhere.requests().is_empty());
    assert!(!service.stderr_so_far().contains("sesame"), "{}", service.stderr_so_far());
}

#[test]
fn a_trace_that_the_caller_does_not_record_is_not_sent() {
    let sandbox = Sandbox::new();
    let server = collector();
    configure(&sandbox, &server.url("/"));
    let _service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'echo \"$TRACEPARENT\" > place'\n");
    let mut command = sandbox.command(&["submit", &file]);
    command.env("TRACEPARENT", CALLER.replace("-01", "-00"));
    sandbox.start(command).wait().exited(0);
    await_deliveries(&sandbox, 1);
    assert!(server.requests().is_empty());
    assert!(sandbox.read("place").ends_with("-00\n"));
}

/// A request that the collector refuses would be refused again.
#[test]
fn a_trace_that_is_refused_for_good_is_given_up_at_once() {
    let sandbox = Sandbox::new();
    let status = Arc::new(std::sync::Mutex::new("400 Bad Request"));
    let shared = Arc::clone(&status);
    let server = Server::start(move |_request, stream| {
        let status = *shared.lock().expect("the status");
        answer(stream, status, "Content-Type: application/json\r\n", "{\"message\":\"sesame\"}")
    });
    configure(&sandbox, &server.url("/"));
    let service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["submit", &file]).exited(0);
    let told = |status: &str| {
        let rows: Vec<(String, i64, Option<String>)> = sandbox
            .tables()
            .rows("SELECT status, attempt, last_error FROM notifications ORDER BY id", |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            });
        rows.into_iter().last().filter(|row| row.2.as_deref().is_some_and(|error| error.starts_with(status)))
    };
    let given_up = eventually("the refusal", || told("status 400"));
    assert_eq!((given_up.0.as_str(), given_up.1), ("FAILED", 1), "{given_up:?}");
    eventually("the line about it", || {
        service.stderr_so_far().contains("given up: the target refused it").then_some(())
    });
    assert!(!service.stderr_so_far().contains("sesame"), "{}", service.stderr_so_far());
    // These two pass.
    for passing in ["429 Too Many Requests", "503 Service Unavailable"] {
        *status.lock().expect("the status") = passing;
        sandbox.run(&["submit", &file]).exited(0);
        let waiting = eventually(passing, || told(&format!("status {}", &passing[..3])));
        assert_eq!(waiting.0, "PENDING", "{waiting:?}");
    }
}

/// A collector that takes a trace and rejects spans of it has answered: nothing is repeated, and the log says it once.
#[test]
fn spans_that_a_collector_rejects_are_told_once() {
    let sandbox = Sandbox::new();
    let body = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old for open-sesame"}}"#;
    let server = Server::start(move |_request, stream| {
        answer(stream, "200 OK", "Content-Type: application/json\r\n", body)
    });
    let url = server.url("/");
    sandbox.write(
        "windlass.toml",
        format!("[traces]\nendpoint = '{url}'\n[traces.headers]\nAuthorization = {{ command = ['echo', 'open-sesame'] }}\n"),
    );
    let mut service = serve(&sandbox);
    let jobs: String = (0..600).map(|n| format!("[jobs.j{n}]\nrun = 'true'\n")).collect();
    let file = sandbox.write("f.toml", format!("name = 'f'\n{jobs}"));
    sandbox.run(&["submit", &file]).exited(0);
    await_deliveries(&sandbox, 1);
    service.signal(Signal::TERM);
    service.wait().exited(0);
    assert_eq!(server.requests().len(), 2, "1,201 spans in two requests, each sent once");
    let stderr = service.stderr_so_far();
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("rejected spans")).collect();
    let [line] = lines.as_slice() else { panic!("one line: {stderr}") };
    assert!(
        line.contains("WARN") && line.contains("rejected=4") && line.contains("too old for ***"),
        "{line}"
    );
}

/// A run with 10,000 attempts goes out in requests of 1,000 spans, and one with more than 50,000 spans says that it is cut.
#[test]
fn large_traces_are_sent_in_parts_and_cut() {
    let sandbox = Sandbox::new();
    let server = collector();
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n[jobs.b]\nrun = 'true'\n");
    sandbox.run(&["run", &file]).exited(0);
    let insert = |from: i64, until: i64| {
        sandbox.database().sql(Access::Write).execute(&format!(
            "INSERT INTO job_attempts (job_id, attempt, outcome, error, started_at, finished_at)
             WITH RECURSIVE numbers (n) AS (SELECT {from} UNION ALL SELECT n + 1 FROM numbers WHERE n < {until})
             SELECT jobs.id, n, 'failed', 'no luck', jobs.created_at, jobs.finished_at
             FROM numbers, jobs WHERE jobs.name = 'a'"
        ));
    };
    let mark = || {
        sandbox.database().sql(Access::Write).execute(
            "INSERT INTO notifications (target, event, subject_id, subject, happened_at, next_at, created_at)
             SELECT 'traces', 'run_successful', id, workflow, finished_at, 0, finished_at FROM runs",
        );
    };
    insert(2, 10_000);
    mark();
    // On a busy machine a delivery may take longer than the 30 seconds that it has by default. The repetition would send the
    // spans again, and the sums below would count both.
    let url = server.url("/");
    sandbox.write("windlass.toml", format!("[traces]\nendpoint = '{url}'\ntimeout = '5m'\n"));
    let mut service = serve(&sandbox);
    await_deliveries(&sandbox, 1);
    let sizes: Vec<usize> = server.requests().iter().map(|request| spans_of(request).len()).collect();
    // Two jobs, their attempts, and the run.
    assert_eq!(sizes.iter().sum::<usize>(), 2 + 2 + 9_999 + 1);
    assert!(sizes.iter().all(|size| *size <= 1_000), "{sizes:?}");
    let last = spans(&server).pop().expect("a span");
    assert!(last.name == "f" && !last.attributes.contains_key("windlass.spans_left_out"), "{last:?}");
    service.signal(Signal::TERM);
    service.wait().exited(0);
    let before = server.requests().len();
    insert(10_001, 60_000);
    sandbox
        .database()
        .sql(Access::Write)
        .execute("UPDATE notifications SET status = 'PENDING', finished_at = NULL, next_at = 0");
    let _next = serve(&sandbox);
    await_deliveries(&sandbox, 1);
    let sizes: Vec<usize> =
        server.requests()[before..].iter().map(|request| spans_of(request).len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 50_001);
    let last = spans(&server).pop().expect("a span");
    assert!(last.name == "f" && last.is("windlass.spans_left_out", "true"), "{last:?}");
}

#[test]
fn a_collector_is_tried_and_its_keys_are_checked() {
    let sandbox = Sandbox::new();
    let server = collector();
    let cases = [
        ("[traces]\n", "needs `endpoint`"),
        ("[traces]\nendpoint = 'ftp://x/?token=sesame'\n", "`endpoint` of `[traces]` can't be used"),
        ("[traces]\nendpiont = 'http://x/'\n", "did you mean `endpoint`?"),
        ("[traces]\nendpoint = 'http://x/'\ntimeout = '1h'\n", "must be between 1s and 5m"),
        ("[traces]\nendpoint = 'http://x/'\nheaders = { 'a b' = 'x' }\n", "the header `a b` can't be sent"),
        (
            "[traces]\nendpoint = 'http://x/'\nheaders = { a = { env = 'HOME' } }\n",
            "must begin with WINDLASS_",
        ),
        (
            "[traces]\nendpoint = 'http://x/'\nheaders = { a = { command = ['false'] } }\n",
            "the header `a` of `[traces]`",
        ),
        ("[traces]\nendpoint = 'http://x/'\n[notify.traces]\nurl = 'http://x/'\n", "have the same name"),
    ];
    for (config, expected) in cases {
        sandbox.write("windlass.toml", config);
        let refused = sandbox.run(&["serve", "--check"]).exited(2);
        assert!(refused.stderr.contains(expected), "{expected}: {}", refused.stderr);
        assert!(!refused.stderr.contains("sesame"), "{}", refused.stderr);
    }
    configure(&sandbox, &server.url("/v1/traces"));
    let checked = sandbox.run(&["serve", "--check"]).exited(0);
    assert!(
        checked.stdout.contains("traces") && !checked.stdout.contains("/v1/traces"),
        "{}",
        checked.stdout
    );
    let tried = sandbox.run(&["notify", "--test"]).exited(0);
    assert!(
        tried.stdout.contains("traces: delivered") && tried.stdout.contains("status 200 OK"),
        "{}",
        tried.stdout
    );
    assert_eq!(spans(&server), []);
}

/// The path of the collector is wrong, for many runs. The log says it once, with what to do, and says when it is over.
#[test]
fn a_wrong_path_is_told_once_with_the_next_step() {
    let sandbox = Sandbox::new();
    let is_right = Arc::new(AtomicBool::new(false));
    let right = Arc::clone(&is_right);
    let server = Server::start(move |_request, stream| match right.load(Ordering::Acquire) {
        true => answer(stream, "200 OK", "", "{}"),
        false => answer(stream, "404 Not Found", "", "no page"),
    });
    configure(&sandbox, &server.url("/v1"));
    let tried = sandbox.run(&["notify", "--test", "traces"]).exited(1);
    let next_step = "check the path of `endpoint` in `[traces]`, usually /v1/traces";
    assert!(tried.stdout.contains(next_step) || tried.stderr.contains(next_step), "{tried:?}");
    let mut service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    for count in 1..=3 {
        sandbox.run(&["submit", &file]).exited(0);
        eventually("the refusal", || (statuses(&sandbox) == vec!["FAILED"; count]).then_some(()));
    }
    is_right.store(true, Ordering::Release);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("a delivery", || {
        statuses(&sandbox).last().is_some_and(|status| status == "DELIVERED").then_some(())
    });
    service.signal(Signal::TERM);
    service.wait().exited(0);
    let stderr = service.stderr_so_far();
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("404")).collect();
    let [line] = lines.as_slice() else { panic!("one line: {stderr}") };
    assert!(line.contains("ERROR") && line.contains(next_step), "{line}");
    assert!(
        stderr.contains("the target takes notifications again") && stderr.contains("given_up=3"),
        "{stderr}"
    );
    let listed = sandbox.run(&["notify", "traces"]).exited(0);
    assert_eq!(listed.stdout.matches("404").count(), 3, "{}", listed.stdout);
}

/// The collector has taken the trace, and says so much that its answer is not read. Nothing is repeated, and the log says it.
#[test]
fn an_answer_that_is_too_long_is_a_delivery_with_a_warning() {
    let sandbox = Sandbox::new();
    let body = format!("{{\"x\":\"{}\"}}", "x".repeat(64 * 1024));
    let server = Server::start(move |_request, stream| answer(stream, "200 OK", "", &body));
    configure(&sandbox, &server.url("/v1/traces"));
    let mut service = serve(&sandbox);
    let file = sandbox.write("f.toml", "name = 'f'\n[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["submit", &file]).exited(0);
    await_deliveries(&sandbox, 1);
    service.signal(Signal::TERM);
    service.wait().exited(0);
    assert_eq!(server.requests().len(), 1);
    let stderr = service.stderr_so_far();
    assert_eq!(stderr.matches("its answer is longer than 64 KiB").count(), 1, "{stderr}");
}
