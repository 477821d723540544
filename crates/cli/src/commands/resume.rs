//! `windlass resume`: carry on runs that are not finished.

use clap::Args;

use crate::address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, Shape, WorkOptions};
use crate::lookup;
use crate::output::{self, Output};
use crate::views::InspectedRun;

/// Continue unfinished runs here, all of them or one, until they end
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The run to continue; without it, all unfinished runs
    #[arg(value_name = "RUN", value_parser = address::parse_run_id)]
    run: Option<i64>,
    #[command(flatten)]
    work: WorkOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass resume      # after a crash or Ctrl-C: everything that is unfinished
  windlass resume 3    # only run 3

Jobs that are done stay done. A job whose worker died is executed again, unless its
`on_interrupt` is \"fail\".";

/// Carries on.
pub(crate) fn execute(global: &GlobalOptions, args: &ResumeArgs) -> Result<(), Failure> {
    // What dead workers left is taken back while the runs are watched: a job that may not run twice
    // ends its run by that, and this must be told as the outcome, not as "nothing to do".
    let database = Database::as_it_is(global)?;
    match args.run {
        Some(run_id) => one(global, &database, run_id, &args.work),
        None => all(global, &database, &args.work),
    }
}

fn one(global: &GlobalOptions, database: &Database, run_id: i64, work: &WorkOptions) -> Result<(), Failure> {
    let run = lookup::run(database, run_id)?;
    if run.status.is_terminal() {
        output::note(&format!("run {run_id} is over already; there is nothing to carry on"));
        return execution::conclude(global, database, &[run_id], work, Shape::One);
    }
    execution::execute(global, database, &[run_id], work, Shape::One)
}

fn all(global: &GlobalOptions, database: &Database, work: &WorkOptions) -> Result<(), Failure> {
    let run_ids = database.ask(|store| store.runs().unfinished())?;
    if run_ids.is_empty() {
        output::note("every run is over; there is nothing to carry on");
        let none: [InspectedRun; 0] = [];
        return Output { format: global.output }.list(&none, |_| String::new());
    }
    execution::execute(global, database, &run_ids, work, Shape::Many)
}
