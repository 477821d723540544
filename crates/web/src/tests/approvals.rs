//! The page of what waits for a person, and its forms, with rows of a real store.

use serde_json::json;
use windlass_engine::store::{NewRun, Role};
use windlass_engine::{JobStatus, WaitsFor};

use super::pages::{form, page};
use super::site::{Site, workflow};

const FIELDS: &str = "fields = { version = { required = true, description = 'as in the <b>tag</b>' }, \
                      count = { type = 'integer' }, late = { type = 'boolean' } }";

/// Starts a run whose only job asks a question, and returns its id and that of the job.
fn ask(site: &Site, name: &str, prompt: &str) -> (i64, i64) {
    let action = format!("[jobs.release]\napproval = {{ prompt = {prompt}, timeout = '1d', {FIELDS} }}\n");
    let workflow = workflow(name, &action);
    let new = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    let run_id = site.store.runs().submit(new).unwrap().run_id;
    assert_eq!(site.store.for_scheduler().decide_waiting().unwrap(), 1);
    (run_id, site.store.jobs().find_by_name(run_id, "release").unwrap().unwrap().id)
}

fn status(site: &Site, job_id: i64) -> JobStatus {
    site.store.jobs().get(job_id).unwrap().status
}

#[test]
fn everything_that_waits_for_a_person_is_on_one_page_the_oldest_first() {
    let site = Site::new();
    let cookie = site.session(Role::Run);
    assert!(page(&site, &cookie, "/approvals").contains("Nothing waits for a person."));
    assert!(!page(&site, &cookie, "/runs").contains("class=\"badge\""));
    let (first, first_job) = ask(&site, "early", "'Release it?'");
    site.clock.advance_ms(3_600_000);
    let (second, _) = ask(&site, "late", "'And this?'");
    let body = page(&site, &cookie, "/approvals");
    let (at, later) = (body.find("Release it?").unwrap(), body.find("And this?").unwrap());
    assert!(at < later && body.contains("waits for 1h") && body.contains("then it fails"), "{body}");
    assert!(body.contains(&format!("href=\"/runs/{first}?job={first_job}#job\"")), "{body}");
    assert!(body.contains(&format!("#{second}")));
    assert!(page(&site, &cookie, "/runs").contains("2<span class=\"sr\"> waiting</span>"));
    let viewer = site.session(Role::View);
    let seen = page(&site, &viewer, "/approvals");
    assert!(seen.contains("Release it?") && !seen.contains("method=\"post\" action=\"/jobs"), "{seen}");
}

#[test]
fn an_approval_takes_the_fields_that_it_declares_and_says_what_is_wrong_beside_them() {
    let site = Site::new();
    let (run_id, job_id) = ask(&site, "daily", "'Release it?'");
    let cookie = site.session(Role::Run);
    for path in ["/approvals".to_owned(), format!("/runs/{run_id}?job={job_id}&panel=why")] {
        let body = page(&site, &cookie, &path);
        for text in [
            &format!("<label for=\"j{job_id}-param.version\">version <span class=\"m\">required</span>"),
            "name=\"param.count\" inputmode=\"numeric\"",
            "<option value=\"true\">true</option>",
            "as in the &lt;b&gt;tag&lt;/b&gt;",
            "Release it?",
        ] {
            assert!(body.contains(text), "{path}: {text}\n{body}");
        }
    }
    let path = format!("/jobs/{job_id}/approve");
    let wrong = form(&site, &cookie, &path, "verdict=approve&to=approvals&param.count=many");
    wrong.is(400);
    for text in [
        "aria-invalid=\"true\" aria-describedby",
        "field `version` is required",
        "value=\"many\"",
        &format!("id=\"j{job_id}-param.count-error\""),
    ] {
        assert!(wrong.body.contains(text), "{text}\n{}", wrong.body);
    }
    form(&site, &cookie, &path, "verdict=approve&param.other=1").is(400);
    form(&site, &cookie, &path, "verdict=perhaps").is(400);
    form(&site, &cookie, &path, "").is(400);
    assert_eq!(status(&site, job_id), JobStatus::Waiting);
    let fields = "verdict=approve&to=approvals&param.version=1.4&param.count=3&param.late=true";
    let done = form(&site, &cookie, &path, fields);
    done.is(303);
    assert_eq!(done.header("location"), "/approvals");
    let job = site.store.jobs().get(job_id).unwrap();
    assert_eq!((job.status, job.waits_for), (JobStatus::Successful, None));
    let output: serde_json::Value = serde_json::from_str(&job.output.unwrap()).unwrap();
    assert_eq!(output["fields"], serde_json::json!({ "version": "1.4", "count": 3, "late": true }));
    assert_eq!(output["by"], "ada");
    form(&site, &cookie, &path, fields).is(409);
    let audit = site.store.access().audit(&Default::default()).unwrap();
    assert_eq!(audit.rows.iter().filter(|entry| entry.subject == format!("job {job_id}")).count(), 1);
}

#[test]
fn a_rejection_needs_a_reason() {
    let site = Site::new();
    let (run_id, job_id) = ask(&site, "daily", "'Release it?'");
    let cookie = site.session(Role::Run);
    let path = format!("/jobs/{job_id}/approve");
    for reason in ["", "++", &"x".repeat(1_001)] {
        let wrong = form(&site, &cookie, &path, &format!("verdict=reject&comment={reason}"));
        wrong.is(400);
        assert!(wrong.body.contains(&format!("id=\"j{job_id}-reason-error\"")), "{}", wrong.body);
    }
    let done = form(&site, &cookie, &path, "verdict=reject&to=run&comment=not+before+Monday");
    assert_eq!(done.header("location"), format!("/runs/{run_id}?job={job_id}#job"));
    let job = site.store.jobs().get(job_id).unwrap();
    assert_eq!(job.status, JobStatus::Failed);
    assert_eq!(job.last_error.as_deref(), Some("rejected by ada: not before Monday"));
}

#[test]
fn a_question_stays_text() {
    let site = Site::new();
    ask(&site, "daily", r#""<script>alert(1)</script> \u202Egpj.exe \u001b[31mred""#);
    let body = page(&site, &site.session(Role::Run), "/approvals");
    assert!(body.contains("&lt;script&gt;alert(1)&lt;/script&gt; \u{2039}U+202E\u{203a}gpj.exe"), "{body}");
    assert!(!body.contains('\u{202e}') && !body.contains('\u{1b}'));
}

#[test]
fn a_long_list_has_pages() {
    let site = Site::new();
    let cookie = site.session(Role::View);
    for number in 0..=51 {
        site.clock.advance_ms(1_000);
        ask(&site, &format!("w{number}"), "'?'");
    }
    let first = page(&site, &cookie, "/approvals");
    assert_eq!(first.matches("class=\"decision\"").count(), 50);
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
    let second = page(&site, &cookie, next);
    assert_eq!(second.matches("class=\"decision\"").count(), 2);
    assert!(second.contains(">w51<") && second.contains(">First page<"));
    for query in ["after=x", "before=1", "after=1&after=2"] {
        site.get(&format!("/approvals?{query}")).header("cookie", &cookie).send().is(400);
    }
    let open = site.store.jobs().open_approvals(0, 1).unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(site.store.jobs().get(open[0].job_id).unwrap().waits_for, Some(WaitsFor::Approval));
}

#[test]
fn a_program_decides_over_rest() {
    let site = Site::new();
    let token = site.token("ci", Role::Run);
    let post = |job_id: i64, verb: &str, body: &serde_json::Value| {
        site.post(&format!("/api/v1/jobs/{job_id}/{verb}")).token(&token).json(body).send()
    };
    let (_run_id, released) = ask(&site, "early", "'Release it?'");
    post(released, "approve", &json!({"fields": {"count": 3}})).is(400);
    post(released, "approve", &json!({"fields": {"version": "1.0", "number": 3}})).is(400);
    let approved =
        post(released, "approve", &json!({"fields": {"version": "1.0", "count": 3, "late": false}}));
    assert_eq!(approved.is(200).json()["job_id"], released);
    assert_eq!(status(&site, released), JobStatus::Successful);
    post(released, "approve", &json!({"fields": {"version": "1.0", "count": 3, "late": false}})).is(409);
    let (_run_id, refused) = ask(&site, "late", "'And this?'");
    post(refused, "reject", &json!({"reason": " "})).is(400);
    assert_eq!(post(refused, "reject", &json!({"reason": "too late"})).is(200).json()["status"], "FAILED");
    assert_eq!(status(&site, refused), JobStatus::Failed);
}
