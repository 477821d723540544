//! `windlass run`: submit a workflow file and execute it here until its run ends.

use clap::Args;
use windlass::store::Run;

use super::submit;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, Shape, WorkOptions};
use crate::lookup;
use crate::output;
use crate::submission::SubmissionArgs;

/// Run a workflow here, with live progress, until it ends
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    submission: SubmissionArgs,
    #[command(flatten)]
    work: WorkOptions,

    /// Only accept the run; a worker executes it (the same as `submit`)
    #[arg(long)]
    detach: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass run nightly.toml
  windlass run nightly                                     # a registered workflow, by its name
  windlass run nightly.toml -p day=2026-11-20 -p dry=true
  windlass run nightly.toml --run-key nightly-2026-11-20   # the same key is the same run
  windlass run nightly.toml -o json > outcome.json         # progress stays on the terminal

If it is killed, `windlass resume` carries on where it stopped. The first Ctrl-C lets running
jobs finish, the second stops them.";

/// Submits and executes.
pub(crate) fn execute(global: &GlobalOptions, args: &RunArgs) -> Result<(), Failure> {
    if args.detach {
        return submit::accept(global, &args.submission);
    }
    let new_run = args.submission.read(global)?;
    let workflow = new_run.workflow.name.clone();
    let database = Database::existing_or_new(global)?;
    execution::check_files(&database)?;
    let submitted = database.ask(|store| store.runs().submit(new_run))?;
    let run = lookup::run(&database, submitted.run_id)?;
    if !submitted.created {
        output::note(&known_key(&run, &workflow));
        if run.status.is_terminal() {
            return execution::conclude(global, &database, &[run.id], &args.work, Shape::One);
        }
    }
    execution::execute(global, &database, &[run.id], &args.work, Shape::One)
}

/// What to say when the key named a run that was there.
pub(super) fn known_key(run: &Run, workflow: &str) -> String {
    let mut text = format!("the key names run {}, which was accepted before; no new one is made", run.id);
    if run.workflow != workflow {
        text.push_str(&format!(" (beware: it is a run of `{}`, not of `{workflow}`)", run.workflow));
    }
    text
}
