//! Random workflow files that use every construct of the language, each with a case. Two things must hold of each: an engine
//! that is ended after one of its commits is carried on by another one to the same end, and the end does not depend on how
//! long jobs take.
//!
//! The fixed seeds are the same each time. One more test takes a new seed and prints it. `WINDLASS_SEED=7` repeats a seed, and
//! `WINDLASS_RANDOM_FILES=1000` sets the number of new seeds.
#![allow(clippy::unwrap_used, clippy::panic)]

mod constructs;
mod draw;
mod fakes;
mod handlers;
mod held;
mod items;
mod jobs;
mod processes;
mod requests;
mod waits;
mod workflows;

use std::collections::BTreeSet;

use serde_json::Value as Json;
use windlass_testing::{Case, Observed, Subject, crash_after, file, run};
use windlass_workflow::{Source, Workflow};

use draw::Drawn;
use fakes::Durations;

const FIXED_SEEDS: u64 = 24;
/// Of these, how many are ended after their commits.
const CRASHED_SEEDS: u64 = 12;
/// About how many commits all runs of a file make in which the engine is ended, and how many such runs there are at least.
const COMMITS_MADE: u64 = 3_000;
const TRIED_LEAST: u64 = 8;
/// How often the same file runs with other durations.
const OTHER_DURATIONS: u64 = 4;

#[test]
fn random_files_are_carried_on_after_their_commits() {
    (0..CRASHED_SEEDS).for_each(carry_on);
}

#[test]
fn the_end_of_a_random_file_does_not_depend_on_how_long_its_jobs_take() {
    (0..FIXED_SEEDS).for_each(end_with_other_durations);
}

#[test]
fn a_random_file_with_a_new_seed_ends_as_it_must() {
    let seeds = number_from("WINDLASS_RANDOM_FILES").unwrap_or(1);
    let both = |seed: u64| {
        carry_on(seed);
        end_with_other_durations(seed);
    };
    match number_from("WINDLASS_SEED") {
        Some(seed) => both(seed),
        None => (0..seeds).for_each(|_seed| both(fastrand::u64(..))),
    }
}

/// The fixed seeds are worth something only as long as they draw what they are said to.
#[test]
fn the_fixed_seeds_draw_every_construct() {
    let drawn: BTreeSet<&str> = (0..FIXED_SEEDS).flat_map(|seed| Drawn::from_seed(seed).constructs).collect();
    let missing: Vec<&&str> =
        constructs::CONSTRUCTS.iter().filter(|construct| !drawn.contains(**construct)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
    let unknown: Vec<&&str> =
        drawn.iter().filter(|construct| !constructs::CONSTRUCTS.contains(construct)).collect();
    assert_eq!(unknown, Vec::<&&str>::new());
}

fn carry_on(seed: u64) {
    println!("WINDLASS_SEED={seed}");
    let drawn = Drawn::from_seed(seed);
    let workflow = drawn.workflow();
    let case = drawn.case(&workflow, Durations::Drawn(seed));
    let undisturbed = undisturbed(&drawn, &workflow, &case);
    let subject = Subject { workflow: &workflow, folder: None };
    let crashes = crash_after(subject, &case, &undisturbed, tried(undisturbed.commits, seed)).unwrap();
    assert_eq!(crashes.differences, [], "{drawn}");
}

/// The commits after which the engine is ended: all of them, or some, evenly, of a long run. The time for all would grow with the
/// square of their number.
fn tried(commits: u64, seed: u64) -> impl Iterator<Item = u64> {
    let most = (COMMITS_MADE / commits.max(1)).max(TRIED_LEAST);
    let step = commits.div_ceil(most).max(1);
    (1 + seed % step..=commits).step_by(usize::try_from(step).unwrap())
}

fn end_with_other_durations(seed: u64) {
    println!("WINDLASS_SEED={seed}");
    let drawn = Drawn::from_seed(seed);
    let workflow = drawn.workflow();
    let first = ends(&undisturbed(&drawn, &workflow, &drawn.case(&workflow, Durations::Equal)));
    for other in 1..=OTHER_DURATIONS {
        let case = drawn.case(&workflow, Durations::Drawn(seed ^ (other << 32)));
        assert_eq!(ends(&undisturbed(&drawn, &workflow, &case)), first, "{drawn}");
    }
}

fn undisturbed(drawn: &Drawn, workflow: &Workflow, case: &Case) -> Observed {
    let observed = run(Subject { workflow, folder: None }, case).unwrap();
    assert_eq!(observed.stuck, [], "{drawn}");
    assert!(observed.without_fake.is_empty(), "{:?} {drawn}", observed.without_fake);
    observed
}

/// What must not depend on durations: everything but instants and the numbers of child runs.
fn ends(observed: &Observed) -> Vec<String> {
    let without_number = |error: &String| match error.strip_prefix("run ") {
        Some(rest) => rest.trim_start_matches(|letter: char| letter.is_ascii_digit()).to_owned(),
        // A job is skipped as soon as one of the jobs that it needs is broken, and that one is named.
        None if error.starts_with("skipped: `") => "skipped".to_owned(),
        None => error.clone(),
    };
    let jobs = observed.jobs.iter().map(|(name, job)| {
        let output = job.output.as_ref().map(lasting);
        format!(
            "{name}: {} after {} attempts, {output:?}, {:?}",
            job.status,
            job.attempts,
            job.error.as_ref().map(without_number)
        )
    });
    let run = format!("the run: {}, {:?}, {:?}", observed.status, observed.outputs, observed.variables);
    jobs.chain([run]).collect()
}

/// An output without its instants, and without the path of a saved file: it is in the folder of the run, whose name is a number.
fn lasting(output: &Json) -> Json {
    match output {
        Json::Array(items) => items.iter().map(lasting).collect(),
        Json::Object(fields) => {
            let lasts = |key: &str| !["at", "received_at", "file"].contains(&key);
            let fields = fields.iter().filter(|(key, _value)| lasts(key));
            fields.map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => output.clone(),
    }
}

impl Drawn {
    fn workflow(&self) -> Workflow {
        let source = Source::new("w.json", self.workflow.to_string().into()).unwrap();
        windlass_workflow::parse(&source).unwrap_or_else(|report| panic!("{report}\n{self}"))
    }

    /// The case with these durations.
    fn case(&self, workflow: &Workflow, durations: Durations) -> Case {
        let text = self.case_text(durations).to_string();
        let source = Source::new("w.test.json", text.into()).unwrap();
        let mut read = file::read(&source, workflow).unwrap_or_else(|report| panic!("{report}\n{self}"));
        read.cases.remove(0)
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} must be a whole number, not {text:?}")))
}
