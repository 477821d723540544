//! The errors of invalid files, as people see them. Each file in `tests/broken` has a snapshot.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use windlass_workflow::{Accepted, Colour, Report, Source, limits, parse_accepting};

fn report(path: &str, text: &str) -> Report {
    report_accepting(path, text, Accepted::Supported)
}

fn report_accepting(path: &str, text: &str, accepted: Accepted) -> Report {
    match Source::new(path, text.into()) {
        Ok(source) => parse_accepting(&source, accepted).expect_err(path),
        Err(report) => report,
    }
}

/// Compares the errors of each file in the folder with its snapshot, which is called as the file with `prefix`.
fn compare_with_snapshots(folder: &str, prefix: &str, accepted: Accepted, files_at_least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.len() >= files_at_least, "{names:?}");
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for name in names {
            let text = std::fs::read_to_string(folder.join(&name)).unwrap();
            let rendered = report_accepting(&name, &text, accepted).to_string();
            insta::assert_snapshot!(format!("{prefix}{}", name.replace('.', "_")), rendered);
        }
    });
}

#[test]
fn the_errors_of_invalid_files_are_as_in_the_snapshots() {
    compare_with_snapshots("tests/broken", "", Accepted::Supported, 15);
}

#[test]
fn the_errors_of_files_with_planned_keys_are_as_in_the_snapshots() {
    compare_with_snapshots("tests/broken_planned", "planned_", Accepted::Everything, 6);
}

#[test]
fn a_report_shows_the_first_errors_and_counts_the_rest() {
    let jobs: String = (0..1_500).map(|job| format!("[jobs.j{job}]\nrum = 'x'\nrun = 'x'\n")).collect();
    let report = report("a.toml", &jobs);
    assert_eq!(report.diagnostics().len(), limits::ERRORS_SHOWN);
    assert_eq!(report.omitted(), 1_500 - limits::ERRORS_SHOWN);
    assert_eq!(report.diagnostics()[0].line, 2);
    assert!(report.to_string().ends_with("a.toml: 1500 errors, of which 1450 more are not shown\n"));
}

#[test]
fn programs_can_read_the_errors() {
    let report = report("dir/a.toml", "[jobs.a]\nruns = 'x'\nrun = 'y'\nneeds = ['ü', 'b']\n");
    assert_eq!(report.path(), "dir/a.toml");
    let positions: Vec<_> = report.diagnostics().iter().map(|error| (error.line, error.column)).collect();
    assert_eq!(positions, [(2, 1), (4, 10), (4, 15)]);
    assert_eq!(report.diagnostics()[0].message, "unknown key `runs` in a job");
}

#[test]
fn a_long_line_is_shortened() {
    let jobs: Vec<String> = (0..20_000).map(|job| format!("\"j{job}\": {{\"rum\": \"x\"}}")).collect();
    let report = report("a.json", &format!("{{\"jobs\": {{{}}}}}", jobs.join(", ")));
    let text = report.to_string();
    assert!(text.len() < 50_000, "{}", text.len());
    assert!(text.lines().all(|line| line.chars().count() < 200));
    // The column is that of the whole line, not that of the shown part.
    let last = report.diagnostics().last().unwrap();
    assert!(last.column > 500);
    assert!(text.contains(&format!("a.json:1:{}", last.column)), "{text}");
}

#[test]
fn only_colour_always_gives_escape_sequences() {
    let report = report("a.toml", "");
    assert!(!report.render(Colour::Never).contains('\u{1b}'));
    assert!(report.render(Colour::Always).contains('\u{1b}'));
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let text = report("a.toml", "[jobs.\"\\u001b[31m\"]\nrun = 'x'\n").to_string();
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = report("a.json", "{\"\u{1b}[31m\": 1}").to_string();
    assert!(!text.contains('\u{1b}'), "{text}");
}
