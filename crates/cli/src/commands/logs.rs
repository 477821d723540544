//! `windlass logs`: shows the output of jobs.

mod reader;
mod selection;

use std::thread;
use std::time::Duration;

use clap::Args;
use regex::Regex;
use windlass_engine::store::Job;
use windlass_system::wake_ups::WakeUps;

use crate::arguments::{GlobalOptions, OutputFormat, RunOrJob, parse_since};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find::{self, FoundRunOrJob};
use crate::output::{self, Output};
use crate::stderr;
use crate::text::called_jobs::{CalledJobs, has_calls};
use crate::text::style::printable;
use crate::text::values;
use reader::{Page, Reader, Timestamps};
use selection::LineSelection;

/// Show the output of the jobs of a run
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    /// A run (3, latest, nightly), a job of a run (3/build), or a job by its id (j42)
    #[arg(value_name = "RUN|JOB", add = complete::run_or_job(), default_value = "latest")]
    address: RunOrJob,

    /// Only this job of the run, by its name
    #[arg(value_name = "JOB", add = complete::job_of_run("address"))]
    job: Option<String>,

    /// Show new lines as they are written, until the run or job ends
    #[arg(short, long)]
    follow: bool,

    /// Only this attempt of each job, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    attempt: Option<i64>,

    /// Only the last lines of each job
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=TAIL_MAX))]
    tail: Option<u32>,

    /// Only lines written since then: 10m, 2h, today, 2026-11-20, "2026-11-20 09:00"
    #[arg(long, value_name = "AGO|TIME", value_parser = parse_since)]
    since: Option<i64>,

    /// Only lines that match this regular expression; `(?i)` ignores case
    #[arg(short, long, value_name = "REGEX", value_parser = parse_pattern)]
    grep: Option<Regex>,

    /// Show when each line was written
    #[arg(short, long)]
    timestamps: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass logs                        # the newest run
  windlass logs nightly -f             # follow the newest run of `nightly`
  windlass logs 3                      # all jobs of run 3
  windlass logs 3 build                # one job
  windlass logs 3 build --attempt 2
  windlass logs 3 -n 20 -t             # the last lines of each job, with times
  windlass logs 3 --since 10m -g 'error|warn'
  windlass logs 3 -o jsonl | jq -r .text";

/// The largest number of `--tail`.
const TAIL_MAX: i64 = 1_000_000;
/// The longest wait for new lines. A change ends the wait at once.
const FOLLOW_POLL: Duration = Duration::from_secs(1);
/// The shortest time between two reads with --follow.
const FOLLOW_SPACING: Duration = Duration::from_millis(50);

/// The run or job whose output is shown.
enum LogSource {
    Run(i64),
    Job(i64),
}

/// Prints the output.
pub(crate) fn execute(global: &GlobalOptions, args: &LogsArgs) -> Result<(), Failure> {
    if args.follow && global.output == OutputFormat::Json {
        return Err(Failure::usage(
            "-f has no end, so it cannot print one JSON document",
            "use -o jsonl, which prints one object per line",
        ));
    }
    let database = Database::for_reading(global)?;
    let subject = subject(&database, args)?;
    if let (LogSource::Job(job_id), Some(attempt)) = (&subject, args.attempt) {
        check_attempt(&database, *job_id, attempt, args.follow)?;
    }
    if args.follow {
        follow(global, &database, &subject, args)
    } else {
        once(global, &database, &subject, args)
    }
}

/// Refuses an attempt that the job has not had. Whoever follows may wait for the next one.
fn check_attempt(database: &Database, job_id: i64, attempt: i64, follow: bool) -> Result<(), Failure> {
    let job = database.ask(|store| store.jobs().get(job_id))?;
    if attempt <= job.attempt || (follow && !job.status.is_terminal()) {
        return Ok(());
    }
    let had = values::counted(job.attempt, "attempt", "attempts");
    Err(Failure::not_found(
        format!("job {} had {had}, and no attempt {attempt}", printable(&job.label())),
        format!("`{}` lists them", database.hint(&format!("inspect j{job_id}"))),
    ))
}

/// Reads a regular expression; for clap.
fn parse_pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        if matches!(error, regex::Error::CompiledTooBig(_)) {
            return "the expression is too large".to_owned();
        }
        // The last line has the reason. The others draw the expression again.
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("it is no regular expression: {reason}")
    })
}

impl LogsArgs {
    fn selection(&self) -> LineSelection {
        LineSelection {
            attempt: self.attempt,
            tail: self.tail,
            since_ms: self.since,
            pattern: self.grep.clone(),
        }
    }

    fn timestamps(&self) -> Timestamps {
        if self.timestamps { Timestamps::Shown } else { Timestamps::Hidden }
    }

    /// Whether lines may be left out.
    fn selects(&self) -> bool {
        self.tail.is_some() || self.since.is_some() || self.grep.is_some()
    }
}

fn subject(database: &Database, args: &LogsArgs) -> Result<LogSource, Failure> {
    if args.job.is_some() {
        return Ok(LogSource::Job(find::job(database, &args.address, args.job.as_deref())?.id));
    }
    match find::run_or_job(database, &args.address)? {
        FoundRunOrJob::Run(run) => Ok(LogSource::Run(run.id)),
        FoundRunOrJob::Job(job) => Ok(LogSource::Job(job.id)),
    }
}

impl LogSource {
    /// The jobs that have started, in the order of their starts.
    fn started_jobs(&self, database: &Database, called: &mut CalledJobs) -> Result<Vec<Job>, Failure> {
        let mut jobs = self.jobs(database, called)?;
        jobs.retain(|job| job.attempt > 0);
        jobs.sort_by_key(|job| (job.started_at.is_none(), job.started_at, job.id));
        Ok(jobs)
    }

    /// The jobs of the run and of its child runs, or the job.
    fn jobs(&self, database: &Database, called: &mut CalledJobs) -> Result<Vec<Job>, Failure> {
        let run_id = match self {
            LogSource::Run(run_id) => *run_id,
            LogSource::Job(job_id) => return Ok(vec![database.ask(|store| store.jobs().get(*job_id))?]),
        };
        let mut jobs = database.ask(|store| store.jobs().of_run(run_id))?;
        if has_calls(&jobs) {
            jobs.extend(database.ask(|store| store.jobs().changed_below(run_id, i64::MIN))?);
            called.learn(database, run_id)?;
        }
        Ok(jobs)
    }

    /// Whether no more output can come.
    fn is_over(&self, database: &Database) -> Result<bool, Failure> {
        Ok(match self {
            LogSource::Run(run_id) => find::run(database, *run_id)?.status.is_terminal(),
            LogSource::Job(job_id) => database.ask(|store| store.jobs().get(*job_id))?.status.is_terminal(),
        })
    }

    fn reader(
        &self,
        database: &Database,
        called: &mut CalledJobs,
        args: &LogsArgs,
    ) -> Result<Reader, Failure> {
        let names = match self {
            LogSource::Run(_) => {
                let jobs = self.jobs(database, called)?;
                jobs.iter().map(|job| called.name(job)).collect()
            }
            LogSource::Job(_) => Vec::new(),
        };
        Ok(Reader::new(args.selection(), args.timestamps(), &names))
    }
}

fn once(
    global: &GlobalOptions,
    database: &Database,
    subject: &LogSource,
    args: &LogsArgs,
) -> Result<(), Failure> {
    let mut called = CalledJobs::default();
    let mut reader = subject.reader(database, &mut called, args)?;
    let mut views = Vec::new();
    let mut is_empty = true;
    for job in subject.started_jobs(database, &mut called)? {
        while let Some(page) = reader.next_page(database, &job, &called.name(&job))? {
            is_empty &= page.is_empty();
            match global.output {
                OutputFormat::Json => views.extend(page.views(&job)),
                OutputFormat::Text | OutputFormat::Jsonl => write(global, &page, &job)?,
            }
        }
    }
    if global.output == OutputFormat::Json {
        Output { format: OutputFormat::Json }.list(&views, |_| String::new())?;
    }
    if is_empty {
        stderr::note(match subject.is_over(database)? {
            true | false if args.selects() => "no line matches",
            true => "no output was written",
            false => "no output was written yet; -f waits for it",
        });
    }
    Ok(())
}

fn follow(
    global: &GlobalOptions,
    database: &Database,
    subject: &LogSource,
    args: &LogsArgs,
) -> Result<(), Failure> {
    let listener = database.store().listen(WakeUps::PROGRESS);
    database.store().watch();
    let mut called = CalledJobs::default();
    let mut reader = subject.reader(database, &mut called, args)?;
    loop {
        // Read the state before the lines: a job that has ended wrote its last line before that.
        let is_over = subject.is_over(database)?;
        for job in subject.started_jobs(database, &mut called)? {
            while let Some(page) = reader.next_page(database, &job, &called.name(&job))? {
                write(global, &page, &job)?;
            }
        }
        if is_over {
            return Ok(());
        }
        // One read for many small changes.
        thread::sleep(FOLLOW_SPACING);
        listener.wait(FOLLOW_POLL);
    }
}

fn write(global: &GlobalOptions, page: &Page, job: &Job) -> Result<(), Failure> {
    match global.output {
        OutputFormat::Text => output::write_text(&page.text()),
        OutputFormat::Json | OutputFormat::Jsonl => {
            Output { format: OutputFormat::Jsonl }.list(&page.views(job), |_| String::new())
        }
    }
}
