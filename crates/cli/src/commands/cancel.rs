//! `windlass cancel`: stop a run or a job.

use clap::Args;
use windlass::store::{Cancellation, Job, Run};

use crate::address::Address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::lookup::{self, Target};
use crate::output::{self, Format, Output};
use crate::views::{JobView, RunView};

/// Stop a run or a job; waiting jobs of it never start
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    /// A run (3), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB")]
    address: Address,
}

const EXAMPLES: &str = "\
Examples:
  windlass cancel 3            # the whole run
  windlass cancel 3/build      # one job; what needs it is skipped
  windlass cancel j42

Running processes get SIGTERM, and SIGKILL if they do not end in time.";

/// Stops it. What is over or stopping already is no failure: the wish is fulfilled.
pub(crate) fn execute(global: &GlobalOptions, args: &CancelArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    match lookup::run_or_job(&database, &args.address)? {
        Target::Run(run) => cancel_run(global, &database, &run),
        Target::Job(job) => cancel_job(global, &database, &job),
    }
}

fn cancel_run(global: &GlobalOptions, database: &Database, run: &Run) -> Result<(), Failure> {
    let id = run.id;
    if run.status.is_terminal() {
        output::note(&format!("run {id} is {} already; there is nothing to cancel", run.status));
    } else if run.stop_reason.is_some() {
        output::note(&format!("run {id} is being stopped already"));
    } else {
        let done = database.ask(|store| store.runs().cancel(id))?;
        output::note(&words(&format!("run {id}"), done, &global.hint(&format!("watch {id}"))));
    }
    if global.output == Format::Text {
        return Ok(());
    }
    let view = RunView::read(database, &lookup::run(database, id)?)?;
    Output { format: global.output }.object(&view, |_| String::new())
}

fn cancel_job(global: &GlobalOptions, database: &Database, job: &Job) -> Result<(), Failure> {
    let name = format!("job {}", job.label());
    if job.status.is_terminal() {
        output::note(&format!("{name} is {} already; there is nothing to cancel", job.status));
    } else if job.cancel_requested_at.is_some() {
        output::note(&format!("{name} is being stopped already"));
    } else {
        let done = database.ask(|store| store.jobs().cancel(job.id))?;
        output::note(&words(&name, done, &global.hint(&format!("inspect j{}", job.id))));
    }
    if global.output == Format::Text {
        return Ok(());
    }
    let view = JobView::read(database, &database.ask(|store| store.jobs().get(job.id))?)?;
    Output { format: global.output }.object(&view, |_| String::new())
}

fn words(name: &str, done: Cancellation, next: &str) -> String {
    match done.stopping {
        0 => format!("{name} is cancelled"),
        1 => format!("{name} is being cancelled: one job runs and was asked to stop; `{next}` shows it"),
        stopping => {
            format!(
                "{name} is being cancelled: {stopping} jobs run and were asked to stop; `{next}` shows it"
            )
        }
    }
}
