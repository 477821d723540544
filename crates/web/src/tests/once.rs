//! Promise: a request that is sent again with the same `Idempotency-Key` changes nothing again, and gets the same answer.

use serde_json::{Value, json};
use windlass_engine::store::{AuditFilter, JobFilter, NewRegistration, Role, RunFilter};

use super::site::{Reply, Site, workflow};
use crate::route::{self, Idempotency, Method};

fn post(site: &Site, token: &str, path: &str, key: &str, body: &Value) -> Reply {
    let path = format!("/api/v1/{path}");
    site.post(&path).token(token).header("idempotency-key", key).json(body).send()
}

fn jobs(site: &Site) -> usize {
    site.store.jobs().list(&JobFilter::newest(1_000)).unwrap().rows.len()
}

fn lines(site: &Site) -> usize {
    site.store.access().audit(&AuditFilter::default()).unwrap().rows.len()
}

/// What a crash between a change and its answer leaves.
fn forget_answers(site: &Site) {
    site.sql("UPDATE idempotency_keys SET status = NULL, answer = NULL");
}

#[test]
fn a_job_is_enqueued_once() {
    let site = Site::new();
    let (ci, other) = (site.token("ci", Role::Run), site.token("other", Role::Run));
    let body = json!({"kind": "mailer", "payload": {"to": 1}});
    let first = post(&site, &ci, "jobs", "k1", &body);
    let again = post(&site, &ci, "jobs", "k1", &body);
    assert_eq!((&first.is(201).body, first.status), (&again.body, again.status));
    assert_eq!(again.header("content-type"), "application/json");
    assert_eq!((jobs(&site), lines(&site)), (1, 1));
    let refused = post(&site, &ci, "jobs", "k1", &json!({"kind": "mailer", "payload": {"to": 2}}));
    assert!(refused.is(409).body.contains("another request"), "{refused:?}");
    assert_eq!(jobs(&site), 1);
    // Another caller with the same key and the same request learns nothing of the first.
    let theirs = post(&site, &other, "jobs", "k1", &body);
    assert_ne!(theirs.is(201).json()["job_id"], first.json()["job_id"]);
    assert_eq!(jobs(&site), 2);
    // A token of the same name is another caller.
    site.store.access().revoke_token("ci").unwrap();
    let renewed = site.token("ci", Role::Run);
    assert_ne!(post(&site, &renewed, "jobs", "k1", &body).is(201).json(), first.json());
}

#[test]
fn a_crash_between_a_change_and_its_answer_repeats_nothing() {
    let site = Site::new();
    let token = site.token("ci", Role::Edit);
    let registration = NewRegistration {
        workflow: workflow(
            "greet",
            "[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 'daily'\ncron = '@daily'\n",
        ),
        file: None,
        dir: None,
    };
    site.store.registrations().apply(registration).unwrap();
    let schedule = site.store.schedules().list().unwrap().remove(0);
    let run_id = site.run();
    site.store.runs().cancel(run_id).unwrap();
    let job = post(&site, &token, "jobs", "j", &json!({"kind": "mailer"})).is(201).json();
    let job_id = job["job_id"].as_i64().unwrap();
    site.store.jobs().cancel(job_id).unwrap();
    let (retry, job_retry) = (format!("runs/{run_id}/retry"), format!("jobs/{job_id}/retry"));
    let trigger = format!("schedules/{}/trigger", schedule.id);
    let asks = [
        ("jobs", json!({"kind": "mailer"})),
        (retry.as_str(), json!({})),
        (job_retry.as_str(), json!({})),
        (trigger.as_str(), json!({})),
    ];
    for (path, body) in asks {
        let first = post(&site, &token, path, path, &body);
        assert!(first.status.is_success(), "{first:?}");
        let before = (jobs(&site), lines(&site));
        forget_answers(&site);
        let again = post(&site, &token, path, path, &body);
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{path}");
        assert_eq!((jobs(&site), lines(&site)), before, "{path}");
    }
    let runs = site.store.runs().list(&RunFilter::newest(9)).unwrap().rows;
    assert_eq!(runs.len(), 2, "one of the schedule, and the one that was retried");
}

#[test]
fn a_retry_with_a_key_is_made_once() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let run_id = site.run();
    site.store.runs().cancel(run_id).unwrap();
    let retry = |key: &str| post(&site, &token, &format!("runs/{run_id}/retry"), key, &json!({}));
    let first = retry("k").is(200).json();
    assert_eq!(retry("k").is(200).json(), first);
    // The run ends again. Who asks for the same retry again does not want another one.
    site.store.runs().cancel(run_id).unwrap();
    assert_eq!(retry("k").is(200).json(), first);
    assert_eq!(lines(&site), 1);
    assert_eq!(retry("l").is(200).json()["retried_jobs"], json!(2), "another key is another retry");
}

#[test]
fn a_batch_that_was_interrupted_goes_on() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let runs = [site.run(), site.run(), site.run()];
    site.store.runs().cancel(runs[1]).unwrap();
    let body = json!({"action": "cancel", "run_ids": [runs[0], runs[1], runs[2], runs[0]]});
    let first = post(&site, &token, "runs/batch", "b", &body);
    assert_eq!(first.is(200).json()["changed"], json!(2), "a run that is there twice counts once: {first:?}");
    assert_eq!(post(&site, &token, "runs/batch", "b", &body).is(200).body, first.body);
    // As after a crash before the change of the last run.
    forget_answers(&site);
    site.sql(&format!("UPDATE idempotency_keys SET results = '{{\"cancel a run: run {}\":{{\"cancelled\":2,\"stopping\":0}}}}'", runs[0]));
    site.store.runs().retry(runs[0], windlass_engine::store::RetrySelection::Failed).unwrap();
    site.store.runs().retry(runs[2], windlass_engine::store::RetrySelection::Failed).unwrap();
    let again = post(&site, &token, "runs/batch", "b", &body);
    assert_eq!(again.is(200).json()["changed"], json!(2));
    let status = |run_id: i64| site.store.runs().get(run_id).unwrap().status.as_str();
    assert_eq!(
        (status(runs[0]), status(runs[2])),
        ("PENDING", "CANCELLED"),
        "the first was cancelled before"
    );
    let nothing = json!({"action": "cancel", "run_ids": [999]});
    let none = post(&site, &token, "runs/batch", "n", &nothing).is(200).json();
    assert_eq!(none["changed"], json!(0));
    post(&site, &token, "runs/batch", "n", &json!({"action": "retry", "run_ids": [999]})).is(409);
}

#[test]
fn what_is_refused_does_not_use_the_key_up() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    post(&site, &token, "jobs", "k", &json!({"kind": "mailer", "payloat": 1})).is(400);
    post(&site, &token, "jobs", "k", &json!({"kind": "mailer", "payload": 1})).is(201);
}

#[test]
fn a_key_that_can_not_be_used_is_refused() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let body = json!({"kind": "mailer"});
    let long = "k".repeat(501);
    for key in ["", "a b", long.as_str()] {
        let refused = post(&site, &token, "jobs", key, &body);
        assert!(refused.is(400).body.contains("1 to 500 visible"), "{refused:?}");
    }
    let twice = site.post("/api/v1/jobs").token(&token).header("idempotency-key", "a");
    twice.header("idempotency-key", "b").json(&body).send().is(400);
    assert_eq!(jobs(&site), 0);
    post(&site, &token, "jobs", &"k".repeat(500), &body).is(201);
}

/// Which changes take no key, because the same request again leaves everything as it is. A new route needs a decision.
const WITHOUT_KEY: &[&str] = &[
    "PATCH /api/v1/queues/{queue}",
    "POST /api/v1/jobs/{job_id}/approve",
    "POST /api/v1/jobs/{job_id}/cancel",
    "POST /api/v1/jobs/{job_id}/reject",
    "POST /api/v1/queues/{queue}/pause",
    "POST /api/v1/queues/{queue}/resume",
    "POST /api/v1/runs/{run_id}/cancel",
    "POST /api/v1/schedules/{schedule_id}/pause",
    "POST /api/v1/schedules/{schedule_id}/resume",
    "PUT /api/v1/workflows/{workflow}",
];

#[test]
fn each_change_of_rest_takes_a_key_or_needs_none() {
    let site = Site::new();
    let document = site.get("/api/v1/openapi.json").token(&site.token("view", Role::View)).send().json();
    let mut without: Vec<String> = Vec::new();
    for route in route::all() {
        if route.document.is_none() || !route.method.changes() {
            continue;
        }
        let operation = &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
        let parameters = operation["parameters"].as_array().unwrap();
        let is_shown = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        assert_eq!(is_shown, route.idempotency != Idempotency::NoKey, "{}", route.path);
        if route.idempotency == Idempotency::NoKey {
            without.push(format!("{} {}", route.method.as_str(), route.path));
        }
        assert!(route.method == Method::Post || !is_shown);
    }
    without.sort();
    assert_eq!(without, WITHOUT_KEY);
}
