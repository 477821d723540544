//! The HTML of the pages: what comes from people and programs can't become a part of the page, and a page is complete without
//! its script.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../examples/preview/run.rs"]
mod run;
#[path = "../examples/preview/runs.rs"]
mod runs;

use windlass_web::pages::run::{Panel, View};
use windlass_web::pages::times::Times;
use windlass_web::pages::{Badges, Reader, Rights, SignedIn};

const NOW_MS: i64 = 1_795_329_720_000;

fn reader(rights: Rights) -> Reader {
    let times = Times { zone: Times::zone("Europe/Berlin"), now_ms: NOW_MS };
    Reader {
        base: "/w".to_owned(),
        times,
        rights,
        form_token: "the-form-token".to_owned(),
        signed_in: Some(SignedIn { name: "ada".to_owned(), role: "admin" }),
        badges: Badges { approvals: 2, paused_queues: 1 },
    }
}

/// Every page with its name.
fn pages(rights: Rights) -> Vec<(String, String)> {
    let reader = reader(rights);
    let mut pages = vec![
        ("runs".to_owned(), windlass_web::pages::runs::page(&runs::data(NOW_MS), &reader).unwrap()),
        ("no runs".to_owned(), windlass_web::pages::runs::page(&runs::nothing(NOW_MS), &reader).unwrap()),
        ("large run".to_owned(), windlass_web::pages::run::page(&run::large(NOW_MS), &reader).unwrap()),
    ];
    for view in [View::Timeline, View::Graph, View::Table] {
        for panel in [Panel::Log, Panel::Attempts, Panel::Data, Panel::Why, Panel::Definition] {
            let page = windlass_web::pages::run::page(&run::data(NOW_MS, view, panel), &reader).unwrap();
            pages.push((format!("run {} {}", view.name(), panel.name()), page));
        }
    }
    pages
}

fn page(name: &str) -> String {
    pages(Rights::Admin).into_iter().find(|(known, _)| known == name).unwrap().1
}

#[test]
fn no_page_has_anything_that_its_policy_forbids() {
    for (name, page) in pages(Rights::Admin) {
        assert_eq!(page.matches("<script").count(), 1, "{name}");
        assert!(page.contains("<script src=\"/w/assets/windlass."), "{name}");
        assert!(
            !page.contains("<style") && !page.contains(" style=") && !page.contains("javascript:"),
            "{name}"
        );
        let tags = page.split('<').filter_map(|part| part.split_once('>')).map(|(tag, _text)| tag);
        for tag in tags {
            // Every second part is the value of an attribute, in which a quote is escaped.
            let outside: String = tag.split('"').step_by(2).collect();
            let has_handler =
                outside.split_whitespace().any(|word| word.starts_with("on") && word.contains('='));
            assert!(!has_handler, "{name}: {tag}");
        }
    }
}

#[test]
fn names_errors_params_and_output_stay_text() {
    let list = page("runs");
    assert!(list.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(list.contains("&lt;img src=x onerror=alert(1)&gt;"));
    assert!(list.contains("a = \u{2039}U+202E\u{203a}gpj.exe"));
    let log = page("run timeline log");
    assert!(log.contains("&lt;script&gt;alert(&#39;from a log&#39;)"));
    assert!(
        log.contains("<span>WARN  attempt 3 of 3: connection <mark>refused</mark>"),
        "colours of terminals"
    );
    for (name, page) in pages(Rights::Admin) {
        let hidden = page.chars().find(|c| {
            (c.is_control() && *c != '\n')
                || ('\u{202a}'..='\u{202e}').contains(c)
                || ('\u{2066}'..='\u{2069}').contains(c)
        });
        assert_eq!(hidden, None, "{name}");
    }
}

#[test]
fn who_may_only_look_sees_nothing_that_changes_something() {
    for (name, page) in pages(Rights::View) {
        assert!(!page.contains("name=\"run\""), "{name}");
        for action in ["/retry", "/cancel", "/runs/batch?", "/again"] {
            assert!(!page.contains(&format!("{action}\"")), "{name}: {action}");
        }
    }
    let page = page("run timeline log");
    for action in ["/w/runs/48162/retry\"", "/w/runs/48162/retry-from\"", "/w/runs/48162/again\""] {
        assert!(page.contains(action), "{action}");
    }
}

#[test]
fn every_form_that_changes_something_has_the_token() {
    for (name, page) in pages(Rights::Admin) {
        for form in page.split("<form ").skip(1).map(|form| form.split("</form>").next().unwrap()) {
            let changes = form.split('>').next().unwrap().contains("method=\"post\"");
            assert_eq!(changes, form.contains("the-form-token"), "{name}: {form}");
        }
    }
}

#[test]
fn the_list_shows_what_failed_what_runs_and_what_waits() {
    let page = page("runs");
    for text in [
        "Failed since yesterday 22:00",
        "7 runs, 3 causes",
        "connection to warehouse:5432 refused",
        "running for 1m 12s",
        "waits for key tenant-7, held by #48190",
        "queue mail is paused",
        "usually 41s",
        "Catch-up",
        "day = 2026-11-21",
        "has been paused since 01:12",
        "<b>Berlin</b>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("href=\"/w/runs?before=48150\""), "the next page");
    assert!(
        page.contains("name=\"failed_since\"") && !page.contains("/w/runs/batch?action=retry"),
        "one click"
    );
}

#[test]
fn a_run_shows_its_error_with_its_line_and_other_runs() {
    let page = page("run timeline log");
    for text in [
        "load_warehouse failed after 3 attempts: exit code 1",
        "First error, line 189",
        "3 later runs",
        "#48153",
        "12s ready",
        "exit code 3, allowed",
        "id=\"L189\"",
        "1 of 4",
        "180 lines before",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_large_run_has_windows_and_is_not_large_itself() {
    let page = page("large run");
    assert!(page.contains("1 to 200 of 10,000"));
    assert!(page.contains("offset=200"));
    assert!(page.contains("without an attempt"), "a folded time");
    assert!(page.len() < 300_000, "{} bytes", page.len());
    assert!(page.matches("<a class=\"gr\"").count() <= 200);
}

#[test]
fn the_script_is_small() {
    let script = include_bytes!("../assets/windlass.js");
    assert!(script.len() <= 30_000, "{} bytes", script.len());
}
