//! Promise: a job of the kind `http` sends what its file says, is retried when that may help, ends in time whatever the
//! server does, and has the same idempotency key in all attempts.

use std::collections::BTreeSet;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_tests::seed::{number_from, round_rng, seed};
use windlass_tests::{Sandbox, eventually};

use crate::http_server::{Request, Server, answer, for_ever};
use crate::support::assert_says;

const JSON: &str = "Content-Type: application/json\r\n";

/// An answer at once that is far below every timeout of the tests.
const SOON: Duration = Duration::from_secs(20);

fn output(sandbox: &Sandbox, job: &str) -> Value {
    let text = sandbox.tables().jobs_of(1)[job].output.clone();
    serde_json::from_str(text.as_deref().unwrap_or("null")).expect("an output is JSON")
}

/// The state, the number of failures and the error of a job of run 1.
fn end(sandbox: &Sandbox, job: &str) -> (String, i64, String) {
    let job = &sandbox.tables().jobs_of(1)[job];
    (job.status.clone(), job.failures, job.last_error.clone().unwrap_or_default())
}

#[test]
fn a_request_is_sent_as_it_is_written_and_its_answer_is_the_output() {
    let server = Server::start(|request, stream| match request.path.as_str() {
        "/list" => answer(stream, "200 OK", JSON, r#"{"items": [1, "two", null], "total": 3}"#),
        _ => answer(stream, "201 Created", "X-Id: 7\r\n", "made\n"),
    });
    let sandbox = Sandbox::new();
    let url = server.url("");
    let text = format!(
        r#"
[params]
day = {{ default = "2026-01-31" }}
count = {{ type = "integer", default = 5 }}
[jobs.list]
http = "{url}/list"
[jobs.json]
needs = ["list"]
http = {{ url = "{url}/json", json = {{ all = "{{{{ jobs.list.output.body }}}}", n = "{{{{ params.count }}}}", text = "day {{{{ params.day }}}}", deep = [{{ x = "{{{{ jobs.list.output.body.items[1] }}}}" }}, true, 1.5] }}, auth = {{ bearer = "abc" }} }}
[jobs.form]
http = {{ url = "{url}/form?a=1", method = "PUT", form = {{ "a b" = "c&d=e", day = "{{{{ params.day }}}}" }}, query = {{ q = "x y/ä" }}, auth = {{ basic = "user:pass" }}, headers = {{ X-Own = "{{{{ params.day }}}}" }} }}
[jobs.text]
http = {{ url = "{url}/text", body = "{{{{ params.day }}}}", headers = {{ Content-Type = "text/csv" }} }}
[jobs.delete]
http = {{ url = "{url}/delete", method = "DELETE" }}
"#
    );
    let file = sandbox.write("http.toml", text);
    sandbox.run(&["run", &file]).exited(0);

    let list = output(&sandbox, "list");
    assert_eq!(list["status"], 200);
    assert_eq!(list["body"], json!({"items": [1, "two", null], "total": 3}));
    assert_eq!(list["headers"]["content-type"], "application/json");
    let form = output(&sandbox, "form");
    assert_eq!(
        (&form["status"], &form["body"], &form["headers"]["x-id"]),
        (&json!(201), &json!("made\n"), &json!("7"))
    );

    let of = |path: &str| server.requests_for(path).remove(0);
    let get = of("/list");
    assert_eq!((get.method.as_str(), get.header("idempotency-key")), ("GET", None));
    assert!(get.header("user-agent").is_some_and(|agent| agent.starts_with("windlass/")));
    let json = of("/json");
    assert_eq!((json.method.as_str(), json.header("content-type")), ("POST", Some("application/json")));
    assert_eq!(json.header("authorization"), Some("Bearer abc"));
    assert_eq!(
        serde_json::from_str::<Value>(&json.body).expect("JSON"),
        json!({"all": {"items": [1, "two", null], "total": 3}, "n": 5, "text": "day 2026-01-31",
               "deep": [{"x": "two"}, true, 1.5]})
    );
    let form = of("/form");
    assert_eq!((form.method.as_str(), form.path.as_str()), ("PUT", "/form?a=1&q=x%20y%2F%C3%A4"));
    assert_eq!(form.body, "a%20b=c%26d%3De&day=2026-01-31");
    assert_eq!(form.header("authorization"), Some("Basic dXNlcjpwYXNz"));
    assert_eq!(form.header("x-own"), Some("2026-01-31"));
    let text = of("/text");
    assert_eq!((text.body.as_str(), text.header("content-type")), ("2026-01-31", Some("text/csv")));
    assert_eq!(of("/delete").header("content-length").unwrap_or("0"), "0");
    let keys: BTreeSet<String> = ["/json", "/form", "/text", "/delete"]
        .map(|path| of(path).header("idempotency-key").expect("a key").to_owned())
        .into();
    assert_eq!(keys.len(), 4, "each job has its own key");

    let log = sandbox.run(&["logs", "1/list"]).exited(0).stdout;
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains(&format!("GET {}: status 200 OK, 39 bytes in ", server.host())), "{log}");
}

/// Answers the n-th request for a path with a status that the path names: `/503-200` is 503, then 200 for ever.
fn by_path(request: &Request, count: usize) -> String {
    let statuses: Vec<&str> = request.path.trim_start_matches('/').split('-').collect();
    statuses[count.min(statuses.len() - 1)].to_owned()
}

#[test]
fn what_may_pass_is_retried_with_the_same_key_and_everything_else_is_not() {
    let counts = std::sync::Mutex::new(std::collections::HashMap::<String, usize>::new());
    let server = Server::start(move |request, stream| {
        let count = {
            let mut counts = counts.lock().expect("no panic");
            let count = counts.entry(request.path.clone()).or_default();
            *count += 1;
            *count - 1
        };
        let status = by_path(request, count);
        let (after, body) = match status.as_str() {
            "429" => ("Retry-After: 1\r\n", "\n  slow down \nmore"),
            "502" => ("Retry-After: 3600\r\n", ""),
            _ => ("", "{\"error\": \"no such table\"}\n"),
        };
        answer(stream, &status, after, body);
    });
    let sandbox = Sandbox::new();
    let job = |name: &str, path: &str| {
        format!(
            "[jobs.{name}]\nallow_failure = true\nhttp = {{ url = \"{}\", json = {{}} }}\n",
            server.url(path)
        )
    };
    let text = format!(
        "[defaults]\nretry = {{ max_attempts = 3, delay = \"1ms\", max_delay = \"1100ms\", jitter = 0 }}\n{}{}{}{}{}{}",
        job("passing", "/503-500-200"),
        job("lasting", "/500"),
        job("missing", "/404"),
        job("asked", "/429-200"),
        job("capped", "/502-200"),
        "[jobs.nobody]\nallow_failure = true\nhttp = \"http://127.0.0.1:1/\"\n",
    );
    let file = sandbox.write("statuses.toml", text);
    sandbox.run(&["run", &file]).exited(0);

    let host = server.host();
    assert_eq!((end(&sandbox, "passing").0.as_str(), end(&sandbox, "passing").1), ("SUCCESSFUL", 2));
    let error = format!("POST {host}: status 500 Internal Server Error: {{\"error\": \"no such table\"}}");
    assert_eq!(end(&sandbox, "lasting"), ("FAILED".to_owned(), 3, error));
    let error = format!("POST {host}: status 404 Not Found: {{\"error\": \"no such table\"}}");
    assert_eq!(end(&sandbox, "missing"), ("FAILED".to_owned(), 1, error));
    let (status, failures, error) = end(&sandbox, "nobody");
    assert_eq!((status.as_str(), failures), ("FAILED", 3));
    assert!(error.starts_with("GET 127.0.0.1:1: ") && error.contains("refused"), "{error}");

    for (job, path, least) in [("asked", "/429", 1_000), ("capped", "/502", 1_100)] {
        assert_eq!(end(&sandbox, job).0, "SUCCESSFUL");
        let [first, second] = server.requests_for(path).try_into().expect("two requests");
        let waited = second.at - first.at;
        assert!(waited >= Duration::from_millis(least), "{job} waited {waited:?}");
        assert!(waited < SOON, "{job} waited {waited:?}");
    }
    let keys: BTreeSet<Option<String>> = server
        .requests_for("/503")
        .iter()
        .map(|request| request.header("idempotency-key").map(str::to_owned))
        .collect();
    assert_eq!(keys.len(), 1, "all attempts of a job have one key: {keys:?}");
    assert!(!keys.contains(&None));
    assert_eq!(server.requests_for("/503").len(), 3);
    assert_eq!(server.requests_for("/404").len(), 1);
}

#[test]
fn redirects_are_followed_and_nothing_secret_goes_to_another_origin() {
    let other = Server::start(|_request, stream| answer(stream, "200 OK", "", "elsewhere"));
    let elsewhere = other.url("/there");
    let server = Server::start(move |request, stream| {
        let to = |status: &str, location: &str| (status.to_owned(), format!("Location: {location}\r\n"));
        let (status, headers) = match request.path.as_str() {
            "/a/first" => to("302 Found", "../second?x=1"),
            "/post" => to("303 See Other", "/second"),
            "/keep" => to("307 Temporary Redirect", "/second"),
            "/away" | "/body-away" => to("307 Temporary Redirect", &elsewhere),
            "/loop" => to("301 Moved Permanently", "/loop"),
            "/file" => to("302 Found", "file:///etc/passwd"),
            "/cloud" => to("302 Found", "http://169.254.169.254/latest/meta-data/"),
            "/stay" => to("302 Found", "/second"),
            _ => ("200 OK".to_owned(), String::new()),
        };
        answer(stream, &status, &headers, "");
    });
    let sandbox = Sandbox::new();
    let url = server.url("");
    let secret = "auth = { bearer = \"abc\" }, headers = { X-Key = \"abc\", Cookie = \"abc\" }";
    let text = format!(
        r#"
[jobs.near]
http = {{ url = "{url}/a/first", {secret} }}
[jobs.post]
http = {{ url = "{url}/post", json = {{}}, {secret} }}
[jobs.keep]
http = {{ url = "{url}/keep", json = [1], {secret} }}
[jobs.away]
http = {{ url = "{url}/away", {secret} }}
[jobs.stay]
http = {{ url = "{url}/stay", follow = false }}
[jobs.body-away]
http = {{ url = "{url}/body-away", body = "secret" }}
allow_failure = true
[jobs.loop]
http = "{url}/loop"
allow_failure = true
[jobs.file]
http = "{url}/file"
allow_failure = true
[jobs.cloud]
http = "{url}/cloud"
allow_failure = true
[defaults]
retry = 3
"#
    );
    let file = sandbox.write("redirects.toml", text);
    sandbox.run(&["run", &file]).exited(0);
    let near = &server.requests_for("/second?x=1")[0];
    assert_eq!((near.header("authorization"), near.header("x-key")), (Some("Bearer abc"), Some("abc")));
    let after: Vec<(String, String)> = server
        .requests_for("/second")
        .into_iter()
        .filter(|request| request.header("authorization").is_some() && request.path == "/second")
        .map(|request| (request.method, request.body))
        .collect();
    let mut after = after;
    after.sort();
    assert_eq!(after, [("GET".to_owned(), String::new()), ("POST".to_owned(), "[1]".to_owned())]);
    assert_eq!(output(&sandbox, "stay")["status"], 302);
    assert_eq!(output(&sandbox, "away")["body"], "elsewhere");
    let [away] = other.requests().try_into().expect("one request: the body went nowhere else");
    for header in ["authorization", "x-key", "cookie"] {
        assert_eq!(away.header(header), None, "{header} went to another origin");
    }
    for (job, reason) in [
        ("body-away", "a body is not sent to another origin"),
        ("loop", "more than 5 redirects"),
        ("file", "redirected to a wrong address"),
        ("cloud", "is link-local"),
    ] {
        let (status, failures, error) = end(&sandbox, job);
        assert_eq!((status.as_str(), failures), ("FAILED", 1), "{job}: {error}");
        assert!(error.contains(reason), "{job}: {error}");
    }
    assert_eq!(server.requests_for("/loop").len(), 6);
}

#[test]
fn a_hostile_server_fails_its_job_with_a_clear_error_and_in_time() {
    let server = Server::start(|request, stream| {
        let pause = Duration::from_millis(20);
        let endless = "x".repeat(8192);
        match request.path.as_str() {
            "/endless-body" => for_ever(stream, "HTTP/1.1 200 OK\r\n\r\n", &endless, Duration::ZERO),
            "/endless-chunks" => {
                let chunk = format!("2000\r\n{endless}\r\n");
                for_ever(
                    stream,
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                    &chunk,
                    Duration::ZERO,
                );
            }
            "/endless-head" => {
                for_ever(stream, "HTTP/1.1 200 OK\r\n", &format!("X: {endless}\r\n"), Duration::ZERO)
            }
            "/slow-head" => for_ever(stream, "HTTP/1.1 200 OK\r\n", "X: y\r\n", pause),
            "/slow-body" => for_ever(stream, "HTTP/1.1 200 OK\r\n\r\n", "x", pause),
            "/silent" => for_ever(stream, "", "", Duration::from_secs(1)),
            "/garbage" => for_ever(stream, "SSH-2.0-OpenSSH_9.2\r\n\r\n", "", Duration::from_secs(1)),
            "/length" => for_ever(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999999\r\n\r\n",
                "",
                pause,
            ),
            _ => {}
        }
    });
    let sandbox = Sandbox::new();
    let cases = [
        ("endless-body", "its body is larger than 1048576 bytes: set `max_bytes`, or `save`", "failed"),
        ("endless-chunks", "its body is larger than 1048576 bytes", "failed"),
        ("endless-head", "", "failed"),
        ("slow-head", "no whole answer within 1s", "timed_out"),
        ("slow-body", "no whole answer within 1s", "timed_out"),
        ("silent", "no whole answer within 1s", "timed_out"),
        ("closed", "no answer: ", "failed"),
        ("garbage", "no valid answer: ", "failed"),
        ("length", "", "failed"),
    ];
    let jobs: Vec<String> = cases
        .iter()
        .map(|(name, _, _)| {
            let timeout = if name.starts_with("endless") { "20s" } else { "1s" };
            format!(
                "[jobs.{name}]\nhttp = {{ url = \"{}\", timeout = \"{timeout}\" }}\n",
                server.url(&format!("/{name}"))
            )
        })
        .collect();
    let file = sandbox.write("hostile.toml", jobs.concat());
    let started = Instant::now();
    sandbox.run(&["run", &file]).exited(1);
    assert!(started.elapsed() < SOON, "{:?}", started.elapsed());
    let outcomes = sandbox.tables().attempts();
    for (name, reason, outcome) in cases {
        let (status, _, error) = end(&sandbox, name);
        assert_eq!(status, "FAILED", "{name}");
        assert!(
            error.starts_with(&format!("GET {}: ", server.host())) && error.contains(reason),
            "{name}: {error}"
        );
        let id = sandbox.tables().jobs_of(1)[name].id;
        let recorded =
            outcomes.iter().find(|attempt| attempt.job_id == id).map(|attempt| attempt.outcome.as_str());
        assert_eq!(recorded, Some(outcome), "{name}: {error}");
    }
}

#[test]
fn link_local_addresses_are_refused_whatever_leads_there() {
    let sandbox = Sandbox::new();
    let hosts = ["169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]", "2852039166", "0xa9fea9fe"];
    let jobs: Vec<String> = hosts
        .iter()
        .enumerate()
        .map(|(index, host)| format!("[jobs.j{index}]\nhttp = \"http://{host}/latest\"\nretry = 3\n"))
        .collect();
    let file = sandbox.write("cloud.toml", jobs.concat());
    sandbox.run(&["run", &file]).exited(1);
    for (index, host) in hosts.iter().enumerate() {
        let (status, failures, error) = end(&sandbox, &format!("j{index}"));
        assert_eq!((status.as_str(), failures), ("FAILED", 1), "{host}: {error}");
        assert!(
            error.contains("is link-local") && error.contains("allow_link_local = true"),
            "{host}: {error}"
        );
    }
}

#[test]
fn a_request_ends_at_once_when_its_job_is_cancelled_or_times_out() {
    let server =
        Server::start(|_request, stream| for_ever(stream, "HTTP/1.1 200 OK\r\n", "", Duration::from_secs(1)));
    let sandbox = Sandbox::new();
    let url = server.url("");
    let text = format!(
        "[jobs.long]\nhttp = {{ url = \"{url}/long\", timeout = \"10m\" }}\n\
         [jobs.short]\ntimeout = \"300ms\"\nhttp = {{ url = \"{url}/short\", timeout = \"10m\" }}\n"
    );
    let file = sandbox.write("hanging.toml", text);
    let mut engine = sandbox.spawn(&["run", &file]);
    eventually("the request and the timeout", || {
        let is_over = || sandbox.tables().jobs_of(1)["short"].status == "FAILED";
        (!server.requests_for("/long").is_empty() && is_over()).then_some(())
    });
    let asked = Instant::now();
    sandbox.run(&["cancel", "1"]).exited(0);
    assert_says(&engine.wait(), 3, &["cancelled"]);
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    let host = server.host();
    assert_eq!(end(&sandbox, "long").2, format!("cancelled: GET {host} was ended"));
    assert_eq!(end(&sandbox, "short").2, format!("timed out after 300ms: GET {host} was ended"));
}

#[test]
fn a_body_is_saved_whole_or_not_at_all() {
    let large = "x".repeat(3 * 1024 * 1024);
    let server = Server::start(move |request, stream| match request.path.as_str() {
        "/large" => answer(stream, "200 OK", "", &large),
        "/broken" => {
            let _sent = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf");
        }
        _ => answer(stream, "404 Not Found", "", "\nno such file\n"),
    });
    let sandbox = Sandbox::new();
    let url = server.url("");
    let text = format!(
        r#"
[jobs.large]
http = {{ url = "{url}/large", save = "out/large.bin" }}
[jobs.missing]
http = {{ url = "{url}/missing", save = "out/kept.txt" }}
[jobs.limited]
http = {{ url = "{url}/large", save = "out/kept.txt", max_bytes = 1000000 }}
[jobs.broken]
http = {{ url = "{url}/broken", save = "out/kept.txt" }}
[jobs.nowhere]
http = {{ url = "{url}/large", save = "no-such-folder/x" }}
"#
    );
    let file = sandbox.write("save.toml", text);
    std::fs::create_dir(sandbox.path("out")).expect("a folder");
    sandbox.write("out/kept.txt", "before");
    sandbox.run(&["run", &file]).exited(1);
    let saved = output(&sandbox, "large");
    let path = sandbox.path("out/large.bin");
    assert_eq!((&saved["bytes"], &saved["body"]), (&json!(3 * 1024 * 1024), &Value::Null));
    assert_eq!(saved["file"], path.display().to_string());
    assert_eq!(std::fs::metadata(&path).expect("the file").len(), 3 * 1024 * 1024);
    assert_eq!(sandbox.read("out/kept.txt"), "before");
    assert!(
        end(&sandbox, "missing").2.ends_with("status 404 Not Found: no such file"),
        "{}",
        end(&sandbox, "missing").2
    );
    assert!(
        end(&sandbox, "limited").2.contains("larger than 1000000 bytes"),
        "{}",
        end(&sandbox, "limited").2
    );
    assert!(end(&sandbox, "broken").2.contains("the answer broke off"), "{}", end(&sandbox, "broken").2);
    assert!(end(&sandbox, "nowhere").2.contains("check `save`"), "{}", end(&sandbox, "nowhere").2);
    let mut left: Vec<String> = std::fs::read_dir(sandbox.path("out"))
        .expect("the folder")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    left.sort();
    assert_eq!(left, ["kept.txt", "large.bin"], "no part of a body is left");
}

#[test]
fn conditions_read_the_status_and_the_headers() {
    let server = Server::start(|request, stream| {
        let status = request.path.trim_start_matches('/').split('-').next().unwrap_or_default();
        answer(stream, status, &format!("X-State: done\r\n{JSON}"), "{\"ready\": false}");
    });
    let sandbox = Sandbox::new();
    let job = |name: &str, path: &str, rest: &str| {
        format!("[jobs.{name}]\nallow_failure = true\nhttp = \"{}\"\n{rest}\n", server.url(path))
    };
    let text = [
        job("absent", "/404-a", "success_if = \"status in [200, 404]\""),
        job("skipped", "/200-a", "skip_if = \"headers['x-state'] == 'done'\""),
        job("unready", "/200-b", "success_if = \"output.body.ready\""),
        job("again", "/404-b", "retry = { max_attempts = 3, delay = \"1ms\", if = \"status == 404\" }"),
        job("once", "/503", "retry = { max_attempts = 3, delay = \"1ms\", if = \"status == 404\" }"),
        "[jobs.nobody]\nallow_failure = true\nhttp = \"http://127.0.0.1:1\"\n\
         retry = { max_attempts = 2, delay = \"1ms\", if = \"status != 404\" }\n"
            .to_owned(),
    ];
    let file = sandbox.write("conditions.toml", text.concat());
    sandbox.run(&["run", &file]).exited(0);
    let ended = |job: &str| {
        let (status, failures, _) = end(&sandbox, job);
        format!("{status} {failures}")
    };
    assert_eq!(
        (ended("absent").as_str(), &output(&sandbox, "absent")["status"]),
        ("SUCCESSFUL 0", &json!(404))
    );
    assert_eq!(ended("skipped"), "SKIPPED 0");
    assert_eq!(ended("unready"), "FAILED 1");
    assert_eq!(ended("again"), "FAILED 3");
    assert_eq!(ended("once"), "FAILED 1");
    assert_eq!(ended("nobody"), "FAILED 2", "without an answer the status is null");
    let wrong = sandbox.write("wrong.toml", "[jobs.a]\nrun = 'x'\nsuccess_if = \"status == 200\"\n");
    assert_says(&sandbox.run(&["validate", &wrong]), 2, &["only a job with `http` has it"]);
}

/// How many runs are killed.
const CRASH_RUNS: u64 = 4;
const CRASH_JOBS: usize = 12;

/// A service that ignores repeated keys does the work once, because all attempts of a job have one key.
#[test]
fn killed_at_random_moments_a_run_sends_as_many_different_keys_as_jobs() {
    let seed = seed("killed_at_random_moments_a_run_sends_as_many_different_keys_as_jobs");
    let mut rng = round_rng(seed, 0);
    let server = Server::start(|_request, stream| {
        // The work of the service takes time, so that kills hit open requests.
        thread::sleep(Duration::from_millis(15));
        answer(stream, "200 OK", JSON, "{\"done\": true}");
    });
    let sandbox = Sandbox::new();
    let jobs: Vec<String> = (0..CRASH_JOBS)
        .map(|index| {
            let needs = if index == 0 { String::new() } else { format!("needs = [\"j{}\"]\n", index - 1) };
            let url = server.url(&format!("/{{{{ run.id }}}}/{index}"));
            format!("[jobs.j{index}]\n{needs}http = {{ url = \"{url}\", json = {{ index = {index} }} }}\n")
        })
        .collect();
    sandbox.write("chain.toml", format!("name = \"chain\"\n{}", jobs.concat()));
    let rounds = number_from("WINDLASS_CRASH_ROUNDS").unwrap_or(CRASH_RUNS);
    let mut repeated = 0;
    for run in 1..=rounds {
        sandbox.run(&["submit", "chain.toml"]).exited(0);
        for _kill in 0..4 {
            let mut engine = sandbox.spawn(&["resume"]);
            // This is no wait for a condition: the moment of the kill is random.
            thread::sleep(Duration::from_millis(rng.u64(0..400)));
            engine.kill_9();
        }
        sandbox.run(&["resume"]).exited(0);
        let requests = server.requests_for(&format!("/{run}/"));
        let keys: BTreeSet<(String, Option<&str>)> = requests
            .iter()
            .map(|request| (request.path.clone(), request.header("idempotency-key")))
            .collect();
        assert_eq!(keys.len(), CRASH_JOBS, "run {run}: each job has one key: {keys:?}");
        let different: BTreeSet<&Option<&str>> = keys.iter().map(|(_, key)| key).collect();
        assert_eq!(different.len(), CRASH_JOBS, "run {run}: no two jobs have the same key");
        repeated += requests.len() - CRASH_JOBS;
    }
    println!("{rounds} runs; {repeated} requests were sent again after a kill");
    assert_eq!(sandbox.leftovers(), []);
}
