//! `windlass retry`: reruns the failed jobs of a run, or everything from one job on, with the definition that it has or with
//! another one.

mod jobs;
mod next;
mod preview;

use std::path::PathBuf;

use clap::Args;
use windlass_engine::store::{RetrySelection, Run, Subject};
use windlass_views::{RetriedRun, RunView};

use next::Candidate;

use crate::arguments::{DeadLetterArgs, GlobalOptions, OutputFormat, RunOrJob, ShowOptions, WorkOptions};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::execution::{self, OutputShape};
use crate::find::FoundRunOrJob;
use crate::output::Output;
use crate::submission::{StandardInputArgs, is_standard_input};
use crate::text::values::counted;
use crate::{executors, find, stderr};

/// Rerun the failed part of a run, or jobs that failed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RetryArgs {
    /// A run: its number, `latest`, or the name of its workflow. Or a job that belongs to no run: its id (j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job(), required_unless_present_any = ["status", "kind", "queue", "error"])]
    address: Option<RunOrJob>,

    /// Rerun failed, skipped and cancelled jobs (the default)
    #[arg(long, conflicts_with = "from")]
    failed: bool,

    /// Rerun this job and everything that needs it, successful or not
    #[arg(long, value_name = "JOB", add = complete::job_of_run("address"))]
    from: Option<String>,

    /// Continue with the file as it is now. Jobs that changed and all jobs after them run too
    #[arg(long, conflicts_with = "with")]
    latest: bool,

    /// Continue with the definition in this file, or on standard input
    #[arg(long, value_name = "FILE|-", add = complete::workflow_file())]
    with: Option<PathBuf>,

    #[command(flatten)]
    standard_input: StandardInputArgs,

    /// Only show which jobs would run again, and why
    #[arg(long, conflicts_with = "detach")]
    dry_run: bool,

    /// Only prepare the jobs; a worker executes them
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    dead_letters: DeadLetterArgs,
    #[command(flatten)]
    show: ShowOptions,
    #[command(flatten)]
    work: WorkOptions,
}

impl RetryArgs {
    /// Whether there can be something to run in a run that has succeeded.
    fn names_what_to_run(&self) -> bool {
        self.from.is_some() || self.latest || self.with.is_some()
    }

    /// The definition with which the run goes on, if it is another one.
    fn candidate(
        &self,
        global: &GlobalOptions,
        database: &Database,
        run: &Run,
    ) -> Result<Option<Candidate>, Failure> {
        if !self.with.as_deref().is_some_and(is_standard_input) {
            self.standard_input.refuse()?;
        }
        match &self.with {
            Some(path) => Candidate::named(path, &self.standard_input).map(Some),
            None if self.latest => Candidate::latest(global, database, run).map(Some),
            None => Ok(None),
        }
    }

    fn selection(
        &self,
        database: &Database,
        run: &Run,
        candidate: Option<&Candidate>,
    ) -> Result<RetrySelection, Failure> {
        Ok(match &self.from {
            // The job may be new.
            Some(name) if candidate.is_some() => RetrySelection::From(name.clone()),
            Some(name) => {
                RetrySelection::From(find::job_by_name(database, run.id, name)?.name.unwrap_or_default())
            }
            None => RetrySelection::Failed,
        })
    }
}

const EXAMPLES: &str = "\
Examples:
  windlass retry 3                # failed, skipped and cancelled jobs
  windlass retry 3 --from build   # `build` and everything after it
  windlass retry 3 --latest       # with the file as it is now
  windlass retry 3 --latest --dry-run   # which jobs would run, and why
  windlass retry 3 --detach       # let a worker execute them
  windlass retry j42              # a job that belongs to no run
  windlass retry --status failed --kind email --error timeout

A run keeps the definition with which it was submitted. With --latest or
--with, jobs that have not succeeded run as the new definition says, and so do
jobs that do something else now, with all jobs after them. Other jobs keep
what they did. `windlass inspect` lists the definitions of a run.

Jobs that belong to no run are executed by a worker. Of all jobs that match,
only the number is shown; --yes retries them.";

/// Retries a run, or jobs that belong to no run.
pub(crate) fn execute(global: &GlobalOptions, args: &RetryArgs) -> Result<(), Failure> {
    let Some(address) = &args.address else { return jobs::retry_all(global, &args.dead_letters) };
    let database = Database::existing(global)?;
    match find::run_or_job(&database, address)? {
        FoundRunOrJob::Run(run) => retry_run(global, &database, &run, args),
        FoundRunOrJob::Job(job) => jobs::retry_one(global, &database, &job),
    }
}

/// Makes the jobs ready, and executes them here unless `--detach` is given.
fn retry_run(
    global: &GlobalOptions,
    database: &Database,
    run: &Run,
    args: &RetryArgs,
) -> Result<(), Failure> {
    check(global, database, run, args)?;
    if args.dry_run {
        return preview::show(global, database, run, args);
    }
    let retried_jobs = reset(global, database, run, args)?;
    let jobs = counted(retried_jobs, "job", "jobs");
    if !args.detach {
        stderr::note(&format!("rerunning {jobs} of run {}", run.id));
        return execution::execute(global, database, &[run.id], &args.work, args.show, OutputShape::One);
    }
    let start = format!("start a worker with `{}`", args.work.hint(global, "worker"));
    stderr::note(&format!(
        "{jobs} of run {} {} ready to run again; {}; `{}` shows the progress",
        run.id,
        if retried_jobs == 1 { "is" } else { "are" },
        executors::of_run(database, run.id, &start)?,
        global.hint(&format!("watch {}", run.id))
    ));
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let run = find::run(database, run.id)?;
    let run = database.ask(|store| RunView::read(store, &run))?;
    let view = RetriedRun { run, retried_jobs };
    Output { format: global.output }.object(&view, |_| String::new())
}

/// Makes the jobs ready. Returns how many.
fn reset(global: &GlobalOptions, database: &Database, run: &Run, args: &RetryArgs) -> Result<i64, Failure> {
    let candidate = args.candidate(global, database, run)?;
    let selection = args.selection(database, run, candidate.as_ref())?;
    let answer = match candidate {
        Some(candidate) => {
            let (title, next) = candidate.into_next();
            database
                .change(Subject::Run(run.id), |store| store.runs().retry_with(run.id, selection, next))
                .map(|continued| {
                    stderr::note(&next::continued_note(&title, run, &continued));
                    continued.jobs
                })
        }
        None => {
            let jobs = database.change(Subject::Run(run.id), |store| store.runs().retry(run.id, selection));
            if let (Ok(_), Some(note)) = (&jobs, next::change_note(database, run)?) {
                stderr::note(&note);
            }
            jobs
        }
    };
    match answer {
        Err(Failure::Conflict { message, .. }) => {
            let inspect = global.hint(&format!("inspect {}", run.id));
            Err(Failure::Conflict { message, help: format!("`{inspect}` shows its jobs") })
        }
        answer => answer,
    }
}

/// Refuses what the engine would refuse too, with a better next step.
fn check(global: &GlobalOptions, database: &Database, run: &Run, args: &RetryArgs) -> Result<(), Failure> {
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
    if run.status == windlass_engine::RunStatus::Successful && !args.names_what_to_run() {
        if let Some(note) = next::change_note(database, run)? {
            stderr::note(&note);
        }
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
