//! `windlass db prune`: deletes old runs and jobs.

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::{ArgGroup, Args};
use windlass_engine::store::{Prune, Pruned};
use windlass_views::PrunedView;

use crate::arguments::{GlobalOptions, parse_duration};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::time;

/// Delete runs and jobs that ended long ago, with their logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("what").args(["older_than", "keep"]).required(true).multiple(true)))]
pub(crate) struct PruneArgs {
    /// Delete what ended longer ago than this, for example 30d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Option<Duration>,

    /// Keep the newest N finished runs of each workflow, and delete the older ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    keep: Option<i64>,

    /// Do not ask before everything that has ended is deleted
    #[arg(long)]
    yes: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass db prune --older-than 30d
  windlass db prune --keep 1000                     # of each workflow
  windlass db prune --older-than 12h --keep 1000    # either is enough
  windlass db prune --keep 0 --yes                  # all that have ended";

/// Deletes in batches, so that workers never wait long for a lock.
pub(crate) fn execute(global: &GlobalOptions, args: &PruneArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    if args.keep == Some(0) && !args.yes {
        confirm(&database)?;
    }
    let now_ms = time::now_ms();
    let before_ms = args.older_than.map(|age| {
        let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        now_ms.saturating_sub(age_ms)
    });
    let prune = Prune { before_ms, keep_runs: args.keep, ..Prune::default() };
    let mut total = Pruned::default();
    loop {
        // Each batch is a transaction of its own, and is recorded by it.
        let step = database.change(subject(args), |store| store.for_scheduler().prune_step(prune))?;
        if step == Pruned::default() {
            break;
        }
        total.add(step);
    }
    let view = PrunedView { deleted_runs: total.runs, deleted_jobs: total.jobs };
    Output { format: global.output }.object(&view, |_| {
        let (runs, jobs) = (count(total.runs, "run"), count(total.jobs, "job"));
        let what = match (before_ms, args.keep) {
            (Some(before_ms), None) => format!("ended before {}", time::day_and_clock_with_zone(before_ms)),
            (None, Some(keep)) => format!("beyond the newest {keep} of each workflow"),
            (Some(before_ms), Some(keep)) => format!(
                "ended before {} or beyond the newest {keep} of each workflow",
                time::day_and_clock_with_zone(before_ms)
            ),
            (None, None) => "nothing matched".to_owned(),
        };
        format!("deleted {runs} and {jobs} ({what})")
    })
}

/// What is deleted, for the record of changes.
fn subject(args: &PruneArgs) -> String {
    let age = args.older_than.map(|age| format!("older than {}", duration_text(age)));
    let runs = args.keep.map(|keep| format!("beyond the newest {keep} of each workflow"));
    let which: Vec<String> = age.into_iter().chain(runs).collect();
    format!("runs and jobs that are {}", which.join(" or "))
}

fn duration_text(age: Duration) -> String {
    windlass_workflow::duration::to_text(i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// Asks before all runs that have ended are deleted. Only a terminal can answer.
fn confirm(database: &Database) -> Result<(), Failure> {
    let address = database.address();
    let question = format!("--keep 0 deletes every run of {address} that has ended");
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(
            question,
            "add --yes if that is what you want, or keep some with --keep N",
        ));
    }
    stderr::ask(&format!("{question}. Continue? [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    match read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Failure::usage("nothing was deleted", "keep some runs with --keep N")),
    }
}

fn count(number: i64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}
