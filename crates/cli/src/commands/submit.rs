//! `windlass submit`: accepts a run for a worker to execute.

use clap::Args;
use windlass_engine::store::{DefinitionVerb, Run};

use windlass_views::SubmittedView;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::submission::{Submission, SubmissionArgs};
use crate::{executors, find, stderr};

/// Submit a run for a worker to execute, and print its number
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

/// Submits the run and prints its number.
pub(crate) fn execute(global: &GlobalOptions, args: &SubmitArgs) -> Result<(), Failure> {
    submit(global, args.submission.read(global)?, DefinitionVerb::Submit)
}

/// Submits a new run for a worker to execute, and prints its number. `run --detach` does the same.
pub(super) fn submit(
    global: &GlobalOptions,
    submission: Submission,
    verb: DefinitionVerb,
) -> Result<(), Failure> {
    let Submission { run, file } = submission;
    let workflow = run.workflow.name.clone();
    let database = Database::existing_or_new(global)?;
    let file = file.map(|file| (verb, file));
    let submitted =
        database.change(format!("workflow {workflow}"), |store| store.runs().submit_from(run, file))?;
    let run = find::run(&database, submitted.run_id)?;
    let view = SubmittedView::new(submitted, &run.workflow, run.status);
    Output { format: global.output }.object(&view, |_| submitted.run_id.to_string())?;
    let watch = global.hint(&format!("watch {}", run.id));
    if submitted.created {
        let start = format!("start a worker with `{}`", global.hint("worker"));
        let executor = executors::of_run(&database, run.id, &start)?;
        stderr::note(&format!(
            "run {} of workflow `{workflow}` is accepted; {executor}; `{watch}` shows the progress",
            run.id
        ));
    } else {
        stderr::note(&format!("{}; `{watch}` shows its progress", known_key(&run, &workflow)));
    }
    Ok(())
}

/// The message when the run key belongs to an existing run.
pub(super) fn known_key(run: &Run, workflow: &str) -> String {
    let mut text =
        format!("the run key belongs to run {}, which was accepted before; no new run was created", run.id);
    if run.workflow != workflow {
        text.push_str(&format!(" (note: it is a run of workflow `{}`, not of `{workflow}`)", run.workflow));
    }
    text
}
