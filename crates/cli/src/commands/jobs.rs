//! `windlass jobs`: jobs of all runs and jobs enqueued alone, newest first.

use clap::Args;
use windlass::JobStatus;
use windlass::store::{Job, JobFilter};

use crate::address;
use crate::cli::GlobalOptions;
use crate::database::Database;
use crate::describe;
use crate::error::Failure;
use crate::lookup;
use crate::output::{self, Format, Output};
use crate::status;
use crate::style::{headline, printable};
use crate::table::{self, Column, Table};
use crate::time;
use crate::views::JobView;

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    /// Only jobs in this state
    #[arg(long, value_name = "STATUS", value_parser = status::parse_job_status)]
    status: Option<JobStatus>,

    /// Only jobs of this queue
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,

    /// Only jobs of this run
    #[arg(long, value_name = "RUN", value_parser = address::parse_run_id)]
    run: Option<i64>,

    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = status::list_limit())]
    limit: u32,
}

const EXAMPLES: &str = "\
Examples:
  windlass jobs --status failed
  windlass jobs --run 3 --limit 100
  windlass jobs --queue mail --status pending -o jsonl";

/// Columns that an error may take in a pipe.
const ERROR_COLUMNS: usize = 200;

/// Prints the jobs.
pub(crate) fn execute(global: &GlobalOptions, args: JobsArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    if let Some(run_id) = args.run {
        lookup::run(&database, run_id)?;
    }
    let filter =
        JobFilter { status: args.status, queue: args.queue, run_id: args.run, limit: i64::from(args.limit) };
    let jobs = database.ask(|store| store.jobs().list(&filter))?;
    if global.output == Format::Text {
        if jobs.is_empty() {
            output::note(&nothing(global, &filter));
            return Ok(());
        }
        return output::write_text(&text(&jobs));
    }
    let views: Vec<JobView> =
        jobs.iter().map(|job| JobView::read(&database, job)).collect::<Result<_, Failure>>()?;
    Output { format: global.output }.list(&views, |_| String::new())
}

fn text(jobs: &[Job]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("JOB"),
        Column::Left("NAME"),
        Column::Optional("KIND"),
        Column::Optional("QUEUE"),
        Column::Left("STATUS"),
        Column::Right("ATTEMPT"),
        Column::Left("CREATED"),
        Column::Right("TIME"),
        Column::Yielding("ERROR"),
    ]);
    for job in jobs {
        table.row([
            format!("j{}", job.id),
            full_name(job),
            printable(&job.kind).into_owned(),
            printable(&job.queue).into_owned(),
            describe::job_state(job),
            job.attempt.to_string(),
            time::relative(job.created_at, now_ms),
            describe::job_span(job, now_ms),
            headline(job.last_error.as_deref().unwrap_or_default(), ERROR_COLUMNS),
        ]);
    }
    table.render(table::stdout_width())
}

/// `3/build`, as other verbs take it.
fn full_name(job: &Job) -> String {
    match (job.run_id, &job.name) {
        (Some(run_id), Some(name)) => format!("{run_id}/{}", printable(name)),
        (Some(run_id), None) => format!("{run_id}/"),
        (None, Some(name)) => printable(name).into_owned(),
        (None, None) => String::new(),
    }
}

fn nothing(global: &GlobalOptions, filter: &JobFilter) -> String {
    if filter.status.is_some() || filter.queue.is_some() || filter.run_id.is_some() {
        format!("no job matches; `{}` lists the newest of all", global.hint("jobs"))
    } else {
        let run = global.hint("run FILE");
        format!("there are no jobs yet; `{run}` makes some, and `{}` one", global.hint("enqueue"))
    }
}
