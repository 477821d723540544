//! Calls, items, definitions and schedules on the pages, with rows of a real store.

use windlass_engine::store::{NewRegistration, NewRun, Role};

use super::pages::{form, page};
use super::site::{Site, workflow};

fn start(site: &Site, name: &str, text: &str) -> i64 {
    let workflow = workflow(name, text);
    let new = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    site.store.runs().submit(new).unwrap().run_id
}

fn apply(site: &Site, text: &str) {
    let new = NewRegistration { workflow: workflow("daily", text), file: None, dir: None };
    site.store.registrations().apply(new).unwrap();
}

fn decide(site: &Site) {
    while site.store.for_scheduler().decide_waiting().unwrap() > 0 {}
}

const JOBS: &str = "[workflows.child.jobs.work]\nrun = 'true'\n[jobs.each]\nworkflow = \"child\"\n\
                    [jobs.after]\nneeds = ['each']\nrun = 'true'\n";

#[test]
fn a_run_shows_the_runs_that_its_jobs_called_and_these_show_who_called_them() {
    let site = Site::new();
    let parent = start(&site, "parent", JOBS);
    decide(&site);
    let child = site.store.runs().below(parent, 0, 9).unwrap()[0].run_id;
    let cookie = site.session(Role::View);
    let (above, below) =
        (page(&site, &cookie, &format!("/runs/{parent}")), page(&site, &cookie, &format!("/runs/{child}")));
    for body in [&above, &below] {
        assert!(body.contains("id=\"tree-title\"") && body.contains(&format!("href=\"/runs/{child}\"")));
        assert!(body.contains("by each") && body.contains("class=\"d1"), "{body}");
    }
    assert!(below.contains(&format!("each of run #{parent}</a>")), "{below}");
    let job_id = site.store.jobs().find_by_name(parent, "each").unwrap().unwrap().id;
    let card = page(&site, &cookie, &format!("/runs/{parent}?job={job_id}"));
    assert!(card.contains(&format!("It started <a href=\"/runs/{child}\">child #{child}</a>")), "{card}");
    let alone = site.run();
    assert!(!page(&site, &cookie, &format!("/runs/{alone}")).contains("tree-title"));
}

#[test]
fn the_error_of_a_called_run_stands_on_the_page_of_the_run_that_called_it() {
    let site = Site::new();
    let parent = start(&site, "parent", JOBS);
    decide(&site);
    let child = site.store.runs().below(parent, 0, 9).unwrap()[0].run_id;
    let work = site.store.jobs().find_by_name(child, "work").unwrap().unwrap().id;
    let each = site.store.jobs().find_by_name(parent, "each").unwrap().unwrap().id;
    let fail = |job: i64, error: &str| {
        site.sql(&format!(
            "UPDATE jobs SET status = 'FAILED', waits_for = NULL, finished_at = 5, last_error = '{error}' WHERE id = {job}"
        ));
    };
    fail(work, "exit code 7: the warehouse <b>refused</b>");
    fail(each, "run 2 failed: work");
    site.sql("UPDATE runs SET status = 'FAILED', finished_at = 5");
    let cookie = site.session(Role::View);
    let body = page(&site, &cookie, &format!("/runs/{parent}"));
    let expected = format!("<a href=\"/runs/{child}?job={work}#job\">child #{child} / work</a>");
    assert!(body.contains(&expected), "{body}");
    assert!(body.contains(">exit code 7: the warehouse &lt;b&gt;refused&lt;/b&gt;</span>"), "{body}");
    let below = page(&site, &cookie, &format!("/runs/{child}"));
    assert!(below.contains("aria-label=\"The error\"") && !below.contains("class=\"called\""), "{below}");
}

#[test]
fn items_come_by_windows_in_the_job_that_they_belong_to() {
    let site = Site::new();
    let items: Vec<String> = (0..250).map(|item| item.to_string()).collect();
    let text = format!(
        "[jobs.each]\nfor_each = {{ in = [{}] }}\nrun = 'true'\n[jobs.last]\nneeds = ['each']\nrun = 'true'\n",
        items.join(", ")
    );
    let run_id = start(&site, "many", &text);
    decide(&site);
    let group = site.store.jobs().find_by_name(run_id, "each").unwrap().unwrap();
    let bad = site.store.jobs().find_by_name(run_id, "each[240]").unwrap().unwrap();
    site.sql(&format!(
        "UPDATE jobs SET status = 'FAILED', finished_at = 5, last_error = '<script>x</script>' WHERE id = {}",
        bad.id
    ));
    let cookie = site.session(Role::View);
    let body = page(&site, &cookie, &format!("/runs/{run_id}?view=table&job={}", group.id));
    assert!(body.contains("1 to 2 of 2") && !body.contains(">each[249]<"), "the jobs without items");
    assert!(body.contains("1 to 100 of 250 items, those that failed first"), "{body}");
    assert!(body.contains("<b>0</b> of 252 jobs successful, <b>1</b> failed</span>"), "{body}");
    let (first, second) = (body.find(">each[240]<").unwrap(), body.find(">each[0]<").unwrap());
    assert!(first < second && body.contains("&lt;script&gt;x&lt;/script&gt;"));
    let next = body.split("rel=\"next\" href=\"").last().unwrap().split('"').next().unwrap();
    let next = page(&site, &cookie, &next.replace("&amp;", "&").replace("#job", ""));
    assert!(next.contains("101 to 200 of 250 items"), "{next}");
    let found = page(&site, &cookie, &format!("/runs/{run_id}?view=table&name=249"));
    assert!(found.contains(">each[249]<"), "a filter finds items too");
}

#[test]
fn versions_are_compared_by_their_parts_and_lines() {
    let site = Site::new();
    apply(&site, "[jobs.a]\nrun = 'echo one'\n[jobs.gone]\nrun = 'true'\n");
    apply(&site, "[jobs.b]\nrun = \"echo '<script>'\"\n[jobs.a]\nneeds = ['b']\nrun = 'echo two'\n");
    let cookie = site.session(Role::View);
    assert!(page(&site, &cookie, "/workflows/daily").contains("href=\"/workflows/daily/versions/2\""));
    let body = page(&site, &cookie, "/workflows/daily/versions/2");
    for text in [
        "What differs from version 1",
        "job a <span class=\"m\">changed</span>",
        "job b <span class=\"m\">added</span>",
        "job gone <span class=\"m\">removed</span>",
        "<div class=\"add\"><span>+</span>needs: b</div>",
        "echo two",
        "&lt;script&gt;",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    assert!(page(&site, &cookie, "/workflows/daily/versions/1").contains("It is the first version."));
    let back = page(&site, &cookie, "/workflows/daily/versions/1?from=2");
    assert!(back.contains("What differs from version 2") && back.contains("<span>-</span>needs: b"));
    for path in ["/workflows/daily/versions/9", "/workflows/none/versions/1", "/workflows/daily/versions/x"] {
        site.get(path).header("cookie", &cookie).send().is(404);
    }
    for path in ["/workflows/daily/versions/1?from=x", "/workflows/daily/versions/1?to=2"] {
        site.get(path).header("cookie", &cookie).send().is(400);
    }
}

/// Any of the others may have 10,000 jobs.
#[test]
fn of_the_versions_in_a_list_no_definition_is_read() {
    let site = Site::new();
    for run in ["echo one", "echo two", "echo three"] {
        apply(&site, &format!("[jobs.a]\nrun = '{run}'\n"));
    }
    site.sql("UPDATE workflows SET definition = 'unreadable' WHERE definition LIKE '%echo one%'");
    let cookie = site.session(Role::View);
    for path in ["/workflows/daily", "/workflows/daily/versions/3"] {
        assert!(page(&site, &cookie, path).contains("href=\"/workflows/daily/versions/1\""), "{path}");
    }
}

/// The list and its counts are three searches. If each of them compared 50,000 runs, the page would take six times as long.
#[test]
fn the_searches_of_a_page_share_what_one_may_look_at() {
    let site = Site::new();
    site.sql(
        "INSERT INTO runs (workflow, status, params, finished_at)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 60000)
         SELECT 'w', 'FAILED', CASE WHEN n IN (57000, 48000, 36000) THEN '{\"day\":\"monday\"}' ELSE '{}' END, 1
         FROM numbers",
    );
    let cookie = site.session(Role::View);
    let body = page(&site, &cookie, "/runs?since=ever&state=failed&param=day%3Dmonday");
    // A quarter of a search: 12,500 runs.
    assert!(body.contains("2 found down to run 47501"), "{body}");
    let body = page(&site, &cookie, "/runs?since=ever&param=day%3Dmonday");
    assert!(body.contains("2 found down to run 47501"), "{body}");
    // An eighth of a search for two states: 3,125 runs of each.
    let failed = body.split("state=failed").nth(1).and_then(|rest| rest.split("</a>").next()).unwrap();
    assert!(failed.contains("1+"), "{failed}");
}

#[test]
fn a_run_shows_the_definition_that_is_pinned_to_it() {
    let site = Site::new();
    let run_id = site.run();
    let cookie = site.session(Role::View);
    assert!(page(&site, &cookie, "/runs/1").contains("href=\"/runs/1/definition\""));
    let body = page(&site, &cookie, &format!("/runs/{run_id}/definition"));
    assert!(body.contains("[job b]") && body.contains("needs: a"), "{body}");
    site.get("/runs/1/definition?number=2").header("cookie", &cookie).send().is(404);
}

#[test]
fn schedules_are_paused_resumed_and_triggered_by_who_may() {
    let site = Site::new();
    apply(
        &site,
        "[jobs.a]\nrun = 'true'\n[[schedules]]\nname = 'night'\ncron = '0 2 * * *'\noverlap = 'queue_all'\n",
    );
    let schedule = site.store.schedules().list().unwrap().remove(0);
    let path = |verb: &str| format!("/schedules/{}/{verb}", schedule.id);
    let editor = site.session(Role::Edit);
    let body = page(&site, &editor, "/workflows/daily");
    assert!(body.contains("0 2 * * * UTC<span class=\"sub\">overlap: queue_all</span>"), "{body}");
    assert!(!body.contains("catchup"), "what is as always is not shown");
    form(&site, &editor, &path("pause"), "").is(303);
    assert!(site.store.schedules().get(schedule.id).unwrap().paused_at.is_some());
    assert!(page(&site, &editor, "/workflows/daily").contains(&path("resume")));
    form(&site, &editor, &path("resume"), "").is(303);
    let runner = site.session(Role::Run);
    let body = page(&site, &runner, "/workflows/daily");
    assert!(body.contains(&path("trigger")) && !body.contains(&path("pause")));
    form(&site, &runner, &path("pause"), "").is(403);
    let triggered = form(&site, &runner, &path("trigger"), "");
    triggered.is(303);
    assert_eq!(triggered.header("location"), "/runs/1");
    assert_eq!(site.store.runs().get(1).unwrap().schedule_id, Some(schedule.id));
    let viewer = site.session(Role::View);
    assert!(!page(&site, &viewer, "/workflows/daily").contains("/trigger"));
    form(&site, &editor, "/schedules/99/pause", "").is(404);
}

#[test]
fn queues_name_the_oldest_job_and_who_holds_the_keys_that_are_waited_for() {
    let site = Site::new();
    let (holder, waiting) = (site.run(), site.run());
    site.sql("UPDATE jobs SET concurrency_key = 'tenant <i>', concurrency_limit = 1 WHERE name = 'a'");
    site.sql(&format!(
        "UPDATE jobs SET status = 'WAITING', waits_for = 'slot' WHERE run_id = {waiting} AND name = 'a'"
    ));
    let body = page(&site, &site.session(Role::View), "/queues");
    let job = |run_id| site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    for text in [
        "tenant &lt;i&gt;".to_owned(),
        format!("<a href=\"/runs/{0}?job={1}#job\">#{0}, job {1}</a></td></tr>", holder, job(holder)),
        format!("<a href=\"/runs/{0}?job={1}#job\">#{0}, job {1}</a><span", waiting, job(waiting)),
        format!("href=\"/runs/{holder}?job={}#job\">#{holder}</a>", job(holder)),
    ] {
        assert!(body.contains(&text), "{text}: {body}");
    }
}

#[test]
fn an_administrator_adds_a_token_that_is_shown_once_and_revokes_it() {
    let site = Site::new();
    let cookie = site.session(Role::Admin);
    assert!(page(&site, &cookie, "/system").contains("/system/tokens"));
    assert!(!page(&site, &site.session(Role::Edit), "/system").contains("/system/tokens"));
    for fields in
        ["name=&role=view", "name=a&role=root", "name=a&role=view&days=0", "name=a&role=view&days=x"]
    {
        form(&site, &cookie, "/system/tokens", fields).is(400);
    }
    let added = form(&site, &cookie, "/system/tokens", "name=%3Ci%3Ebot&role=run&days=9");
    added.is(200);
    assert_eq!(added.header("cache-control"), "no-store");
    let secret = added.body.split("<code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    site.get("/api/v1/runs").token(&secret).send().is(200);
    let list = page(&site, &cookie, "/system/tokens");
    assert!(list.contains("&lt;i&gt;bot") && !list.contains(&secret), "{list}");
    form(&site, &cookie, "/system/tokens", "name=%3Ci%3Ebot&role=view").is(400);
    form(&site, &cookie, "/system/tokens/revoke", "name=%3Ci%3Ebot").is(303);
    site.get("/api/v1/runs").token(&secret).send().is(401);
    form(&site, &cookie, "/system/tokens/revoke", "name=none").is(404);
    let audit = page(&site, &cookie, "/system/audit");
    assert!(audit.contains("the token &lt;i&gt;bot") && !audit.contains(&secret), "{audit}");
}

#[test]
fn changes_are_found_by_who_and_what_and_come_in_pages() {
    let site = Site::new();
    let run_id = site.run();
    let cookie = site.session(Role::Admin);
    form(&site, &cookie, &format!("/runs/{run_id}/cancel"), "").is(303);
    for number in 0..120 {
        let at = 1_000 + number;
        site.sql(&format!("INSERT INTO audit (at, caller, action, subject) VALUES ({at}, 'eve', 'pause a queue', 'q{number}')"));
    }
    let rows =
        |query: &str| page(&site, &cookie, &format!("/system/audit{query}")).matches("data-row").count();
    // Of ada there are her session and what she cancelled.
    assert_eq!([rows(""), rows("?caller=eve"), rows("?caller=ada"), rows("?caller=no")], [100, 100, 2, 0]);
    assert_eq!(
        [rows("?text=Q119"), rows("?caller=ada&text=cancel"), rows("?caller=eve&text=cancel")],
        [1, 1, 0]
    );
    let first = page(&site, &cookie, "/system/audit?caller=eve");
    let next =
        first.split("rel=\"next\" href=\"").nth(1).unwrap().split('"').next().unwrap().replace("&amp;", "&");
    assert_eq!(page(&site, &cookie, &next).matches("data-row").count(), 20);
    site.get("/system/audit?before=x").header("cookie", &cookie).send().is(400);
}
