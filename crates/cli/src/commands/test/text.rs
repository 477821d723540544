//! A tested case for people: one line, and below it what is not as expected.

use windlass_views::{CrashesView, DifferenceView, TestedCase};

use crate::text::style::{BOLD, DIM, GREEN, RED, YELLOW, headline, paint};
use crate::text::table::stdout_width;
use crate::text::time::duration;
use crate::text::values::counted;

/// The width of a line if it goes to no terminal.
const COLUMNS: usize = 400;
/// The most jobs of a list.
const JOBS_SHOWN: usize = 20;

/// The lines of a case.
pub(super) fn case(tested: &TestedCase) -> String {
    let columns = stdout_width().unwrap_or(COLUMNS);
    let word = if tested.passed { paint(GREEN, "ok  ") } else { paint(RED, "FAIL") };
    let took = tested.duration_ms.map(|ms| paint(DIM, format!(" ({})", duration(ms)))).unwrap_or_default();
    let name = headline(&format!("{}: {}", tested.file, tested.case), columns.saturating_sub(22).max(20));
    let mut lines = vec![format!("{word}  {}{took}", paint(BOLD, name))];
    let mut line = |indent: usize, text: &str| {
        lines.push(format!("{:indent$}{}", "", headline(text, columns.saturating_sub(indent).max(20))));
    };
    if let Some(error) = &tested.error {
        line(6, error);
    }
    for difference in &tested.differences {
        line(6, &what(difference));
        if let Some(error) = &difference.error {
            line(8, error);
        }
    }
    if let Some(crashes) = &tested.crashes {
        lines.extend(crash_lines(crashes, columns));
    }
    lines.join("\n")
}

fn what(difference: &DifferenceView) -> String {
    let DifferenceView { job, aspect, expected, actual, .. } = difference;
    let of = job.as_ref().map_or("run".to_owned(), |job| format!("job {job}"));
    format!("{of}, {aspect}: expected {expected}, found {actual}")
}

fn crash_lines(crashes: &CrashesView, columns: usize) -> Vec<String> {
    let cut = |indent: usize, text: &str| {
        format!("{:indent$}{}", "", headline(text, columns.saturating_sub(indent).max(20)))
    };
    let mut lines = Vec::new();
    let tried = counted(crashes.tried as i64, "commit", "commits");
    let of_all = match crashes.tried < crashes.commits {
        true => format!(" of {} (at most that many are tried)", crashes.commits),
        false => String::new(),
    };
    lines.push(cut(6, &format!("ended after each of {tried}{of_all}")));
    for difference in &crashes.differences {
        let of = difference.job.as_ref().map_or("run".to_owned(), |job| format!("job {job}"));
        let times = match difference.times {
            1 => format!("after commit {}", difference.after_commit),
            times => format!("after {times} commits, first {}", difference.after_commit),
        };
        let text = format!(
            "{of}, {}: {} instead of {}, {times}",
            difference.aspect, difference.disturbed, difference.undisturbed
        );
        lines.push(paint(RED, cut(6, &text)));
        lines.extend(difference.error.as_ref().map(|error| cut(8, error)));
    }
    let repeated = |safe: bool| -> Vec<&str> {
        crashes.repeated.iter().filter(|job| job.safe == safe).map(|job| job.job.as_str()).collect()
    };
    if let Some(jobs) = listed(&repeated(false)) {
        lines.push(paint(YELLOW, cut(6, &format!("began again, safe only if the job is: {jobs}"))));
    }
    if let Some(jobs) = listed(&repeated(true)) {
        lines.push(cut(6, &format!("began again, safe to repeat: {jobs}")));
    }
    let left: Vec<&str> = crashes.left_to_a_person.iter().map(String::as_str).collect();
    if let Some(jobs) = listed(&left) {
        lines.push(cut(6, &format!("not repeated, a person decides: {jobs}")));
    }
    lines
}

fn listed(jobs: &[&str]) -> Option<String> {
    let more = if jobs.len() > JOBS_SHOWN { ", …" } else { "" };
    let shown: Vec<&str> = jobs.iter().take(JOBS_SHOWN).copied().collect();
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join(", ")))
}
