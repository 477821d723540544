//! The lists and the forms that change many rows: what they say, how far they go, and that a form starts once.

use windlass_engine::RunStatus;
use windlass_engine::store::{NewRegistration, Role, RunFilter};
use windlass_views::{FindingState, FindingView};

use super::pages::{form, page, register};
use super::site::{START_MS, Site, sentences, workflow};
use crate::options::WebOptions;

/// Makes finished runs of one workflow that failed in the same way, without executing them.
fn fail(site: &Site, runs: usize, error: &str) -> Vec<i64> {
    let ids: Vec<i64> = (0..runs).map(|_| site.run()).collect();
    let (first, last) = (ids[0], ids[runs - 1]);
    site.sql(&format!(
        "UPDATE jobs SET status = 'FAILED', finished_at = {START_MS}, last_error = '{error}', attempt = 1
         WHERE run_id BETWEEN {first} AND {last} AND name = 'a'"
    ));
    site.sql(&format!(
        "UPDATE jobs SET status = 'SKIPPED', finished_at = {START_MS}
         WHERE run_id BETWEEN {first} AND {last} AND name = 'b'"
    ));
    site.sql(&format!(
        "UPDATE runs SET status = 'FAILED', finished_at = {START_MS}, unfinished_jobs = 0, failed_jobs = 1
         WHERE id BETWEEN {first} AND {last}"
    ));
    ids
}

fn of_status(site: &Site, status: RunStatus) -> usize {
    let filter = RunFilter { statuses: vec![status], ..RunFilter::newest(2_000) };
    site.store.runs().list(&filter).unwrap().rows.len()
}

/// The fields of a form with this action, as a browser sends them.
fn fields(body: &str, action: &str) -> String {
    let form = body.split("<form").find(|form| form.contains(&format!("action=\"{action}\""))).unwrap();
    let form = form.split("</form>").next().unwrap();
    let value =
        |tag: &str, name: &str| tag.split(&format!("{name}=\"")).nth(1)?.split('"').next().map(str::to_owned);
    let inputs =
        form.split("<input").skip(1).filter_map(|tag| Some((value(tag, " name")?, value(tag, " value")?)));
    let pairs: Vec<String> = inputs
        .filter(|(name, _)| name != "form_token")
        .map(|(name, value)| {
            let value =
                value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            format!("{name}={}", crate::pages::url::encode(&value))
        })
        .collect();
    pairs.join("&")
}

/// A run with more jobs than any list of jobs of all runs reads: its last jobs are found by their states.
#[test]
fn the_last_jobs_of_a_run_with_12_000_are_found_by_their_states() {
    let site = Site::new();
    let run_id = site.run();
    site.sql(&format!(
        "INSERT INTO jobs (run_id, name, kind, payload, status, waits_for, execute_after, created_at, updated_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 12000)
         SELECT {run_id}, 'many' || n, 'shell', '{{}}',
                CASE WHEN n > 11998 THEN 'WAITING' WHEN n > 11996 THEN 'SCHEDULED' ELSE 'BLOCKED' END,
                CASE WHEN n > 11998 THEN 'event' END, 9000000000000, 1, 1
         FROM numbers"
    ));
    let token = site.token("reader", Role::View);
    for (status, wanted) in
        [("WAITING", ["many12000", "many11999"]), ("SCHEDULED", ["many11998", "many11997"])]
    {
        let found = site.get(&format!("/api/v1/runs/{run_id}/jobs?status={status}")).token(&token).send();
        let found = found.is(200).json();
        let names: Vec<&str> =
            found.as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
        assert_eq!(names, wanted, "{status}");
    }
    // Those that wait come before those that have not begun.
    let shown = site.get(&format!("/runs/{run_id}?state=unfinished&view=table")).token(&token).send();
    for name in ["many12000", "many11999", "many11998", "many11997"] {
        assert!(shown.is(200).body.contains(&format!(">{name}<")), "{name}");
    }
}

#[test]
fn a_batch_names_the_whole_number_and_goes_on_in_steps() {
    let site = Site::new();
    fail(&site, 130, "refused");
    let cookie = site.session(Role::Run);
    let list = page(&site, &cookie, "/runs");
    let href = list.split("/runs/batch?").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    let preview = page(&site, &cookie, &format!("/runs/batch?{href}"));
    assert!(
        preview.contains("Retry what failed in 130 runs?") && preview.contains("steps of 100"),
        "{preview}"
    );
    for address in [format!("/runs/batch?{href}"), "/runs/batch?action=retry&all=1&state=failed".to_owned()] {
        let preview = page(&site, &cookie, &address);
        let first = form(&site, &cookie, "/runs/batch", &fields(&preview, "/runs/batch"));
        first.is(200);
        assert!(first.body.contains("100 runs retried so far"), "{}", first.body);
        assert_eq!([RunStatus::Failed, RunStatus::Pending].map(|status| of_status(&site, status)), [30, 100]);
        // A run that fails again meanwhile is not retried a second time.
        let again = fail(&site, 1, "refused")[0];
        let next = form(&site, &cookie, "/runs/batch", &fields(&first.body, "/runs/batch"));
        assert!(
            next.body.contains("130 runs retried<") && !next.body.contains("data-continue"),
            "{}",
            next.body
        );
        assert_eq!(of_status(&site, RunStatus::Failed), 1);
        site.sql(&format!("DELETE FROM runs WHERE id = {again}"));
        let audit = site.store.access().audit(&Default::default()).unwrap();
        assert!(audit.rows.iter().all(|entry| entry.action == "retry a run"), "{:?}", audit.rows[0]);
        site.sql("UPDATE jobs SET status = 'SKIPPED', finished_at = 1 WHERE name = 'b'");
        site.sql(&format!(
            "UPDATE jobs SET status = 'FAILED', finished_at = {START_MS}, last_error = 'refused' WHERE name = 'a'"
        ));
        site.sql(&format!(
            "UPDATE runs SET status = 'FAILED', finished_at = {START_MS}, unfinished_jobs = 0, failed_jobs = 1"
        ));
    }
}

#[test]
fn few_failures_of_a_cause_are_retried_by_one_click() {
    let site = Site::new();
    let ids = fail(&site, 3, "refused <i>");
    let cookie = site.session(Role::Run);
    let list = page(&site, &cookie, "/runs");
    let done = form(&site, &cookie, "/runs/batch", &fields(&list, "/runs/batch"));
    assert!(
        done.body.contains("3 runs retried") && done.body.contains(&format!("href=\"/runs/{}\"", ids[0])),
        "{done:?}"
    );
    assert_eq!(of_status(&site, RunStatus::Failed), 0);
}

#[test]
fn the_fragment_of_failures_stays_the_same_while_time_passes() {
    let site = Site::new();
    fail(&site, 2, "refused");
    let cookie = site.session(Role::Run);
    let ask = || site.get("/runs").header("cookie", &cookie).header("x-fragment", "main");
    let first = ask().send();
    assert!(first.is(200).body.contains("2 runs, 1 cause"));
    assert_eq!(first.header("x-assets"), crate::pages::assets::assets().version);
    site.clock.advance_ms(20_000);
    ask().header("if-none-match", first.header("etag")).send().is(304);
}

#[test]
fn a_card_that_did_not_look_back_a_whole_day_says_so() {
    let site = Site::new();
    let ids = fail(&site, 1, "refused");
    site.sql(&format!(
        "INSERT INTO jobs (kind, payload, queue, status, finished_at, last_error, created_at, updated_at, execute_after,
                           max_attempts)
         SELECT 'mail', '{{}}', 'q', 'FAILED', {START_MS} - 1000, 'x', 1, 1, 1, 1 FROM jobs AS a, jobs AS b
         WHERE a.run_id = {0} AND b.run_id = {0}",
        ids[0]
    ));
    let cookie = site.session(Role::Run);
    assert!(page(&site, &cookie, "/runs").contains("Failed in the last 24 hours"));
    for _ in 0..5 {
        site.sql(
            "INSERT INTO jobs (kind, payload, queue, status, finished_at, last_error, created_at, updated_at,
                               execute_after, max_attempts)
             SELECT kind, payload, queue, status, finished_at, last_error, created_at, updated_at, execute_after,
                    max_attempts FROM jobs WHERE kind = 'mail'",
        );
        site.sql(
            "INSERT INTO jobs (kind, payload, queue, status, finished_at, last_error, created_at, updated_at,
                               execute_after, max_attempts)
             SELECT kind, payload, queue, status, finished_at, last_error, created_at, updated_at, execute_after,
                    max_attempts FROM jobs WHERE kind = 'mail'",
        );
    }
    let body = page(&site, &cookie, "/runs");
    assert!(
        !body.contains("Failed in the last 24 hours") && body.contains("in the newest 1,000 failed jobs"),
        "{body}"
    );
}

#[test]
fn the_page_shows_what_the_checks_found_and_what_waits_in_paused_queues() {
    let found = || FindingView {
        about: "jobs",
        state: FindingState::Problem,
        message: "3 jobs have waited <for> more than a minute, and no worker can take them".to_owned(),
        next_step: None,
    };
    let site = Site::that_says(
        WebOptions::default(),
        sentences().with_attention(move |store| store.queues().paused().map(|_paused| vec![found()])),
    );
    site.run();
    site.store.queues().pause("default").unwrap();
    site.store.queues().pause("mail").unwrap();
    let body = page(&site, &site.session(Role::View), "/runs");
    assert_eq!(body.matches("has been paused since 08:00").count(), 2, "{body}");
    assert!(!body.contains("0 jobs wait"), "{body}");
    for text in
        ["<b>Jobs</b> 3 jobs have waited &lt;for&gt; more", "has been paused since 08:00, 1 job waits"]
    {
        assert!(body.contains(text), "{text}: {body}");
    }
}

#[test]
fn a_form_that_is_sent_twice_starts_one_run() {
    let site = Site::new();
    register(
        &site,
        "[params]\nday = { default = 'a' }\n[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 's'\ncron = '@daily'\n",
    );
    let cookie = site.session(Role::Edit);
    let start = page(&site, &cookie, "/workflows/daily/start");
    let sent = fields(&start, "/workflows/daily/start");
    let location = |fields: &str| {
        let reply = form(&site, &cookie, "/workflows/daily/start", fields);
        reply.is(303).header("location").to_owned()
    };
    assert_eq!([location(&sent), location(&sent)], ["/runs/1", "/runs/1"]);
    assert_eq!(
        location(&sent.replace("param.day=a", "param.day=b")),
        "/runs/2",
        "other values are another run"
    );
    assert_eq!(
        location(&fields(&page(&site, &cookie, "/workflows/daily/start"), "/workflows/daily/start")),
        "/runs/3"
    );
    form(&site, &cookie, "/workflows/daily/start", "form_key=x&param.day=a").is(400);
    let again = fields(&page(&site, &cookie, "/runs/1/again"), "/runs/1/again");
    for _ in 0..2 {
        assert_eq!(form(&site, &cookie, "/runs/1/again", &again).header("location"), "/runs/4");
    }
    let schedule = site.store.schedules().list().unwrap().remove(0);
    let action = format!("/schedules/{}/trigger", schedule.id);
    for run in ["/runs/5", "/runs/6"] {
        let sent = fields(&page(&site, &cookie, "/workflows/daily"), &action);
        for _ in 0..2 {
            assert_eq!(form(&site, &cookie, &action, &sent).header("location"), run);
        }
    }
    assert!(!page(&site, &cookie, "/runs").contains("key form:"), "the key of a form is nobody's");
}

#[test]
fn a_retry_that_is_sent_twice_shows_the_run() {
    let site = Site::new();
    let run_id = fail(&site, 1, "refused")[0];
    let cookie = site.session(Role::Run);
    for _ in 0..2 {
        let reply = form(&site, &cookie, &format!("/runs/{run_id}/retry"), "");
        assert_eq!(reply.is(303).header("location"), format!("/runs/{run_id}"));
    }
    let from = form(&site, &cookie, &format!("/runs/{run_id}/retry-from"), "job=a");
    from.is(303);
    let audit = site.store.access().audit(&Default::default()).unwrap();
    assert_eq!(audit.rows.iter().filter(|entry| entry.action == "retry a run").count(), 1);
    site.sql(&format!("UPDATE runs SET status = 'SUCCESSFUL', finished_at = 5 WHERE id = {run_id}"));
    form(&site, &cookie, &format!("/runs/{run_id}/retry"), "").is(409);
}

#[test]
fn the_start_form_shows_its_values_as_a_command_and_starts_nothing() {
    let site = Site::new();
    register(
        &site,
        "[params]\nday = { required = true }\nmode = { default = 'all' }\n[jobs.a]\nrun = 'true'\n",
    );
    let cookie = site.session(Role::Run);
    let shown = form(&site, &cookie, "/workflows/daily/start", "show=1&param.day=it%27s&param.mode=all");
    let body = &shown.is(200).body;
    assert!(body.contains("windlass submit daily -p") && body.contains("day=it"), "{body}");
    assert!(body.contains("/api/v1/runs</pre>") && !body.contains("mode=all"), "{body}");
    assert_eq!(form(&site, &cookie, "/workflows/daily/start", "show=1&param.day=").status, 200);
    assert_eq!(site.store.runs().list(&RunFilter::newest(9)).unwrap().rows.len(), 0);
    form(&site, &cookie, "/workflows/daily/start", "param.day=x").is(303);
    let again = form(&site, &cookie, "/runs/1/again", "show=1&param.day=y&param.mode=all");
    let body = &again.is(200).body;
    assert!(body.contains("windlass rerun 1 --detach -p day=y\n"), "{body}");
    let command = body.split("id=\"elsewhere\"").nth(1).unwrap();
    assert!(command.contains("/api/v1/runs/1/rerun</pre>") && !command.contains("mode"), "{command}");
}

#[test]
fn a_row_says_who_and_which_event_started_the_run() {
    let site = Site::new();
    let (first, second, third) = (site.run(), site.run(), site.run());
    site.sql(&format!("UPDATE runs SET started_by = 'deploy <i>' WHERE id = {first}"));
    site.sql(&format!("UPDATE runs SET source = 'event' WHERE id IN ({second}, {third})"));
    site.sql("INSERT INTO events (id, name, received_at) VALUES (5, 'paid', 1)");
    site.sql(&format!(
        "INSERT INTO triggered_runs (run_id, trigger_name, started_by, depth)
         VALUES ({second}, 'billing', 'event:5', 1), ({third}, 'after', 'run:{first}:7', 1)"
    ));
    let cookie = site.session(Role::View);
    let body = page(&site, &cookie, "/runs");
    for text in ["deploy &lt;i&gt;", "paid, trigger billing", &format!("#{first}, trigger after")] {
        assert!(body.contains(text), "{text}: {body}");
    }
    let rows = |query: &str| page(&site, &cookie, &format!("/runs?{query}")).matches("<tr data-run").count();
    assert_eq!(
        [rows("by=billing"), rows("by=two/after"), rows("by=other/after"), rows("by=none")],
        [1, 1, 0, 0]
    );
}

#[test]
fn runs_are_found_by_the_name_of_their_schedule_and_between_two_times() {
    let site = Site::new();
    let text = "[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 'night'\ncron = '@daily'\n";
    register(&site, text);
    let other = NewRegistration { workflow: workflow("other", text), file: None, dir: None };
    site.store.registrations().apply(other).unwrap();
    let schedules = site.store.schedules().list().unwrap();
    let of_daily = schedules.iter().find(|schedule| schedule.workflow == "daily").unwrap();
    site.store.schedules().fire(of_daily.id).unwrap();
    site.run();
    let cookie = site.session(Role::View);
    let rows = |query: &str| page(&site, &cookie, &format!("/runs?{query}")).matches("<tr data-run").count();
    assert_eq!([rows("by=daily/night"), rows("by=other/night"), rows("workflow=daily&by=night")], [1, 0, 1]);
    site.get("/runs?by=night").header("cookie", &cookie).send().is(400);
    let berlin = format!("{cookie}; zone=Europe%2FBerlin");
    let sent = site.get("/runs?since=24h&from=2027-01-15T09:00&until=").header("cookie", &berlin).send();
    assert_eq!(sent.is(303).header("location"), "/runs?since=24h&from=2027-01-15T08%3A00%3A00.000Z");
    let body = page(&site, &berlin, sent.header("location"));
    assert!(body.contains("value=\"2027-01-15T09:00\"") && body.contains("2 runs since 09:00"), "{body}");
    assert_eq!(rows("until=2027-01-15T08:00:00Z"), 0);
    let many = page(&site, &cookie, "/runs?param=no%3Done&state=pending");
    assert!(!many.contains("<span class=\"c\">"), "nothing has this param");
    assert!(
        page(&site, &cookie, "/runs?trigger=manual").contains("<span class=\"c\">1</span>"),
        "tabs count"
    );
    let later = page(&site, &cookie, "/runs?from=2027-01-16T08:00:00Z");
    assert!(!later.contains("<span class=\"c\">"), "unfinished runs are counted in the time that is chosen");
}

#[test]
fn a_schedule_shows_its_next_five_times() {
    let site = Site::new();
    register(&site, "[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 's'\ncron = '0 2 * * *'\n");
    let body = page(&site, &site.session(Role::View), "/workflows/daily");
    let times = (16..=20).map(|day| format!("datetime=\"2027-01-{day}T02:00:00.000Z\""));
    assert!(times.clone().all(|time| body.contains(&time)), "{body}");
    assert!(!body.contains("2027-01-21T02:00"), "{body}");
}

#[test]
fn long_lists_have_a_next_page() {
    let site = Site::new();
    for number in 0..205 {
        let workflow = workflow(&format!("w{number:03}"), "[jobs.a]\nrun = 'true'\n");
        site.store.registrations().apply(NewRegistration { workflow, file: None, dir: None }).unwrap();
        site.token(&format!("t{number}"), Role::View);
    }
    let cookie = site.session(Role::Admin);
    for path in ["/workflows", "/system/tokens"] {
        let first = page(&site, &cookie, path);
        let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap();
        let rows = |body: &str| body.matches("<tr data-row").count();
        let second = page(&site, &cookie, next);
        assert_eq!((rows(&first), rows(&second)), (200, 5), "{path}");
        assert!(!second.contains("rel=\"next\""));
        site.get(&format!("{path}?other=1")).header("cookie", &cookie).send().is(400);
    }
}

#[test]
fn the_record_shows_how_it_was_before() {
    let site = Site::new();
    let cookie = site.session(Role::Admin);
    site.token("bot", Role::Run);
    form(&site, &cookie, "/system/tokens/revoke", "name=bot").is(303);
    let audit = site.store.access().audit(&Default::default()).unwrap();
    assert_eq!(audit.rows[0].before.as_deref(), Some("{\"role\":\"run\"}"));
    assert!(page(&site, &cookie, "/system/audit").contains("role = run"));
}

/// Runs that end now were accepted lately. Those of the hours before are counted again when a minute has passed.
#[test]
fn the_newest_parts_of_the_picture_are_counted_for_each_page_and_the_others_once_a_minute() {
    let site = Site::new();
    let [old, new] = [site.run(), site.run()];
    let five_hours_ago = START_MS - 5 * 3_600_000;
    let end = |id: i64, status: &str| {
        let created = if id == old { five_hours_ago } else { START_MS };
        site.sql(&format!(
            "UPDATE runs SET status = '{status}', finished_at = {START_MS}, created_at = {created}
             WHERE id = {id}"
        ));
    };
    let cookie = site.session(Role::View);
    let sums = || {
        let body = page(&site, &cookie, "/runs");
        body.split("in parts of half an hour: ").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    end(old, "SUCCESSFUL");
    end(new, "SUCCESSFUL");
    assert_eq!(sums(), "2 successful, 0 failed");
    end(new, "FAILED");
    assert_eq!(sums(), "1 successful, 1 failed");
    end(old, "FAILED");
    assert_eq!(sums(), "1 successful, 1 failed");
    site.clock.advance_ms(60_000);
    assert_eq!(sums(), "0 successful, 2 failed");
}
