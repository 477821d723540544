//! `windlass cancel`: stops a run or a job.

use clap::Args;
use windlass_engine::store::{Cancellation, Job, Run, Subject};
use windlass_views::{CancelledJob, CancelledRun, JobView, RunView};

use crate::arguments::{GlobalOptions, OutputFormat, RunOrJob};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::Output;
use crate::stderr;

/// Stop a run or a job; jobs that wait never start
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CancelArgs {
    /// A run (3, latest, nightly), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job())]
    address: RunOrJob,
}

const EXAMPLES: &str = "\
Examples:
  windlass cancel 3            # the whole run
  windlass cancel 3/build      # one job; jobs that need it are skipped
  windlass cancel j42

Running processes get SIGTERM, and later SIGKILL if they do not end.";

/// A cancellation of what has ended or is stopping.
const NOTHING: Cancellation = Cancellation { cancelled: 0, stopping: 0 };

/// Requests the stop. A run or job that has ended or is stopping is no failure.
pub(crate) fn execute(global: &GlobalOptions, args: &CancelArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    match find::run_or_job(&database, &args.address)? {
        FoundRunOrJob::Run(run) => cancel_run(global, &database, &run),
        FoundRunOrJob::Job(job) => cancel_job(global, &database, &job),
    }
}

fn cancel_run(global: &GlobalOptions, database: &Database, run: &Run) -> Result<(), Failure> {
    let (id, mut done) = (run.id, None);
    if run.status.is_terminal() {
        stderr::note(&format!("run {id} is already {}; there is nothing to cancel", run.status));
    } else if run.stop_reason.is_some() {
        stderr::note(&format!("run {id} is already stopping"));
    } else {
        let cancellation = database.change(Subject::Run(id), |store| store.runs().cancel(id))?;
        stderr::note(&message(&format!("run {id}"), cancellation, &global.hint(&format!("watch {id}"))));
        done = Some(cancellation);
    }
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let run = find::run(database, id)?;
    let run = database.ask(|store| RunView::read(store, &run))?;
    let Cancellation { cancelled, stopping } = done.unwrap_or(NOTHING);
    let view =
        CancelledRun { run, changed: done.is_some(), cancelled_jobs: cancelled, stopping_jobs: stopping };
    Output { format: global.output }.object(&view, |_| String::new())
}

fn cancel_job(global: &GlobalOptions, database: &Database, job: &Job) -> Result<(), Failure> {
    let name = format!("job {}", job.label());
    let mut done = None;
    if job.status.is_terminal() {
        stderr::note(&format!("{name} is already {}; there is nothing to cancel", job.status));
    } else if job.cancel_requested_at.is_some() {
        stderr::note(&format!("{name} is already stopping"));
    } else {
        let cancellation = database.change(Subject::Job(job.id), |store| store.jobs().cancel(job.id))?;
        stderr::note(&message(&name, cancellation, &global.hint(&format!("inspect j{}", job.id))));
        done = Some(cancellation);
    }
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let job = database.ask(|store| JobView::read(store, &store.jobs().get(job.id)?))?;
    let Cancellation { cancelled, stopping } = done.unwrap_or(NOTHING);
    let view =
        CancelledJob { job, changed: done.is_some(), cancelled_jobs: cancelled, stopping_jobs: stopping };
    Output { format: global.output }.object(&view, |_| String::new())
}

fn message(name: &str, done: Cancellation, next: &str) -> String {
    match done.stopping {
        0 => format!("{name} is cancelled"),
        1 => format!("{name} is being cancelled: 1 running job is stopping; `{next}` shows it"),
        stopping => {
            format!("{name} is being cancelled: {stopping} running jobs are stopping; `{next}` shows them")
        }
    }
}
