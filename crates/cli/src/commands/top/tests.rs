//! Pictures of the screen, and what keys make of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use anstyle::Effects;
use windlass_engine::JobStatus;
use windlass_engine::store::{
    Count, FailureGroup, Failures, JobSummary, LogLine, LogStream, OldestJob, Order, Queue, Rate,
};

use super::data::{FailedRun, GroupName, Lists, News, Placement, Request};
use super::draw::{Colours, Line, draw};
use super::state::{App, Effect, Key, Mode, Part};
use crate::text::time::{self, Zone};

/// 2026-11-23 10:03:04 UTC.
const NOW_MS: i64 = 1_795_428_184_000;

fn exactly(number: i64) -> Count {
    Count { number, is_exact: true }
}

fn queue(name: &str, pending: i64, running: i64) -> Queue {
    Queue {
        name: name.to_owned(),
        paused_at: None,
        max_running: None,
        rate: None,
        order: Order::Priority,
        pending: exactly(pending),
        running: exactly(running),
        scheduled: exactly(0),
        waiting: exactly(0),
    }
}

fn job(id: i64, run_id: Option<i64>, name: &str, since_ms: i64) -> JobSummary {
    JobSummary {
        id,
        run_id,
        name: run_id.map(|_| name.to_owned()),
        kind: if run_id.is_some() { "shell".to_owned() } else { name.to_owned() },
        queue: "default".to_owned(),
        status: JobStatus::Running,
        priority: 0,
        execute_after: 0,
        attempt: 1,
        max_attempts: 3,
        allow_failure: false,
        error: None,
        worker_id: Some(7),
        cancel_requested_at: None,
        created_at: NOW_MS - since_ms,
        started_at: Some(NOW_MS - since_ms),
        finished_at: None,
    }
}

fn failed(workflow: &str, job: &str, error: &str, run_ids: Vec<i64>, ago_ms: i64) -> FailureGroup {
    FailureGroup {
        workflow: workflow.to_owned(),
        job: job.to_owned(),
        error: error.to_owned(),
        run_ids,
        job_ids: Vec::new(),
        first_at: NOW_MS - ago_ms,
        last_at: NOW_MS - ago_ms,
    }
}

fn lists() -> Lists {
    let mail = Queue {
        paused_at: Some(NOW_MS - 300_000),
        max_running: Some(4),
        rate: Some(Rate { jobs: 100, interval_ms: 60_000 }),
        ..queue("mail", 1_204, 0)
    };
    let reports = Queue { scheduled: exactly(3), waiting: exactly(2), ..queue("reports", 7, 2) };
    Lists {
        queues: vec![queue("default", 0, 3), mail, reports],
        oldest: BTreeMap::from([
            ("mail".to_owned(), OldestJob { job_id: 4, run_id: None, since: NOW_MS - 305_000 }),
            ("reports".to_owned(), OldestJob { job_id: 5, run_id: Some(9), since: NOW_MS - 12_000 }),
        ]),
        running: vec![
            job(11, Some(3), "extract", 3_725_000),
            JobSummary { attempt: 2, ..job(12, Some(3), "load", 64_000) },
            job(40, None, "thumbnail", 900),
        ],
        has_more_running: false,
        failures: Failures {
            groups: vec![
                failed(
                    "nightly",
                    "load",
                    "connection refused by the warehouse at 10.0.0.7:5432, after 3 tries",
                    vec![8, 6, 5],
                    240_000,
                ),
                failed("report", "", "the run reached its timeout", vec![4], 7_200_000),
            ],
            since_ms: NOW_MS - 86_400_000,
        },
    }
}

fn line(attempt: i64, line: i64, stream: LogStream, text: &str) -> LogLine {
    LogLine { job_id: 11, attempt, line, at: NOW_MS - 1_000, stream, text: text.to_owned() }
}

/// The columns and rows of a screen.
type Size = (usize, usize);

fn app(columns: usize, rows: usize) -> (App, Size) {
    time::set_zone(Zone::Utc);
    let mut app = App::new("/var/lib/windlass/windlass.db".to_owned());
    app.set_present(rows, NOW_MS);
    (app, (columns, rows))
}

fn full(columns: usize, rows: usize) -> (App, Size) {
    let (mut app, size) = app(columns, rows);
    app.take(News::Lists(Box::new(lists())));
    assert_eq!(app.job_to_follow(), Some(Request::Follow(11)));
    assert_eq!(app.job_to_follow(), None, "it is asked for once");
    let lines = vec![
        line(1, 1, LogStream::Stdout, "reading 14 files"),
        line(1, 2, LogStream::Stderr, "retrying orders.csv"),
        line(
            2,
            1,
            LogStream::Stdout,
            "reading 14 files, and a long list of their names that no terminal of this width can show whole, so it is cut",
        ),
    ];
    app.take(News::Output { job_id: 11, lines, placement: Placement::InPlaceOfAll, is_over: false });
    (app, size)
}

fn lines(app: &App, colours: Colours, (columns, rows): Size) -> Vec<Line> {
    draw(app, colours, columns, rows)
}

/// The characters of the picture, a line each.
fn picture(app: &App, size: Size) -> String {
    let line = |line: &Line| line.iter().map(|span| span.text.as_str()).collect::<String>();
    lines(app, Colours::Used, size).iter().map(|spans| format!("{}\n", line(spans).trim_end())).collect()
}

/// Compares the picture with the one in a file. With `UPDATE_PICTURES` in the environment, writes the file.
#[track_caller]
fn assert_picture(name: &str, app: &App, size: Size) {
    let path = format!("{}/src/commands/top/pictures/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let found = picture(app, size);
    if std::env::var_os("UPDATE_PICTURES").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(found, expected, "{path}");
}

fn press(app: &mut App, keys: &[Key]) -> Vec<Effect> {
    keys.iter().filter_map(|key| app.press(*key)).collect()
}

#[test]
fn the_screen_at_three_widths() {
    for columns in [60, 80, 120] {
        let (app, size) = full(columns, 30);
        assert_picture(&format!("all_parts_{columns}"), &app, size);
    }
}

#[test]
fn the_screen_before_the_first_read_and_without_anything() {
    let (mut app, size) = app(80, 24);
    assert_picture("before_the_first_read", &app, size);
    let failures = Failures { groups: vec![], since_ms: 0 };
    let empty =
        Lists { queues: vec![], oldest: BTreeMap::new(), running: vec![], has_more_running: false, failures };
    app.take(News::Lists(Box::new(empty)));
    assert_picture("nothing_at_all", &app, size);
}

#[test]
fn the_other_screens() {
    let (mut app, size) = full(80, 24);
    press(&mut app, &[Key::Character('?')]);
    assert_picture("help", &app, size);
    let narrow = picture(&app, (60, size.1));
    assert!(narrow.lines().skip(1).all(|line| !line.contains('…')), "nothing is cut at 60 columns: {narrow}");
    press(&mut app, &[Key::Escape, Key::Character('1'), Key::Down, Key::Character('p')]);
    assert_picture("a_question_about_a_queue", &app, size);
    press(&mut app, &[Key::Escape, Key::Character('3'), Key::Enter]);
    let runs = [8, 6, 5].map(|run_id| FailedRun {
        run_id: Some(run_id),
        job_id: run_id * 10,
        job: "load".to_owned(),
        error: "connection refused\nand more".to_owned(),
    });
    let Mode::Runs { name, .. } = app.mode.clone() else { panic!("{:?}", app.mode) };
    app.take(News::Runs { name, runs: runs.to_vec() });
    assert_picture("the_runs_of_a_failure", &app, size);
}

#[test]
fn every_size_can_be_drawn_in_every_mode() {
    let keys: [&[Key]; 5] = [
        &[],
        &[Key::Character('?')],
        &[Key::Character('/'), Key::Character('x')],
        &[Key::Character('3'), Key::Enter],
        &[Key::Character('4'), Key::Up],
    ];
    for keys in keys {
        for (columns, rows) in [(0, 0), (1, 1), (5, 2), (20, 3), (10, 8), (60, 9), (200, 60)] {
            let (mut app, size) = full(columns, rows);
            press(&mut app, keys);
            let text = picture(&app, size);
            assert_eq!(text.lines().count(), rows);
            assert!(text.lines().all(|line| console::measure_text_width(line) <= columns), "{text}");
        }
    }
}

#[test]
fn no_cell_has_a_background_and_without_colours_none_has_a_colour() {
    for (colours, may_have_colours) in [(Colours::Used, true), (Colours::Unused, false)] {
        let (app, size) = full(100, 30);
        let spans: Vec<_> = lines(&app, colours, size).into_iter().flatten().collect();
        assert!(spans.iter().all(|span| span.style.get_bg_color().is_none()));
        let has_colours = spans.iter().any(|span| span.style.get_fg_color().is_some());
        assert_eq!(has_colours, may_have_colours);
        let inverted = spans.iter().filter(|span| span.style.get_effects().contains(Effects::INVERT));
        let columns: usize = inverted.map(|span| console::measure_text_width(&span.text)).sum();
        assert_eq!(columns, 100, "the selected row is told by more than a colour");
    }
}

#[test]
fn hostile_names_and_lines_are_harmless() {
    let (mut app, size) = full(80, 24);
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}漢字漢字\u{9b}31m\r\n";
    let mut hostile = lists();
    hostile.queues[0].name = evil.to_owned();
    hostile.running[0].name = Some(evil.to_owned());
    hostile.failures.groups[0].workflow = evil.to_owned();
    hostile.failures.groups[0].error = evil.repeat(100);
    app.take(News::Lists(Box::new(hostile)));
    let lines = vec![line(1, 1, LogStream::Stdout, &evil.repeat(50))];
    app.take(News::Output { job_id: 11, lines, placement: Placement::InPlaceOfAll, is_over: false });
    app.take(News::Problem(evil.to_owned()));
    let text = picture(&app, size);
    assert!(text.contains("漢字"), "{text}");
    for character in text.chars().filter(|character| *character != '\n') {
        assert!(!character.is_control() && character != '\u{202e}', "{character:?} in {text}");
    }
    let wide = text.lines().map(console::measure_text_width).max();
    assert!(wide <= Some(80), "{wide:?} {text}");
}

#[test]
fn keys_go_from_part_to_part_and_select_rows() {
    let (mut app, _size) = full(80, 24);
    assert_eq!(app.focus, Part::Running);
    press(&mut app, &[Key::Tab, Key::Tab, Key::Tab]);
    assert_eq!(app.focus, Part::Queues);
    press(&mut app, &[Key::BackTab]);
    assert_eq!(app.focus, Part::Output);
    press(&mut app, &[Key::Character('2'), Key::Character('j'), Key::Down, Key::Down]);
    assert_eq!((app.focus, app.selected(Part::Running)), (Part::Running, 2));
    press(&mut app, &[Key::Character('k')]);
    assert_eq!(app.job_to_follow(), Some(Request::Follow(12)), "the output is that of the selected job");
    press(&mut app, &[Key::Home]);
    assert_eq!(app.selected(Part::Running), 0);
    press(&mut app, &[Key::Character('G')]);
    assert_eq!(app.selected(Part::Running), 2);
}

#[test]
fn q_and_ctrl_c_quit_and_a_name_with_q_can_be_filtered() {
    let (mut app, _size) = full(80, 24);
    assert_eq!(press(&mut app, &[Key::Character('q')]), [Effect::Quit]);
    assert_eq!(press(&mut app, &[Key::Interrupt]), [Effect::Quit]);
    assert_eq!(press(&mut app, &[Key::Character('/'), Key::Character('q')]), []);
    assert_eq!(app.filter, "q");
    assert_eq!(press(&mut app, &[Key::Interrupt]), [Effect::Quit]);
}

#[test]
fn a_filter_leaves_the_rows_that_have_its_text() {
    let (mut app, size) = full(80, 24);
    press(&mut app, &[Key::Character('/')]);
    press(&mut app, &['L', 'o', 'a', 'd', 'x'].map(Key::Character));
    press(&mut app, &[Key::Backspace, Key::Enter]);
    assert_eq!([Part::Queues, Part::Running, Part::Failures].map(|part| app.rows(part).len()), [0, 1, 1]);
    assert!(picture(&app, size).contains("nothing here has `Load`"));
    assert_eq!(app.job_to_follow(), Some(Request::Follow(12)));
    press(&mut app, &[Key::Escape]);
    assert_eq!(app.rows(Part::Running).len(), 3);
}

#[test]
fn a_selected_row_stays_selected_while_the_list_changes() {
    let (mut app, _size) = full(80, 24);
    press(&mut app, &[Key::Down]);
    let mut later = lists();
    later.running.insert(0, job(9, Some(2), "first", 9_000_000));
    app.take(News::Lists(Box::new(later.clone())));
    assert_eq!(app.selected(Part::Running), 2, "it is still job 12");
    later.running.remove(2);
    app.take(News::Lists(Box::new(later.clone())));
    assert_eq!(app.selected(Part::Running), 2, "the row in its place");
    later.running.clear();
    app.take(News::Lists(Box::new(later)));
    assert_eq!(app.selected(Part::Running), 0);
}

#[test]
fn the_output_in_use_is_not_replaced_when_its_job_ends() {
    let (mut app, _size) = full(80, 24);
    press(&mut app, &[Key::Enter]);
    assert_eq!(app.focus, Part::Output);
    let mut later = lists();
    later.running.remove(0);
    app.take(News::Lists(Box::new(later)));
    assert_eq!((app.job_to_follow(), app.output.job()), (None, Some("3/extract")));
    press(&mut app, &[Key::Tab]);
    assert_eq!(app.job_to_follow(), Some(Request::Follow(12)), "another one follows the selection");
}

#[test]
fn enter_on_a_failure_lists_its_runs_and_opens_the_output_of_one() {
    let (mut app, _size) = full(80, 24);
    press(&mut app, &[Key::Character('3')]);
    let name = GroupName::of(&lists().failures.groups[0]);
    let open = Request::Open { name: name.clone(), run_ids: vec![8, 6, 5], job_ids: vec![] };
    assert_eq!(press(&mut app, &[Key::Enter]), [Effect::Ask(open)]);
    let run = |run_id: i64| FailedRun {
        run_id: Some(run_id),
        job_id: run_id * 10,
        job: "load".to_owned(),
        error: String::new(),
    };
    app.take(News::Runs { name, runs: vec![run(8), run(6)] });
    let effects = press(&mut app, &[Key::Down, Key::Down, Key::Enter]);
    assert_eq!(effects, [Effect::Ask(Request::Follow(60))]);
    assert_eq!((app.focus, app.output.job()), (Part::Output, Some("6/load")));
    press(&mut app, &[Key::Character('1')]);
    assert_eq!(app.job_to_follow(), None, "an opened output stays");
    press(&mut app, &[Key::Character('2'), Key::Down]);
    assert_eq!(app.job_to_follow(), Some(Request::Follow(12)), "until a running job is selected");
}

#[test]
fn a_queue_is_paused_after_a_question_only() {
    let (mut app, _size) = full(80, 24);
    assert_eq!(press(&mut app, &[Key::Character('p')]), [], "a running job is selected");
    press(&mut app, &[Key::Character('1')]);
    assert_eq!(press(&mut app, &[Key::Character('p'), Key::Character('n')]), []);
    assert_eq!(press(&mut app, &[Key::Character('y')]), []);
    let paused = [Effect::Ask(Request::Pause("default".to_owned()))];
    assert_eq!(press(&mut app, &[Key::Character('p'), Key::Character('y')]), paused);
    let resumed = [Effect::Ask(Request::Resume("mail".to_owned()))];
    assert_eq!(press(&mut app, &[Key::Down, Key::Character('p'), Key::Character('y')]), resumed);
}

#[test]
fn the_output_is_followed_until_it_is_moved() {
    let (mut app, size) = full(80, 24);
    let more = |from: i64| -> Vec<LogLine> {
        (from..from + 50)
            .map(|number| line(2, number, LogStream::Stdout, &format!("line {number}")))
            .collect()
    };
    let append = |app: &mut App, from: i64| {
        let placement = Placement::AtTheEnd;
        app.take(News::Output { job_id: 11, lines: more(from), placement, is_over: false });
    };
    append(&mut app, 2);
    press(&mut app, &[Key::Character('4')]);
    let headings = app.output.lines().iter().filter(|line| line.text == "attempt 2").count();
    assert_eq!(headings, 1, "each attempt but the first has a heading");
    assert!(picture(&app, size).contains("line 51\n"));
    press(&mut app, &[Key::PageUp]);
    let before = picture(&app, size);
    assert!(!before.contains("line 51\n"), "{before}");
    append(&mut app, 52);
    let in_sight = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with("  line")).map(str::to_owned).collect()
    };
    assert_eq!(in_sight(&picture(&app, size)), in_sight(&before), "it stays where it is");
    press(&mut app, &[Key::Character('G')]);
    assert!(picture(&app, size).contains("line 101\n"));
    append(&mut app, 102);
    assert!(picture(&app, size).contains("line 151\n"), "it is followed again");
    // More lines than are kept, and lines of another job.
    for from in 0..100 {
        append(&mut app, 152 + from * 50);
    }
    assert_eq!(app.output.lines().len(), 2_000);
    app.take(News::Output { job_id: 12, lines: more(1), placement: Placement::InPlaceOfAll, is_over: true });
    assert_eq!(app.output.lines().len(), 2_000);
}
