//! `windlass submit`: accept a run for a worker to execute.

use clap::Args;

use super::run::known_key;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::lookup;
use crate::output::{self, Output};
use crate::submission::SubmissionArgs;
use crate::views::SubmittedView;

/// Accept a run for a worker to execute, and print its number
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    submission: SubmissionArgs,
}

const EXAMPLES: &str = "\
Examples:
  windlass submit nightly.toml -p day=2026-11-20
  run=$(windlass submit nightly.toml) && windlass watch \"$run\"";

/// Accepts the run and prints its number.
pub(crate) fn execute(global: &GlobalOptions, args: &SubmitArgs) -> Result<(), Failure> {
    accept(global, &args.submission)
}

/// Accepts a run for somebody else to execute; `run --detach` is the same.
pub(super) fn accept(global: &GlobalOptions, submission: &SubmissionArgs) -> Result<(), Failure> {
    let new_run = submission.read(global)?;
    let workflow = new_run.workflow.name.clone();
    let database = Database::existing_or_new(global)?;
    let submitted = database.ask(|store| store.runs().submit(new_run))?;
    let run = lookup::run(&database, submitted.run_id)?;
    let view = SubmittedView::new(submitted, &run.workflow, run.status);
    Output { format: global.output }.object(&view, |_| submitted.run_id.to_string())?;
    let watch = global.hint(&format!("watch {}", run.id));
    if submitted.created {
        let (run_id, worker) = (run.id, global.hint("worker"));
        output::note(&format!(
            "run {run_id} of workflow `{workflow}` is accepted; `{worker}` executes it, `{watch}` shows it"
        ));
    } else {
        output::note(&format!("{}; `{watch}` shows it", known_key(&run, &workflow)));
    }
    Ok(())
}
