//! `windlass run`: submits a workflow and executes it here until its run ends.

use clap::Args;

use windlass_engine::store::DefinitionVerb;

use super::{plan, submit};
use crate::arguments::{GlobalOptions, ShowOptions, WorkOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, OutputShape};
use crate::submission::{Submission, SubmissionArgs};
use crate::{find, stderr};

/// Run a workflow here, with live progress, until it ends
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    submission: SubmissionArgs,
    #[command(flatten)]
    show: ShowOptions,
    #[command(flatten)]
    work: WorkOptions,

    /// Only submit the run and let a worker execute it, as `submit` does
    #[arg(long)]
    detach: bool,

    /// Only show what the run would do, as `plan` does
    #[arg(long, conflicts_with = "detach")]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass run nightly.toml
  windlass run nightly                           # a registered workflow
  windlass run nightly.toml -p day=2026-11-20 -p dry=true
  windlass run nightly.toml --only load,report   # two jobs, without the others
  windlass run nightly.toml --dry-run            # what it would do
  windlass run nightly.toml --run-key 2026-11-20 # repeat: no second run
  windlass run nightly.toml -o json > outcome.json

If the command is killed, `windlass resume` continues the run. The first
Ctrl-C waits for running jobs, the second stops them.";

/// Submits and executes.
pub(crate) fn execute(global: &GlobalOptions, args: &RunArgs) -> Result<(), Failure> {
    if args.detach {
        return submit::submit(global, args.submission.read(global)?, DefinitionVerb::Run);
    }
    let Submission { run: new_run, file } = args.submission.read(global)?;
    if args.dry_run {
        return plan::show(global, &new_run);
    }
    let workflow = new_run.workflow.name.clone();
    let database = Database::existing_or_new(global)?;
    execution::check_files(&database)?;
    let file = file.map(|file| (DefinitionVerb::Run, file));
    let submitted =
        database.change(format!("workflow {workflow}"), |store| store.runs().submit_from(new_run, file))?;
    let run = find::run(&database, submitted.run_id)?;
    if !submitted.created {
        stderr::note(&submit::known_key(&run, &workflow));
        if run.status.is_terminal() {
            return execution::conclude(global, &database, &[run.id], &args.work, OutputShape::One);
        }
    }
    execution::execute(global, &database, &[run.id], &args.work, args.show, OutputShape::One)
}
