//! The page of a job without a run, and the way from a job to the page that shows it.

use windlass_engine::JobStatus;
use windlass_engine::store::{NewJob, Role};

use super::pages::form;
use super::site::{START_MS, Site};

/// A page, with the signs of its addresses as they are.
fn page(site: &Site, cookie: &str, path: &str) -> String {
    super::pages::page(site, cookie, path).replace("&amp;", "&")
}

fn alone(site: &Site, job: NewJob) -> i64 {
    site.store.jobs().enqueue(vec![job]).unwrap()[0]
}

/// A job without a run that failed twice. Its second attempt has lines.
fn failed(site: &Site) -> i64 {
    let job = NewJob { queue: "mail".to_owned(), max_attempts: 2, ..NewJob::new("send", r#"{"to":"ada"}"#) };
    let id = alone(site, job);
    site.sql(&format!(
        "UPDATE jobs SET status = 'FAILED', attempt = 2, failures = 2, started_at = {START_MS}, ready_at = {START_MS},
                finished_at = {START_MS} + 1500, last_error = 'exit code 7: error: <i>refused' WHERE id = {id}"
    ));
    site.sql(&format!(
        "INSERT INTO job_attempts (job_id, attempt, outcome, error, started_at, finished_at)
         VALUES ({id}, 1, 'failed', 'too slow', {START_MS}, {START_MS}), ({id}, 2, 'failed', 'refused', {START_MS}, {START_MS})"
    ));
    site.sql(&format!(
        "INSERT INTO job_logs (job_id, attempt, line, at, stream, text)
         VALUES ({id}, 2, 1, {START_MS}, 'stdout', 'begins'), ({id}, 2, 2, {START_MS}, 'stderr', 'error: <i>refused')"
    ));
    id
}

#[test]
fn a_job_without_a_run_is_shown_with_its_error_its_output_and_its_attempts() {
    let site = Site::new();
    let id = failed(&site);
    let cookie = site.session(Role::View);
    let body = page(&site, &cookie, &format!("/jobs/{id}"));
    assert!(
        body.contains("It failed after 2 attempts: exit code 7") && body.contains("error: &lt;i&gt;refused"),
        "{body}"
    );
    assert!(body.contains("<b>2</b> of 2 failures") && body.contains("took <b>1.5s</b>"), "{body}");
    assert!(body.contains(&format!("href=\"/jobs/{id}?job={id}&attempt=2&line=2#L2\"")), "{body}");
    assert!(body.contains("class=\"ln first\" id=\"L2\""), "{body}");
    // Who may only look has no buttons, and there is no definition that has the job.
    assert!(
        !body.contains("/cancel\"") && !body.contains("/retry\"") && !body.contains(">Definition<"),
        "{body}"
    );
    let attempts = page(&site, &cookie, &format!("/jobs/{id}?panel=attempts"));
    let link = format!("href=\"/jobs/{id}?job={id}&attempt=1#job\"");
    assert!(attempts.contains("too slow") && attempts.contains(&link), "{attempts}");
    let data = page(&site, &cookie, &format!("/jobs/{id}?panel=data"));
    assert!(data.contains("ada") && !data.contains("Params of the run"), "{data}");
    let why = page(&site, &cookie, &format!("/jobs/{id}?panel=why"));
    assert!(why.contains("class=\"reasons\"") && !why.contains("It has not started"), "{why}");
    for wrong in ["view=graph", "job=77", "name=a", "other=1"] {
        site.get(&format!("/jobs/{id}?{wrong}")).header("cookie", &cookie).send().is(400);
    }
    site.get("/jobs/77").header("cookie", &cookie).send().is(404);
}

#[test]
fn a_job_of_a_run_leads_to_its_place_in_the_page_of_the_run() {
    let site = Site::new();
    let run_id = site.run();
    let job_id = site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    let cookie = site.session(Role::View);
    for (query, place) in [
        ("", format!("?job={job_id}#job")),
        ("?panel=why", format!("?job={job_id}&panel=why#job")),
        ("?attempt=1&line=4", format!("?job={job_id}&attempt=1&line=4#L4")),
    ] {
        let reply = site.get(&format!("/jobs/{job_id}{query}")).header("cookie", &cookie).send();
        assert_eq!(reply.is(303).header("location"), format!("/runs/{run_id}{place}"), "{query}");
    }
}

#[test]
fn a_job_without_a_run_is_cancelled_and_retried_by_its_page() {
    let site = Site::new();
    let id = alone(&site, NewJob { delay_ms: Some(3_600_000), ..NewJob::new("send", "{}") });
    let cookie = site.session(Role::Run);
    let body = page(&site, &cookie, &format!("/jobs/{id}"));
    // Where its output will be stands why there is none.
    assert!(body.contains("It has not started") && body.contains("class=\"reasons\""), "{body}");
    assert!(
        body.contains(&format!("action=\"/jobs/{id}/cancel\""))
            && !body.contains(&format!("/jobs/{id}/retry\""))
    );
    let status = || site.store.jobs().get(id).unwrap().status;
    let path = |verb: &str| format!("/jobs/{id}/{verb}");
    for _twice in 0..2 {
        assert_eq!(
            form(&site, &cookie, &path("cancel"), "").is(303).header("location"),
            format!("/jobs/{id}")
        );
        assert_eq!(status(), JobStatus::Cancelled);
    }
    let body = page(&site, &cookie, &format!("/jobs/{id}"));
    assert!(
        body.contains(&format!("action=\"/jobs/{id}/retry\""))
            && !body.contains(&format!("/jobs/{id}/cancel\""))
    );
    for _twice in 0..2 {
        form(&site, &cookie, &path("retry"), "").is(303);
        assert_eq!(status(), JobStatus::Scheduled);
    }
    let audit = site.store.access().audit(&Default::default()).unwrap();
    let of_job = audit.rows.iter().filter(|entry| entry.subject == format!("job {id}"));
    assert_eq!(of_job.count(), 2, "each once");
    // A job of a run is not retried by itself.
    let run_id = site.run();
    let job_id = site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    site.store.runs().cancel(run_id).unwrap();
    form(&site, &cookie, &format!("/jobs/{job_id}/retry"), "").is(409);
}

#[test]
fn a_job_without_a_run_is_a_link_wherever_it_is_named() {
    let site = Site::new();
    let id = failed(&site);
    let waiting = alone(&site, NewJob::new("send", "{}"));
    let cookie = site.session(Role::Admin);
    assert!(page(&site, &cookie, "/runs").contains(&format!("<a href=\"/jobs/{id}\"><b>send</b>")));
    assert!(page(&site, &cookie, "/queues").contains(&format!("href=\"/jobs/{waiting}\">job {waiting}</a>")));
    let found = site.get(&format!("/find?q=j{id}")).header("cookie", &cookie).send();
    assert_eq!(found.is(303).header("location"), format!("/jobs/{id}"));
    form(&site, &cookie, &format!("/jobs/{waiting}/cancel"), "").is(303);
    assert!(
        page(&site, &cookie, "/system/audit")
            .contains(&format!("<a href=\"/jobs/{waiting}\">job {waiting}</a>"))
    );
}
