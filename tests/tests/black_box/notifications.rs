//! Promise: what a target wants is told at least once, with one id, whatever is killed between the end of a run, the
//! delivery, and its record. The address of a target is nowhere but in the configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;
use serde_json::Value;
use windlass_test_database::Access;
use windlass_tests::{Sandbox, eventually};

use crate::hooks::{signature, write_secret};
use crate::http_server::{Request, Server, answer};
use crate::support::serve;

const FAILS: &str = "name = \"fails\"\n[jobs.load]\nrun = 'echo no disk >&2; exit 3'\n";

fn configure(sandbox: &Sandbox, url: &str) {
    sandbox.write("windlass.toml", format!("[notify.ops]\nurl = '{url}'\ntimeout = '5s'\n"));
}

fn statuses(sandbox: &Sandbox) -> Vec<String> {
    sandbox.tables().rows("SELECT status FROM notifications ORDER BY id", |row| row.get(0))
}

fn await_delivery(sandbox: &Sandbox) {
    eventually("the delivery", || (statuses(sandbox) == ["DELIVERED"]).then_some(()));
}

/// The time until another service may take what a killed one was delivering is over.
fn end_lease(sandbox: &Sandbox) {
    sandbox
        .database()
        .sql(Access::Write)
        .execute("UPDATE notifications SET next_at = 0 WHERE status = 'PENDING'");
}

fn body(request: &Request) -> Value {
    serde_json::from_str(&request.body).expect("a message is JSON")
}

#[test]
fn a_failed_run_is_told_with_its_failed_jobs() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_request, stream| answer(stream, "204 No Content", "", ""));
    configure(&sandbox, &server.url("/hook"));
    let _service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    let good = sandbox.write("good.toml", "[jobs.a]\nrun = 'true'\n");
    sandbox.run(&["run", &good]).exited(0);
    await_delivery(&sandbox);
    let [request] = server.requests().try_into().expect("one message");
    assert_eq!((request.method.as_str(), request.header("content-type")), ("POST", Some("application/json")));
    let message = body(&request);
    assert_eq!(
        (message["type"].as_str(), message["id"].as_str()),
        (Some("run_failed"), request.header("webhook-id"))
    );
    assert!(request.header("webhook-timestamp").is_some());
    assert_eq!(message["data"]["failed_jobs"][0]["job"], "load");
    assert_eq!(message["text"], "run 1 of workflow fails failed: job load failed (exit code 3: no disk)");
}

#[test]
fn a_run_that_ended_while_nobody_served_is_told_later() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_request, stream| answer(stream, "200 OK", "", ""));
    configure(&sandbox, &server.url("/hook"));
    let mut service = serve(&sandbox);
    service.kill_9();
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["run", &file]).exited(1);
    assert!(server.requests().is_empty());
    assert!(statuses(&sandbox).contains(&"PENDING".to_owned()));
    let _next = serve(&sandbox);
    eventually("the deliveries", || {
        statuses(&sandbox).iter().all(|status| status == "DELIVERED").then_some(())
    });
    let types: Vec<Value> = server.requests().iter().map(|request| body(request)["type"].clone()).collect();
    assert!(types.contains(&"run_failed".into()) && types.contains(&"worker_dead".into()), "{types:?}");
}

#[test]
fn a_delivery_that_was_not_recorded_is_repeated_with_its_id() {
    let sandbox = Sandbox::new();
    let is_silent = Arc::new(AtomicBool::new(true));
    let silent = Arc::clone(&is_silent);
    let server = Server::start(move |_request, stream| {
        if !silent.load(Ordering::Acquire) {
            answer(stream, "200 OK", "", "");
            return;
        }
        // It has taken the message, and its answer does not arrive.
        let _left = std::io::Read::read(stream, &mut [0; 1]);
    });
    configure(&sandbox, &server.url("/hook"));
    let mut service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the first delivery", || (server.requests().len() == 1).then_some(()));
    service.kill_9();
    is_silent.store(false, Ordering::Release);
    let _next = serve(&sandbox);
    end_lease(&sandbox);
    let of_run = || -> Vec<Request> {
        server.requests().into_iter().filter(|request| body(request)["type"] == "run_failed").collect()
    };
    eventually("the second delivery", || (of_run().len() == 2).then_some(()));
    eventually("its record", || statuses(&sandbox).iter().all(|status| status == "DELIVERED").then_some(()));
    let ids: Vec<Option<String>> =
        of_run().iter().map(|request| request.header("webhook-id").map(str::to_owned)).collect();
    assert!(ids[0].is_some() && ids[0] == ids[1], "{ids:?}");
}

#[test]
fn two_services_deliver_a_notification_once() {
    let sandbox = Sandbox::new();
    let server = Server::start(|_request, stream| answer(stream, "200 OK", "", ""));
    configure(&sandbox, &server.url("/hook"));
    let _services = [serve(&sandbox), serve(&sandbox)];
    let file = sandbox.write("fails.toml", FAILS);
    for _run in 0..10 {
        sandbox.run(&["submit", &file]).exited(0);
    }
    eventually("the deliveries", || {
        let all = statuses(&sandbox);
        (all.len() == 10 && all.iter().all(|status| status == "DELIVERED")).then_some(())
    });
    let mut ids: Vec<String> = server
        .requests()
        .iter()
        .filter_map(|request| request.header("webhook-id").map(str::to_owned))
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), server.requests().len()), (10, 10));
}

#[test]
fn the_address_of_a_target_is_nowhere_but_in_the_configuration() {
    let sandbox = Sandbox::new();
    let server = Server::start(|request, stream| {
        answer(stream, "500 Internal Server Error", "", &format!("no {}", request.path));
    });
    configure(&sandbox, &server.url("/hook/sesame-open?key=sesame-too"));
    let mut service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    let note = eventually("a failed delivery", || {
        let listed = sandbox.run(&["notify", "-o", "json"]).exited(0).json();
        listed["notifications"][0]["last_error"].as_str().map(str::to_owned)
    });
    assert_eq!(note, "status 500 Internal Server Error");
    service.signal(Signal::TERM);
    let log = service.wait();
    assert!(log.stderr.contains("notification not delivered"), "{log:?}");
    let shown = [
        format!("{log:?}"),
        format!("{:?}", sandbox.run(&["notify"])),
        format!("{:?}", sandbox.run(&["doctor"])),
        format!("{:?}", sandbox.run(&["serve", "--check"])),
    ];
    for text in &shown {
        assert!(!text.contains("sesame"), "{text}");
    }
    let rows: Vec<String> = sandbox.tables().rows(
        "SELECT target || coalesce(last_error, '') FROM notifications
         UNION ALL SELECT target || sort || value FROM notification_filters
         UNION ALL SELECT name FROM notification_targets",
        |row| row.get(0),
    );
    assert!(!rows.is_empty() && rows.iter().all(|row| !row.contains("sesame")), "{rows:?}");
}

#[test]
fn a_changed_configuration_counts_after_sighup() {
    let sandbox = Sandbox::new();
    sandbox.write("windlass.toml", "[notify.old]\ncommand = ['./note.sh', 'old']\non = ['run_failed']\n");
    let script =
        sandbox.write("note.sh", "#!/bin/sh\necho \"$1 $WINDLASS_EVENT $WINDLASS_SUBJECT\" >> noted\n");
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("its own file");
    let service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the first note", || (sandbox.read("noted") == "old run_failed fails\n").then_some(()));
    sandbox.write("windlass.toml", "[notify.new]\ncommand = ['./note.sh', 'new']\non = ['run_failed']\n");
    service.signal(Signal::HUP);
    eventually("the reload", || service.stderr_so_far().contains("reloaded").then_some(()));
    sandbox.run(&["submit", &file]).exited(0);
    let expected = "old run_failed fails\nnew run_failed fails\n";
    eventually("the second note", || (sandbox.read("noted") == expected).then_some(()));
}

const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";

#[test]
fn each_delivery_of_a_message_is_signed_with_its_time_and_the_id_stays() {
    let sandbox = Sandbox::new();
    let refuses = Arc::new(AtomicBool::new(true));
    let refusing = Arc::clone(&refuses);
    let server = Server::start(move |_request, stream| {
        let status =
            if refusing.swap(false, Ordering::AcqRel) { "503 Service Unavailable" } else { "204 No Content" };
        answer(stream, status, "", "");
    });
    let url = server.url("/hook");
    let text = format!("[notify.ops]\nurl = '{url}'\nsecret = {{ file = 'ops.secret' }}\n");
    sandbox.write("windlass.toml", text);
    write_secret(&sandbox, "ops.secret", SECRET);
    let _service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    eventually("the first delivery", || (server.requests().len() == 1).then_some(()));
    // The second one comes after five seconds.
    await_delivery(&sandbox);
    let header = |request: &Request, name: &str| request.header(name).unwrap_or_default().to_owned();
    let requests = server.requests();
    for request in &requests {
        let (id, timestamp) = (header(request, "webhook-id"), header(request, "webhook-timestamp"));
        let expected = signature(SECRET, &id, &timestamp, &request.body);
        assert_eq!(header(request, "webhook-signature"), expected);
    }
    let [first, second] = requests.as_slice() else { panic!("two deliveries: {requests:?}") };
    assert_eq!(header(first, "webhook-id"), header(second, "webhook-id"));
    assert_ne!(header(first, "webhook-timestamp"), header(second, "webhook-timestamp"));
}

#[test]
fn a_target_that_redirects_inside_fails_the_delivery() {
    let sandbox = Sandbox::new();
    let inside = Server::start(|_request, stream| answer(stream, "200 OK", "", ""));
    let location = format!("Location: {}\r\n", inside.url("/admin"));
    let server =
        Server::start(move |_request, stream| answer(stream, "307 Temporary Redirect", &location, ""));
    configure(&sandbox, &server.url("/hook"));
    let _service = serve(&sandbox);
    let file = sandbox.write("fails.toml", FAILS);
    sandbox.run(&["submit", &file]).exited(0);
    let error = eventually("a failed delivery", || {
        let listed = sandbox.run(&["notify", "-o", "json"]).exited(0).json();
        listed["notifications"][0]["last_error"].as_str().map(str::to_owned)
    });
    assert_eq!(error, "status 307 Temporary Redirect; redirects are not followed");
    assert_eq!(inside.requests().len(), 0);
}
