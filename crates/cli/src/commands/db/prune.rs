//! `windlass db prune`: delete what ended long ago.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use windlass::store::Pruned;

use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::time;

/// Delete runs and jobs that ended long ago, with their logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PruneArgs {
    /// How long ago they must have ended, for example 30d
    #[arg(long, value_name = "DURATION", value_parser = time::parse_duration)]
    older_than: Duration,
}

const EXAMPLES: &str = "\
Examples:
  windlass db prune --older-than 30d
  windlass db prune --older-than 12h";

/// Deletes batch by batch, so that others are never kept waiting for long.
pub(crate) fn execute(global: &GlobalOptions, args: &PruneArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let age_ms = i64::try_from(args.older_than.as_millis()).unwrap_or(i64::MAX);
    let before_ms = time::now_ms().saturating_sub(age_ms);
    let mut total = Pruned::default();
    loop {
        let step = database.ask(|store| store.prune_step(before_ms))?;
        if step == Pruned::default() {
            break;
        }
        total.jobs += step.jobs;
        total.runs += step.runs;
    }
    let view = json!({ "runs": total.runs, "jobs": total.jobs });
    Output { format: global.output }.object(&view, |_| {
        let before = time::day_and_clock(before_ms);
        format!("deleted {} and {}, over before {before}", count(total.runs, "run"), count(total.jobs, "job"))
    })
}

fn count(number: i64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}
