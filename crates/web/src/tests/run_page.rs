//! The page of one run: links to lines, the search, the graph of a large run, and what is known about other runs.

use windlass_engine::store::{Change, NewRegistration, NewRun, NewSignal, Role, Subject};

use super::pages::page;
use super::site::{Site, workflow};

fn start(site: &Site, name: &str, text: &str) -> i64 {
    let workflow = workflow(name, text);
    let new = NewRun { workflow, params: Default::default(), dir: None, run_key: None, occasion: None };
    site.store.runs().submit(new).unwrap().run_id
}

/// A job whose second attempt runs. Both have lines: `line 7 of 1`, every tenth of which is of stderr.
fn job_with_output(site: &Site, lines: i64) -> (i64, i64) {
    let run_id = start(site, "w", "[jobs.a]\nrun = 'true'\n");
    let job_id = site.store.jobs().find_by_name(run_id, "a").unwrap().unwrap().id;
    site.sql(&format!(
        "UPDATE jobs SET status = 'RUNNING', attempt = 2, worker_id = 1, started_at = 1 WHERE id = {job_id}"
    ));
    site.sql(&format!(
        "INSERT INTO job_logs (job_id, attempt, line, at, stream, text)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {lines})
         SELECT {job_id}, attempts.attempt, n, n, CASE WHEN n % 10 = 0 THEN 'stderr' ELSE 'stdout' END,
                'line ' || n || ' of ' || attempts.attempt
         FROM numbers, (SELECT 1 AS attempt UNION ALL SELECT 2) AS attempts"
    ));
    (run_id, job_id)
}

/// The numbers of the lines that a page shows.
fn lines(body: &str) -> Vec<i64> {
    body.split("id=\"L").skip(1).map(|part| part.split('"').next().unwrap().parse().unwrap()).collect()
}

/// The part of a page from a line on.
fn line(body: &str, number: i64) -> String {
    let (_, rest) = body.split_once(&format!("id=\"L{number}\"")).unwrap();
    rest.split("</div>").next().unwrap().replace("&#38;", "&").replace("&amp;", "&")
}

#[test]
fn the_link_of_a_line_names_its_attempt_and_shows_it_with_the_lines_around() {
    let site = Site::new();
    let (run_id, job_id) = job_with_output(&site, 900);
    let cookie = site.session(Role::View);
    let before = page(&site, &cookie, &format!("/runs/{run_id}?job={job_id}&attempt=1&view=table&from=1"));
    let link = format!("?view=table&job={job_id}&attempt=1&line=390#L390");
    assert!(line(&before, 390).contains(&format!("href=\"{link}\"")), "{}", line(&before, 390));
    let path = link.split('#').next().unwrap();
    let body = page(&site, &cookie, &format!("/runs/{run_id}{path}"));
    assert_eq!(lines(&body)[..1], [378]);
    assert!(body.contains("class=\"ln asked\" id=\"L390\"") && line(&body, 390).contains("line 390 of 1"));
    // Windows begin where they are asked to, and the last one has the last line.
    assert_eq!(lines(&page(&site, &cookie, &format!("/runs/{run_id}?from=378")))[..1], [378]);
    let end = lines(&page(&site, &cookie, &format!("/runs/{run_id}?from=99999999")));
    assert_eq!((end[0], end.last()), (501, Some(&900)));
    assert!(!lines(&page(&site, &cookie, &format!("/runs/{run_id}?line=99999999"))).is_empty());
}

#[test]
fn a_line_of_stderr_says_so_in_words() {
    let site = Site::new();
    let (run_id, _job_id) = job_with_output(&site, 20);
    let body = page(&site, &site.session(Role::View), &format!("/runs/{run_id}"));
    assert!(
        line(&body, 10).contains("<abbr title=\"stderr\">err</abbr>") && !line(&body, 9).contains("abbr")
    );
}

#[test]
fn a_search_shows_the_next_hit_and_after_the_last_one_the_first() {
    let site = Site::new();
    let (run_id, job_id) = job_with_output(&site, 900);
    site.sql(&format!(
        "UPDATE job_logs SET text = 'a ' || chr_esc.e || '[31mred' || chr_esc.e || '[0m apple'
         FROM (SELECT '\u{1b}' AS e) AS chr_esc WHERE job_id = {job_id} AND line IN (20, 850)"
    ));
    let cookie = site.session(Role::View);
    let find =
        |rest: &str| page(&site, &cookie, &format!("/runs/{run_id}?job={job_id}&attempt=2&find={rest}"));
    for (rest, text, number) in [
        ("red%20apple", "1 of 2", 20),
        ("red%20apple&line=21", "2 of 2", 850),
        // A new text, with the line of a former one.
        ("red%20apple&line=851", "1 of 2", 20),
        ("line%2030%20of&line=800", "1 of 1", 30),
    ] {
        let body = find(rest);
        assert!(body.contains(&format!("role=\"status\">{text}<")), "{rest}");
        assert!(body.contains(&format!("class=\"ln asked\" id=\"L{number}\"")), "{rest}: {:?}", lines(&body));
    }
    let body = find("red%20apple").replace("&#38;", "&").replace("&amp;", "&");
    for name in ["Previous", "Next"] {
        let link = format!("href=\"?job={job_id}&attempt=2&line=850&find=red%20apple#L850\">{name}</a>");
        assert!(body.contains(&link), "{name}");
    }
    // The text is sent without the line of its last hit, and another attempt is shown as soon as it is chosen.
    let form = body.split("<form class=\"log-bar\"").nth(1).unwrap().split("</form>").next().unwrap();
    assert!(!form.contains("name=\"line\"") && form.contains("data-auto"), "{form}");
    assert!(find("nothing").contains("role=\"status\">not found<"));
}

#[test]
fn the_graph_of_a_large_run_shows_the_jobs_around_the_chosen_one() {
    let site = Site::new();
    let jobs: Vec<String> = (0..1_200)
        .map(|n| match n {
            0..1_198 => format!("[jobs.j{n}]\nrun = 'true'\n"),
            _ => format!("[jobs.j{n}]\nrun = 'true'\nneeds = ['j{}']\n", n - 1),
        })
        .collect();
    let run_id = start(&site, "large", &jobs.concat());
    let cookie = site.session(Role::View);
    let last = site.store.jobs().find_by_name(run_id, "j1199").unwrap().unwrap().id;
    let chosen = page(&site, &cookie, &format!("/runs/{run_id}?view=graph&job={last}"));
    assert!(chosen.contains("The 3 jobs around j1199, of 1,200."), "{chosen}");
    assert_eq!(chosen.matches("<path class=\"e").count(), 2, "the lines between them");
    site.sql(&format!(
        "UPDATE jobs SET status = 'FAILED', finished_at = 5, started_at = 4 WHERE id = {last}"
    ));
    let failed = page(&site, &cookie, &format!("/runs/{run_id}?view=graph"));
    assert!(failed.contains("The 3 jobs around j1199, of 1,200."), "the one that failed is in the middle");
}

#[test]
fn a_run_that_a_job_started_is_retried_with_the_one_at_the_top() {
    let site = Site::new();
    let parent = start(
        &site,
        "parent",
        "[workflows.child.jobs.work]\nrun = 'true'\n[jobs.each]\nworkflow = \"child\"\n",
    );
    while site.store.for_scheduler().decide_waiting().unwrap() > 0 {}
    let child = site.store.runs().below(parent, 0, 9).unwrap()[0].run_id;
    site.sql("UPDATE runs SET status = 'FAILED', started_at = 1, finished_at = 2");
    let cookie = site.session(Role::Run);
    let of = |run_id: i64| page(&site, &cookie, &format!("/runs/{run_id}"));
    let (above, below) = (of(parent), of(child));
    for action in ["retry", "retry-from"] {
        assert!(above.contains(&format!("/runs/{parent}/{action}\"")), "{action}");
        assert!(!below.contains(&format!("/runs/{child}/{action}\"")), "{action}");
    }
    assert!(below.contains(&format!("href=\"/runs/{parent}\">Retry with run #{parent}…")));
    site.sql("UPDATE runs SET status = 'SUCCESSFUL'");
    let successful = of(parent);
    assert!(successful.contains(&format!("/runs/{parent}/retry-from\"")), "the engine allows it");
    assert!(!successful.contains(&format!("/runs/{parent}/retry\"")));
    assert!(!page(&site, &site.session(Role::View), &format!("/runs/{child}")).contains("Retry with"));
}

#[test]
fn what_nobody_knows_about_other_runs_is_not_said() {
    let site = Site::new();
    let [alone, first, second, other] = [1, 2, 3, 4].map(|_| site.run());
    let fail = |run_id: i64, error: &str, at: i64| {
        site.sql(&format!(
            "UPDATE jobs SET status = 'FAILED', attempt = 1, started_at = 1, finished_at = {at}, last_error = '{error}'
             WHERE run_id = {run_id} AND name = 'a'"
        ));
        site.sql(&format!(
            "UPDATE runs SET status = 'FAILED', started_at = 1, finished_at = {at} WHERE id = {run_id}"
        ));
    };
    fail(alone, "lonely", 10);
    fail(first, "refused", 20);
    fail(second, "refused", 30);
    fail(other, "refused", 40);
    let cookie = site.session(Role::View);
    let of = |run_id: i64| page(&site, &cookie, &format!("/runs/{run_id}"));
    assert!(of(alone).contains("No other run failed like this"));
    let body = of(first);
    assert!(body.contains("in 2 later runs:"), "{body}");
    for run_id in [second, other] {
        assert!(body.contains(&format!("<a href=\"/runs/{run_id}\">#{run_id}</a>")));
    }
    // So many failures came later that the first ones are not read.
    site.sql(
        "INSERT INTO jobs (kind, status, attempt, started_at, finished_at, last_error)
         WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 998)
         SELECT 'shell', 'FAILED', 1, 1, 1000 + n, 'later' FROM numbers",
    );
    let unknown = of(alone);
    assert!(!unknown.contains("failed like this") && !unknown.contains("The same"), "{unknown}");
    assert!(of(second).contains("The same at least since"), "{}", of(second));
}

#[test]
fn a_run_says_who_cancelled_it_and_what_started_it() {
    let site = Site::new();
    let run_id = site.run();
    let subject = Subject::Run(run_id);
    let change = Change { caller: "ops".to_owned(), address: None, subject, traceparent: None };
    site.store.recorded(change).runs().cancel(run_id).unwrap();
    let cookie = site.session(Role::View);
    let of = |run_id: i64| page(&site, &cookie, &format!("/runs/{run_id}"));
    assert!(of(run_id).contains("It was cancelled by ops before its jobs had finished."));
    site.store
        .registrations()
        .apply(NewRegistration {
            workflow: workflow(
                "loads",
                "[jobs.a]\nrun = 'true'\n[[triggers]]\nname = 'arrival'\nevent = 'file'\n",
            ),
            file: None,
            dir: None,
        })
        .unwrap();
    let signal = NewSignal { name: "file".to_owned(), key: None, payload: "{}".to_owned(), event_id: None };
    let event = site.store.events().signal(signal).unwrap().id;
    while site.store.for_scheduler().dispatch_events().unwrap() {}
    assert!(of(run_id + 1).contains(&format!("by trigger arrival, event {event}")), "{}", of(run_id + 1));
    site.sql(&format!("UPDATE triggered_runs SET started_by = 'run:{run_id}:5'"));
    let body = of(run_id + 1);
    assert!(
        body.contains(&format!("by trigger arrival, after <a href=\"/runs/{run_id}\">run #{run_id}</a>"))
    );
}

#[test]
fn the_page_of_a_workflow_says_how_long_each_job_takes() {
    let site = Site::new();
    for (run_id, took_s) in [(1, 10), (2, 30), (3, 20)] {
        assert_eq!(site.run(), run_id);
        site.sql(&format!(
            "UPDATE jobs SET status = 'SUCCESSFUL', attempt = 1, started_at = 1000, finished_at = 1000 + {took_s} * 1000
             WHERE run_id = {run_id} AND name = 'a'"
        ));
    }
    let body = page(&site, &site.session(Role::View), "/workflows/two");
    let times = "<td class=\"took\">20s</td><td class=\"took\">20s</td>";
    assert!(body.contains(times), "{body}");
    assert_eq!(body.matches("<td class=\"took\"></td>").count(), 2, "job b has not run");
}
