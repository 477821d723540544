//! The pages as a browser gets them, with rows of a real store.

use windlass_engine::store::{NewJob, NewRegistration, NewRun, Role};
use windlass_engine::{JobStatus, RunStatus};

use super::site::{START_MS, Site, workflow};

pub(super) fn form(site: &Site, cookie: &str, path: &str, fields: &str) -> super::site::Reply {
    let token = site.form_token(cookie);
    site.post(path)
        .header("cookie", cookie)
        .header("origin", "http://127.0.0.1:9463")
        .form(&format!("form_token={token}&{fields}"))
        .send()
}

pub(super) fn page(site: &Site, cookie: &str, path: &str) -> String {
    let reply = site.get(path).header("cookie", cookie).send();
    reply.is(200);
    assert_eq!(reply.header("content-type"), "text/html; charset=utf-8");
    reply.body
}

pub(super) fn register(site: &Site, text: &str) {
    let new = NewRegistration { workflow: workflow("daily", text), file: None, dir: None };
    site.store.registrations().apply(new).unwrap();
}

#[test]
fn every_page_can_be_read() {
    let site = Site::new();
    let run_id = site.run();
    register(
        &site,
        "[params]\nday = { type = 'date', default = '2026-11-21' }\n[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 's'\ncron = '0 * * * *'\n",
    );
    let cookie = site.session(Role::Admin);
    let job_id = site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    let mut paths = [
        "/runs",
        "/runs?state=pending",
        "/runs?since=ever&workflow=two",
        "/workflows",
        "/workflows/daily",
        "/workflows/two",
        "/workflows/daily/start",
        "/queues",
        "/system",
        "/zone",
        "/runs/1/again",
        "/runs/1/retry-from",
        "/runs/batch?action=cancel&run=1",
        "/runs/batch?action=cancel&all=1&state=pending",
    ]
    .map(str::to_owned)
    .to_vec();
    for view in ["timeline", "graph", "table"] {
        for panel in ["log", "attempts", "data", "why", "definition"] {
            paths.push(format!("/runs/{run_id}?view={view}&panel={panel}&job={job_id}"));
        }
    }
    for path in paths {
        let body = page(&site, &cookie, &path);
        assert!(body.contains("</html>") && body.contains("Skip to content"), "{path}");
    }
    let list = page(&site, &cookie, "/runs?state=pending");
    assert!(
        list.contains(&format!("href=\"/runs/{run_id}\"")) && list.contains("waits for a worker"),
        "{list}"
    );
    assert!(page(&site, &cookie, "/runs/1?panel=definition").contains("name: a\n"));
    site.get("/runs?stat=failed").header("cookie", &cookie).send().is(400);
    site.get("/runs/77").header("cookie", &cookie).send().is(404);
    site.get("/workflows/none").header("cookie", &cookie).send().is(404);
}

#[test]
fn a_fragment_of_a_page_is_the_same_while_nothing_changes() {
    let site = Site::new();
    let cookie = site.session(Role::Run);
    let run_id = site.run();
    for path in [format!("/runs/{run_id}"), "/runs".to_owned(), "/queues".to_owned(), "/workflows".to_owned()]
    {
        let ask = || site.get(&path).header("cookie", &cookie).header("x-fragment", "main");
        let first = ask().send();
        first.is(200);
        assert!(first.body.starts_with("<main") && first.body.ends_with("</main>"), "{}", first.body);
        let tag = first.header("etag").to_owned();
        assert!(first.header("x-pause").parse::<i64>().is_ok(), "{first:?}");
        assert!(!tag.is_empty() && first.header("vary").contains("x-fragment"), "{first:?}");
        // The time of day is not a part of it.
        ask().header("if-none-match", &tag).send().is(304);
        let whole = site.get(&path).header("cookie", &cookie).send();
        assert!(whole.body.contains("</html>") && whole.header("etag") != tag);
        site.store.queues().pause("mail").unwrap();
        if path != "/workflows" && path != "/runs/1" {
            let other = ask().header("if-none-match", &tag).send();
            assert_eq!(other.status, 200, "{path}");
        }
        site.store.queues().resume("mail").unwrap();
    }
}

#[test]
fn a_run_is_started_by_the_form_of_its_workflow() {
    let site = Site::new();
    register(&site, "[params]\nday = { type = 'date', required = true }\n[jobs.a]\nrun = 'true'\n");
    let cookie = site.session(Role::Run);
    assert!(page(&site, &cookie, "/workflows/daily/start").contains("name=\"param.day\" type=\"date\""));
    let wrong = form(&site, &cookie, "/workflows/daily/start", "param.day=monday");
    wrong.is(400);
    assert!(
        wrong.body.contains("value=\"monday\"") && wrong.body.contains("class=\"bad\""),
        "{}",
        wrong.body
    );
    let missing = form(&site, &cookie, "/workflows/daily/start", "param.day=");
    missing.is(400);
    assert!(missing.body.contains("is required"));
    let started = form(&site, &cookie, "/workflows/daily/start", "param.day=2026-11-21");
    started.is(303);
    assert_eq!(started.header("location"), "/runs/1");
    assert_eq!(site.store.runs().get(1).unwrap().params, r#"{"day":"2026-11-21"}"#);
    assert!(page(&site, &cookie, "/runs/1/again").contains("value=\"2026-11-21\""));
    form(&site, &cookie, "/runs/1/again", "param.day=2026-11-22").is(303);
    assert_eq!(site.store.runs().get(2).unwrap().params, r#"{"day":"2026-11-22"}"#);
}

#[test]
fn runs_are_cancelled_and_retried_by_forms_and_the_caller_is_recorded() {
    let site = Site::new();
    let (first, second) = (site.run(), site.run());
    let cookie = site.session(Role::Run);
    let status = |id| site.store.runs().get(id).unwrap().status;
    form(&site, &cookie, &format!("/runs/{first}/cancel"), "").is(303);
    assert_eq!(status(first), RunStatus::Cancelled);
    form(&site, &cookie, &format!("/runs/{first}/cancel"), "").is(303);
    form(&site, &cookie, &format!("/runs/{first}/retry"), "").is(303);
    assert_eq!(status(first), RunStatus::Pending);
    // What is confirmed are the runs of the preview.
    let preview = page(&site, &cookie, "/runs/batch?action=cancel&all=1");
    assert!(preview.contains("Cancel 2 runs?"), "{preview}");
    let done = form(&site, &cookie, "/runs/batch", &format!("action=cancel&run={first}&run={second}&run=99"));
    done.is(200);
    assert!(done.body.contains("2 runs cancelled"), "{}", done.body);
    assert_eq!([status(first), status(second)], [RunStatus::Cancelled; 2]);
    form(&site, &cookie, &format!("/runs/{second}/retry-from"), "job=a").is(303);
    let job = site.store.jobs().find_by_name(second, "a").unwrap().unwrap();
    assert_eq!((job.status, status(second)), (JobStatus::Pending, RunStatus::Pending));
    let audit = site.store.access().audit(&Default::default()).unwrap();
    let subjects: Vec<&str> = audit.rows.iter().map(|entry| entry.subject.as_str()).collect();
    assert!(
        subjects.iter().filter(|subject| **subject == format!("run {first}")).count() >= 3,
        "{subjects:?}"
    );
}

#[test]
fn a_form_without_the_token_of_its_session_changes_nothing() {
    let site = Site::new();
    let run_id = site.run();
    let cookie = site.session(Role::Admin);
    for path in
        [format!("/runs/{run_id}/cancel"), "/runs/batch".to_owned(), "/queues/default/pause".to_owned()]
    {
        let ask = site.post(&path).header("cookie", &cookie).header("origin", "http://127.0.0.1:9463");
        ask.form(&format!("action=cancel&run={run_id}")).send().is(403);
    }
    assert_eq!(site.store.runs().get(run_id).unwrap().status, RunStatus::Pending);
    assert!(site.store.queues().paused().unwrap().is_empty());
}

#[test]
fn queues_are_paused_and_limited_by_who_may() {
    let site = Site::new();
    site.run();
    let cookie = site.session(Role::Edit);
    form(&site, &cookie, "/queues/default/pause", "").is(303);
    assert_eq!(site.store.queues().paused().unwrap(), ["default"]);
    assert!(page(&site, &cookie, "/runs").contains("is paused"));
    form(&site, &cookie, "/queues/default/limit", "max_running=3").is(303);
    form(&site, &cookie, "/queues/default/limit", "max_running=x").is(400);
    assert!(page(&site, &cookie, "/queues").contains("3 at a time"));
    // Each field that the form has changes its limit, and an empty one removes it.
    let shown = || page(&site, &cookie, "/queues");
    form(&site, &cookie, "/queues/default/limit", "rate=100%2F1m+30s&order=arrival").is(303);
    assert!(
        shown().contains("3 at a time, 100 in 1m 30s, in order of arrival")
            && shown().contains("value=\"100/1m 30s\"")
    );
    assert!(shown().contains("<option value=\"arrival\" selected>"));
    form(&site, &cookie, "/queues/default/limit", "rate=&order=priority").is(303);
    assert!(shown().contains("<td data-l=\"Limits\">3 at a time</td>"), "{}", shown());
    for wrong in ["rate=100", "rate=x%2Fm", "rate=1%2F32d", "order=size"] {
        form(&site, &cookie, "/queues/default/limit", wrong).is(400);
    }
    form(&site, &cookie, "/queues/default/limit", "max_running=&rate=&order=priority").is(303);
    assert!(shown().contains("<td data-l=\"Limits\">none</td>"));
    form(&site, &cookie, "/queues/default/resume", "").is(303);
    let viewer = site.session(Role::View);
    assert!(!page(&site, &viewer, "/queues").contains("/queues/default/pause"));
}

#[test]
fn the_reader_chooses_the_zone_and_marks_failures_as_seen() {
    let site = Site::new();
    let cookie = site.session(Role::View);
    let zone = form(&site, &cookie, "/zone", "zone=Europe%2FBerlin");
    assert!(zone.header("set-cookie").starts_with("zone=Europe%2FBerlin; Path=/;"));
    let cookies = format!("{cookie}; zone=Europe%2FBerlin; seen=5");
    let body = page(&site, &cookies, "/runs");
    assert!(body.contains("data-zone=\"Europe/Berlin\"") && body.contains("Nothing failed since"), "{body}");
    let odd = page(&site, &format!("{cookie}; zone=<script>; seen=x"), "/runs");
    assert!(odd.contains("data-zone=\"UTC\"") && odd.contains("Nothing failed in the last 24 hours"));
    let seen = form(&site, &cookie, "/runs/seen", "at=1234");
    assert!(seen.header("set-cookie").starts_with("seen=1234;"));
}

#[test]
fn a_text_leads_to_what_it_names() {
    let site = Site::new();
    let run_id = site.run();
    register(&site, "[jobs.a]\nrun = 'true'\n");
    let cookie = site.session(Role::View);
    let job_id = site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    for (text, path) in [
        (run_id.to_string(), format!("/runs/{run_id}")),
        (format!("%23{run_id}"), format!("/runs/{run_id}")),
        (format!("j{job_id}"), format!("/runs/{run_id}?job={job_id}")),
        ("daily".to_owned(), "/workflows/daily".to_owned()),
        ("two".to_owned(), "/workflows/two".to_owned()),
        ("..%2F..%2Fetc".to_owned(), "/runs?key=..%2F..%2Fetc".to_owned()),
    ] {
        let reply = site.get(&format!("/find?q={text}")).header("cookie", &cookie).send();
        assert_eq!(reply.header("location"), path, "{text}");
    }
}

#[test]
fn a_run_that_waits_for_a_slot_says_who_holds_it() {
    let site = Site::new();
    let limited = workflow(
        "limited",
        "concurrency = { key = \"<b>day\", limit = 1, on_full = \"wait\" }\n[jobs.a]\nrun = 'true'\n",
    );
    let start = || {
        let workflow = limited.clone();
        let run = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
        site.store.runs().submit(run).unwrap().run_id
    };
    let (holder, waiting) = (start(), start());
    site.sql(&format!("UPDATE runs SET waits_for = NULL WHERE id = {holder}"));
    let cookie = site.session(Role::View);
    for path in ["/runs?state=pending".to_owned(), format!("/runs/{waiting}")] {
        let body = page(&site, &cookie, &path);
        let text = format!("aits for the slot of key &lt;b&gt;day, held by #{holder}");
        assert!(body.contains(&text), "{path}: {body}");
    }
}

#[test]
fn jobs_without_a_run_that_failed_are_a_cause_of_their_own_and_are_retried() {
    let site = Site::new();
    let job = |kind: &str| NewJob { max_attempts: 1, ..NewJob::new(kind, "{}") };
    let ids = site.store.jobs().enqueue(vec![job("mail"), job("mail"), job("other")]).unwrap();
    for id in &ids[..2] {
        site.sql(&format!(
            "UPDATE jobs SET status = 'FAILED', finished_at = {START_MS}, last_error = '<i>refused' WHERE id = {id}"
        ));
    }
    let cookie = site.session(Role::Run);
    let body = page(&site, &cookie, "/runs");
    assert!(body.contains("2 jobs, 1 cause") && body.contains("&lt;i&gt;refused"), "{body}");
    let fields = format!("since={}&kind=mail&error=%3Ci%3Erefused", START_MS - 1);
    form(&site, &cookie, "/jobs/retry", &format!("{fields}+no")).is(303);
    assert_eq!(site.store.jobs().get(ids[0]).unwrap().status, JobStatus::Failed);
    form(&site, &cookie, "/jobs/retry", &fields).is(303);
    let statuses = ids.iter().map(|id| site.store.jobs().get(*id).unwrap().status).collect::<Vec<_>>();
    assert_eq!(statuses, [JobStatus::Scheduled, JobStatus::Scheduled, JobStatus::Pending]);
    form(&site, &cookie, "/jobs/retry", "kind=mail").is(400);
    let audit = site.store.access().audit(&Default::default()).unwrap();
    assert_eq!(audit.rows.iter().filter(|entry| entry.subject.starts_with("job ")).count(), 2);
}
