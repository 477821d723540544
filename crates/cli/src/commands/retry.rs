//! `windlass retry`: reruns the failed jobs of a run, or everything from one job on.

use clap::Args;
use windlass_engine::store::{RetrySelection, Run};
use windlass_views::{RetriedRun, RunView};

use crate::arguments::{GlobalOptions, OutputFormat, RunAddress, ShowOptions, WorkOptions};
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, OutputShape};
use crate::output::Output;
use crate::{executors, find, stderr};

/// Rerun the failed part of a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    /// The run: its number, `latest`, or the name of its workflow
    #[arg(value_name = "RUN")]
    run: RunAddress,

    /// Rerun failed, skipped and cancelled jobs (the default)
    #[arg(long, conflicts_with = "from")]
    failed: bool,

    /// Rerun this job and everything that needs it, successful or not
    #[arg(long, value_name = "JOB")]
    from: Option<String>,

    /// Only prepare the jobs; a worker executes them
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    show: ShowOptions,
    #[command(flatten)]
    work: WorkOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass retry 3                # failed, skipped and cancelled jobs
  windlass retry 3 --from build   # `build` and everything after it
  windlass retry 3 --detach       # let a worker execute them";

/// Makes the jobs ready, and executes them here unless `--detach` is given.
pub(crate) fn execute(global: &GlobalOptions, args: &RetryArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let run = find::named_run(&database, &args.run)?;
    check(global, &run, args)?;
    let selection = match &args.from {
        Some(name) => {
            RetrySelection::From(find::job_by_name(&database, run.id, name)?.name.unwrap_or_default())
        }
        None => RetrySelection::Failed,
    };
    let jobs = match database.ask(|store| store.runs().retry(run.id, selection)) {
        Err(Failure::Conflict { message, .. }) => {
            let inspect = global.hint(&format!("inspect {}", run.id));
            return Err(Failure::Conflict { message, help: format!("`{inspect}` shows its jobs") });
        }
        answer => answer?,
    };
    let retried_jobs = jobs;
    let jobs = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
    if !args.detach {
        stderr::note(&format!("rerunning {jobs} of run {}", run.id));
        return execution::execute(global, &database, &[run.id], &args.work, args.show, OutputShape::One);
    }
    let start = format!("start a worker with `{}`", args.work.hint(global, "worker"));
    stderr::note(&format!(
        "{jobs} of run {} {} ready to run again; {}; `{}` shows the progress",
        run.id,
        if jobs == "1 job" { "is" } else { "are" },
        executors::of_run(&database, run.id, &start)?,
        global.hint(&format!("watch {}", run.id))
    ));
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let run = find::run(&database, run.id)?;
    let run = database.ask(|store| RunView::read(store, &run))?;
    let view = RetriedRun { run, retried_jobs };
    Output { format: global.output }.object(&view, |_| String::new())
}

/// Refuses what the engine would refuse too, with a better next step.
fn check(global: &GlobalOptions, run: &Run, args: &RetryArgs) -> Result<(), Failure> {
    let id = run.id;
    if !run.status.is_terminal() {
        return Err(Failure::Conflict {
            message: format!("run {id} is {}; only a run that has ended can be retried", run.status),
            help: format!(
                "`{}` continues it, `{}` stops it",
                args.work.hint(global, &format!("resume {id}")),
                global.hint(&format!("cancel {id}"))
            ),
        });
    }
    if run.status == windlass_engine::RunStatus::Successful && args.from.is_none() {
        return Err(Failure::Conflict {
            message: format!("run {id} is SUCCESSFUL: nothing in it failed"),
            help: format!(
                "`{}` reruns a job and everything after it",
                args.work.hint(global, &format!("retry {id} --from JOB"))
            ),
        });
    }
    Ok(())
}
