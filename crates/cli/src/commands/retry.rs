//! `windlass retry`: execute again what failed, or everything from one job on.

use clap::Args;
use windlass::store::{Run, Selection};

use crate::address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, Shape, WorkOptions};
use crate::lookup;
use crate::output::{self, Format, Output};
use crate::views::RunView;

/// Rerun the failed part of a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    /// The run
    #[arg(value_name = "RUN", value_parser = address::parse_run_id)]
    run: i64,

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
    work: WorkOptions,
}

const EXAMPLES: &str = "\
Examples:
  windlass retry 3                # what did not succeed
  windlass retry 3 --from build   # `build` and everything after it
  windlass retry 3 --detach       # for a worker";

/// Makes the jobs ready, and executes them here unless it is to be done by a worker.
pub(crate) fn execute(global: &GlobalOptions, args: &RetryArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let run = lookup::run(&database, args.run)?;
    check(global, &run, args)?;
    let selection = match &args.from {
        Some(name) => Selection::From(lookup::job_by_name(&database, run.id, name)?.name.unwrap_or_default()),
        None => Selection::Failed,
    };
    let jobs = match database.ask(|store| store.runs().retry(run.id, selection)) {
        Err(Failure::Conflict { message, .. }) => {
            let inspect = global.hint(&format!("inspect {}", run.id));
            return Err(Failure::Conflict { message, help: format!("`{inspect}` shows how its jobs stand") });
        }
        answer => answer?,
    };
    let jobs = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
    if !args.detach {
        output::note(&format!("executing {jobs} of run {} again", run.id));
        return execution::execute(global, &database, &[run.id], &args.work, Shape::One);
    }
    output::note(&format!(
        "{jobs} of run {} will be executed again; `{}` executes them, `{}` shows them",
        run.id,
        args.work.hint(global, "worker"),
        global.hint(&format!("watch {}", run.id))
    ));
    if global.output == Format::Text {
        return Ok(());
    }
    let view = RunView::read(&database, &lookup::run(&database, run.id)?)?;
    Output { format: global.output }.object(&view, |_| String::new())
}

/// What the engine would refuse, with the step that fits.
fn check(global: &GlobalOptions, run: &Run, args: &RetryArgs) -> Result<(), Failure> {
    let id = run.id;
    if !run.status.is_terminal() {
        return Err(Failure::Conflict {
            message: format!("run {id} is {}, not over: only what is over can be retried", run.status),
            help: format!(
                "`{}` carries it on, `{}` stops it first",
                args.work.hint(global, &format!("resume {id}")),
                global.hint(&format!("cancel {id}"))
            ),
        });
    }
    if run.status == windlass::RunStatus::Successful && args.from.is_none() {
        return Err(Failure::Conflict {
            message: format!("run {id} is SUCCESSFUL: nothing in it failed"),
            help: format!(
                "`{}` executes a job and everything after it again",
                args.work.hint(global, &format!("retry {id} --from JOB"))
            ),
        });
    }
    Ok(())
}
