//! `windlass resume`: continues unfinished runs.

use clap::Args;
use windlass_views::InspectedRun;

use crate::arguments::{GlobalOptions, RunAddress, ShowOptions, WorkOptions};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, OutputShape};
use crate::output::Output;
use crate::{find, stderr};

/// Continue unfinished runs here, all of them or one, until they end
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ResumeArgs {
    /// The run to continue; without it, all unfinished runs
    #[arg(value_name = "RUN", add = complete::run())]
    run: Option<RunAddress>,
    #[command(flatten)]
    show: ShowOptions,
    #[command(flatten)]
    work: WorkOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass resume      # after a crash or Ctrl-C: all unfinished runs
  windlass resume 3    # only run 3

Finished jobs are not repeated. A job whose worker died is executed again,
unless its `on_interrupt` is \"fail\".";

/// Continues one run, or all unfinished runs.
pub(crate) fn execute(global: &GlobalOptions, args: &ResumeArgs) -> Result<(), Failure> {
    // Does not rescue the jobs of dead workers yet: that happens while the runs are executed. A rescue can end a
    // run (`on_interrupt = "fail"`), and this must be reported as the outcome of the run.
    let database = Database::existing_without_rescue(global)?;
    match &args.run {
        Some(address) => one(global, &database, find::named_run(&database, address)?.id, args),
        None => all(global, &database, args),
    }
}

fn one(global: &GlobalOptions, database: &Database, run_id: i64, args: &ResumeArgs) -> Result<(), Failure> {
    let run = find::run(database, run_id)?;
    // Workers take a run together with the runs that its jobs have started.
    if let Some(root_run_id) = run.root_run_id {
        stderr::note(&format!(
            "a job of run {root_run_id} has started run {run_id}; resuming run {root_run_id}"
        ));
        return one(global, database, root_run_id, args);
    }
    if run.status.is_terminal() {
        stderr::note(&format!("run {run_id} has already ended; there is nothing to resume"));
        return execution::conclude(global, database, &[run_id], &args.work, OutputShape::One);
    }
    execution::execute(global, database, &[run_id], &args.work, args.show, OutputShape::One)
}

fn all(global: &GlobalOptions, database: &Database, args: &ResumeArgs) -> Result<(), Failure> {
    let run_ids = database.ask(|store| store.runs().unfinished())?;
    if run_ids.is_empty() {
        stderr::note("all runs have ended; there is nothing to resume");
        let none: [InspectedRun; 0] = [];
        return Output { format: global.output }.list(&none, |_| String::new());
    }
    execution::execute(global, database, &run_ids, &args.work, args.show, OutputShape::Many)
}
