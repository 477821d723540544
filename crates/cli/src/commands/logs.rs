//! `windlass logs`: what jobs wrote.

mod reader;

use std::thread;
use std::time::Duration;

use clap::Args;
use windlass::store::Job;
use windlass::wake_ups::WakeUps;

use crate::address::Address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::lookup::{self, Target};
use crate::output::{self, Format, Output};
use reader::{Page, Reader};

/// Show what the jobs of a run wrote
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    /// A run (3), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN")]
    address: Address,

    /// Only this job of the run, by name
    #[arg(value_name = "JOB")]
    job: Option<String>,

    /// Show new lines as they come, until the run or job ends
    #[arg(short, long)]
    follow: bool,

    /// Only this attempt of each job, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    attempt: Option<i64>,
}

const EXAMPLES: &str = "\
Examples:
  windlass logs 3                      # all jobs of run 3
  windlass logs 3 build                # one job
  windlass logs 3 build --attempt 2
  windlass logs 3 -f                   # as it comes
  windlass logs 3 -o jsonl | jq -r .text";

/// How long a follower sleeps at most; changes wake it at once.
const FOLLOW_POLL: Duration = Duration::from_secs(1);
/// The shortest time between two looks of a follower.
const FOLLOW_SPACING: Duration = Duration::from_millis(50);

/// Whose output is wanted.
enum Subject {
    Run(i64),
    Job(i64),
}

/// Prints the output.
pub(crate) fn execute(global: &GlobalOptions, args: &LogsArgs) -> Result<(), Failure> {
    if args.follow && global.output == Format::Json {
        return Err(Failure::usage(
            "one JSON document has an end, and -f has none",
            "use -o jsonl: one object a line, as it comes",
        ));
    }
    let database = Database::existing(global)?;
    let subject = subject(&database, args)?;
    if args.follow {
        follow(global, &database, &subject, args.attempt)
    } else {
        once(global, &database, &subject, args.attempt)
    }
}

fn subject(database: &Database, args: &LogsArgs) -> Result<Subject, Failure> {
    if let Some(name) = &args.job {
        let Address::Number(run_id) = args.address else {
            return Err(Failure::usage(
                format!("`{}` is a job already, and `{name}` names another", args.address),
                "write `windlass logs RUN JOB`, for example `windlass logs 3 build`",
            ));
        };
        return Ok(Subject::Job(lookup::job_by_name(database, run_id, name)?.id));
    }
    match lookup::run_or_job(database, &args.address)? {
        Target::Run(run) => Ok(Subject::Run(run.id)),
        Target::Job(job) => Ok(Subject::Job(job.id)),
    }
}

impl Subject {
    /// Its jobs that have started, in the order in which they did.
    fn started_jobs(&self, database: &Database) -> Result<Vec<Job>, Failure> {
        let mut jobs = match self {
            Subject::Run(run_id) => database.ask(|store| store.jobs().of_run(*run_id))?,
            Subject::Job(job_id) => vec![database.ask(|store| store.jobs().get(*job_id))?],
        };
        jobs.retain(|job| job.attempt > 0);
        jobs.sort_by_key(|job| (job.started_at.is_none(), job.started_at, job.id));
        Ok(jobs)
    }

    /// Nothing will be written any more.
    fn is_over(&self, database: &Database) -> Result<bool, Failure> {
        Ok(match self {
            Subject::Run(run_id) => lookup::run(database, *run_id)?.status.is_terminal(),
            Subject::Job(job_id) => database.ask(|store| store.jobs().get(*job_id))?.status.is_terminal(),
        })
    }

    fn reader(&self, database: &Database, attempt: Option<i64>) -> Result<Reader, Failure> {
        let names = match self {
            Subject::Run(run_id) => {
                let jobs = database.ask(|store| store.jobs().of_run(*run_id))?;
                jobs.iter().map(describe::job_name).collect()
            }
            Subject::Job(_) => Vec::new(),
        };
        Ok(Reader::new(attempt, &names))
    }
}

fn once(
    global: &GlobalOptions,
    database: &Database,
    subject: &Subject,
    attempt: Option<i64>,
) -> Result<(), Failure> {
    let mut reader = subject.reader(database, attempt)?;
    let mut views = Vec::new();
    let mut is_empty = true;
    for job in subject.started_jobs(database)? {
        while let Some(page) = reader.next_page(database, &job)? {
            is_empty = false;
            match global.output {
                Format::Json => views.extend(page.views(&job)),
                Format::Text | Format::Jsonl => write(global, &page, &job)?,
            }
        }
    }
    if global.output == Format::Json {
        Output { format: Format::Json }.list(&views, |_| String::new())?;
    }
    if is_empty {
        output::note(match subject.is_over(database)? {
            true => "nothing was written",
            false => "nothing was written yet; -f waits for it",
        });
    }
    Ok(())
}

fn follow(
    global: &GlobalOptions,
    database: &Database,
    subject: &Subject,
    attempt: Option<i64>,
) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS);
    database.store().watch();
    let mut reader = subject.reader(database, attempt)?;
    loop {
        // Asked before the lines are read: what is over has written its last line by then.
        let is_over = subject.is_over(database)?;
        for job in subject.started_jobs(database)? {
            while let Some(page) = reader.next_page(database, &job)? {
                write(global, &page, &job)?;
            }
        }
        if is_over {
            return Ok(());
        }
        // Many small changes make one look.
        thread::sleep(FOLLOW_SPACING);
        listener.wait(FOLLOW_POLL);
    }
}

fn write(global: &GlobalOptions, page: &Page, job: &Job) -> Result<(), Failure> {
    match global.output {
        Format::Text => output::write_text(&page.text()),
        Format::Json | Format::Jsonl => {
            Output { format: Format::Jsonl }.list(&page.views(job), |_| String::new())
        }
    }
}
