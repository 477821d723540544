//! The journal of the jobs: the program `windlass-probe` appends a line to one shared file when an
//! attempt starts, when it ends, and when it sees a process of another attempt of its job alive.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use crate::tables::Job;

/// The variable that names the file.
pub const JOURNAL_VARIABLE: &str = "PROBE_JOURNAL";

/// The event of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// The process of the attempt began.
    Start,
    /// The process finished its work.
    End,
    /// The process saw a process of another attempt of the same job.
    Overlap,
}

impl Event {
    const ALL: [Event; 3] = [Event::Start, Event::End, Event::Overlap];

    fn as_str(self) -> &'static str {
        match self {
            Event::Start => "start",
            Event::End => "end",
            Event::Overlap => "overlap",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The event.
    pub event: Event,
    /// The name of the job.
    pub job: String,
    /// The attempt that wrote the line.
    pub attempt: i64,
}

/// Appends one line: short and written at once, so that lines of many processes do not mix.
///
/// # Errors
/// When the file cannot be written to.
pub fn append(path: &Path, entry: &Entry) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{} {} {}\n", entry.event.as_str(), entry.job, entry.attempt).as_bytes())
}

/// All lines, in the order they were written.
///
/// # Panics
/// At a line that [`append`] did not write.
#[must_use]
pub fn parse(text: &str) -> Vec<Entry> {
    text.lines()
        .map(|line| parse_line(line).unwrap_or_else(|| panic!("not a line of a journal: {line:?}")))
        .collect()
}

fn parse_line(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let event = words.next()?;
    let event = Event::ALL.into_iter().find(|known| known.as_str() == event)?;
    let job = words.next()?.to_owned();
    let attempt = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Entry { event, job, attempt })
}

/// Compares what the jobs say with what the rows say: every success did its work exactly once in its
/// attempt, nothing ran after a success or beside another attempt of the same job.
#[must_use]
pub fn problems(entries: &[Entry], jobs: &[Job]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut count: BTreeMap<(&str, i64, Event), usize> = BTreeMap::new();
    let mut last_start: BTreeMap<&str, i64> = BTreeMap::new();
    for Entry { event, job, attempt } in entries {
        *count.entry((job, *attempt, *event)).or_default() += 1;
        let last = last_start.get(job.as_str()).copied().unwrap_or(0);
        match event {
            Event::Overlap => problems.push(format!("{job}, attempt {attempt}: another attempt was alive")),
            Event::Start if *attempt <= last => {
                problems.push(format!("{job}: attempt {attempt} started after attempt {last}"));
            }
            Event::Start => {
                last_start.insert(job, *attempt);
            }
            Event::End if *attempt < last => {
                problems.push(format!("{job}: attempt {attempt} worked on after attempt {last} had started"));
            }
            Event::End => {}
        }
    }
    let doubled = count.iter().filter(|(_, times)| **times > 1);
    problems.extend(doubled.map(|((job, attempt, event), times)| {
        format!("{job}, attempt {attempt}: {times} lines of {event:?}, where one is right")
    }));
    problems.extend(jobs.iter().flat_map(|job| job_problems(job, &count, &last_start)));
    let known: BTreeSet<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let strangers = last_start.keys().filter(|job| !known.contains(*job));
    problems.extend(strangers.map(|job| format!("{job} ran, but is no job")));
    problems
}

fn job_problems(
    job: &Job,
    count: &BTreeMap<(&str, i64, Event), usize>,
    last_start: &BTreeMap<&str, i64>,
) -> Option<String> {
    let Job { name, status, attempt, .. } = job;
    if status != "SUCCESSFUL" {
        return Some(format!("{name} is {status}"));
    }
    if !count.contains_key(&(name.as_str(), *attempt, Event::End)) {
        return Some(format!("{name} is SUCCESSFUL by attempt {attempt}, which did not do its work"));
    }
    let last = last_start.get(name.as_str()).copied().unwrap_or(0);
    (last != *attempt)
        .then(|| format!("{name} is SUCCESSFUL by attempt {attempt}, but attempt {last} was started"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs() -> Vec<Job> {
        vec![Job { name: "a".into(), status: "SUCCESSFUL".into(), attempt: 2, ..Job::default() }]
    }

    fn check(text: &str) -> Vec<String> {
        problems(&parse(text), &jobs())
    }

    #[test]
    fn a_killed_and_a_good_attempt_are_fine() {
        assert_eq!(check("start a 1\nstart a 2\nend a 2\n"), Vec::<String>::new());
    }

    #[test]
    fn an_attempt_that_died_between_work_and_record_is_fine() {
        assert_eq!(check("start a 1\nend a 1\nstart a 2\nend a 2\n"), Vec::<String>::new());
    }

    #[test]
    fn every_kind_of_problem_is_found() {
        let cases = [
            ("start a 1\nstart a 2\noverlap a 2\nend a 2\n", "another attempt was alive"),
            ("start a 1\nstart a 2\nend a 1\nend a 2\n", "worked on after"),
            ("start a 2\nstart a 1\nend a 2\n", "started after"),
            ("start a 2\nend a 2\nend a 2\n", "where one is right"),
            ("start a 1\nend a 1\nstart a 2\n", "did not do its work"),
            ("start a 2\nend a 2\nstart a 3\n", "attempt 3 was started"),
            ("start a 2\nend a 2\nstart b 1\n", "is no job"),
        ];
        for (text, expected) in cases {
            let found = check(text);
            assert!(found.iter().any(|problem| problem.contains(expected)), "{text:?} gave {found:?}");
        }
    }

    #[test]
    fn an_unfinished_job_is_found() {
        let job = Job { name: "a".into(), status: "RUNNING".into(), attempt: 1, ..Job::default() };
        assert_eq!(problems(&parse("start a 1\n"), &[job]).len(), 1);
    }
}
