//! A job for tests: writes down its start and its end, and whether another attempt of it is alive.
//!
//! Usage: `windlass-probe [MILLISECONDS]`, the time that its work takes. Reads the variables that the
//! engine gives to every job, and `PROBE_JOURNAL`, the file it appends to.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, thread};

use windlass_tests::journal::{Entry, Event, JOURNAL_VARIABLE, append};
use windlass_tests::leftovers::{ATTEMPT_VARIABLE, KEY_VARIABLE, marked};
use windlass_tests::sandbox::MARK_VARIABLE;

fn main() -> Result<(), Box<dyn Error>> {
    let work_ms: u64 = env::args().nth(1).unwrap_or_default().parse().unwrap_or(0);
    let journal = PathBuf::from(env::var(JOURNAL_VARIABLE)?);
    let job = env::var("WINDLASS_JOB_NAME")?;
    let own_attempt = env::var(ATTEMPT_VARIABLE)?;
    let attempt: i64 = own_attempt.parse()?;
    let note = |event| append(&journal, &Entry { event, job: job.clone(), attempt });

    note(Event::Start)?;
    let marks = [(MARK_VARIABLE, env::var(MARK_VARIABLE)?), (KEY_VARIABLE, env::var(KEY_VARIABLE)?)];
    let marks: Vec<(&str, &str)> = marks.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let others = marked(&marks);
    if others.iter().any(|process| process.attempt.as_deref() != Some(own_attempt.as_str())) {
        eprintln!("alive at the start of attempt {attempt}: {others:?}");
        note(Event::Overlap)?;
    }
    thread::sleep(Duration::from_millis(work_ms));
    note(Event::End)?;
    Ok(())
}
