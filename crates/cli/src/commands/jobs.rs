//! `windlass jobs`: lists the jobs of all runs and the enqueued ones, newest first.

use clap::Args;
use windlass_engine::JobStatus;
use windlass_engine::store::{Job, JobFilter, ParamFilter, TimeRange};
use windlass_views::JobView;

use crate::arguments::{GlobalOptions, OutputFormat, RunAddress, filters, parse_job_id, parse_since};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::text::style::{headline, printable};
use crate::text::table::{self, Column, Table};
use crate::text::{runs_and_jobs, time};
use crate::{find, pages, stderr};

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    /// Only jobs in these states; may be given many times, or with commas
    #[arg(long, value_name = "STATUS", add = complete::job_status(), value_delimiter = ',', value_parser = filters::parse_job_status)]
    status: Vec<JobStatus>,

    /// Only jobs accepted since then: 10m, 2h, today, 2026-11-20, "2026-11-20 09:00"
    #[arg(long, value_name = "AGO|TIME", value_parser = parse_since)]
    since: Option<i64>,

    /// Only jobs of runs of this workflow
    #[arg(long, value_name = "WORKFLOW", add = complete::workflow())]
    workflow: Option<String>,

    /// Only jobs of runs with this value of a parameter; may be given many times
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = filters::parse_param)]
    params: Vec<ParamFilter>,

    /// Only jobs of this queue
    #[arg(long, value_name = "QUEUE", add = complete::queue())]
    queue: Option<String>,

    /// Only jobs of this kind, for example shell
    #[arg(long, value_name = "KIND", add = complete::kind())]
    kind: Option<String>,

    /// Only jobs of this run: its number, `latest`, or the name of its workflow
    #[arg(long, value_name = "RUN", add = complete::run())]
    run: Option<RunAddress>,

    /// The largest number of jobs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = filters::list_limit())]
    limit: u32,

    /// Only jobs with lower numbers than this: the next page of a list
    #[arg(long, value_name = "ID", value_parser = parse_job_id)]
    before: Option<i64>,
}

const EXAMPLES: &str = "\
Examples:
  windlass jobs --status failed,cancelled --since 2h
  windlass jobs --workflow nightly -p day=2026-11-20
  windlass jobs --run 3 -n 100
  windlass jobs --before j421           # the page after job 421
  windlass jobs --queue mail --status pending -o jsonl";

/// How many columns of an error a pipe gets.
const ERROR_COLUMNS: usize = 200;

/// Prints the jobs.
pub(crate) fn execute(global: &GlobalOptions, args: JobsArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let run = args.run.as_ref().map(|address| find::named_run(&database, address)).transpose()?;
    let filter = JobFilter {
        statuses: args.status,
        created: TimeRange { from_ms: args.since, until_ms: None },
        workflow: args.workflow,
        params: args.params,
        queue: args.queue,
        kind: args.kind,
        run_id: run.map(|run| run.id),
        ..JobFilter::default()
    };
    let jobs = pages::read(args.before, args.limit, |cursor| {
        database.ask(|store| store.jobs().list_full(&JobFilter { cursor, ..filter.clone() }))
    })?;
    if global.output == OutputFormat::Text {
        if jobs.is_empty() {
            stderr::note(&nothing(global, &filter, args.before));
            return Ok(());
        }
        return output::write_text(&text(&jobs));
    }
    let views = database.ask(|store| JobView::read_all(store, &jobs))?;
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
        Column::Shrinking("ERROR"),
    ]);
    for job in jobs {
        table.row([
            format!("j{}", job.id),
            full_name(job),
            printable(&job.kind).into_owned(),
            printable(&job.queue).into_owned(),
            runs_and_jobs::job_state(job),
            job.attempt.to_string(),
            time::relative(job.created_at, now_ms),
            runs_and_jobs::job_span(job, now_ms),
            headline(job.last_error.as_deref().unwrap_or_default(), ERROR_COLUMNS),
        ]);
    }
    table.render(table::stdout_width())
}

/// `3/build`, the form that other verbs take.
fn full_name(job: &Job) -> String {
    match (job.run_id, &job.name) {
        (Some(run_id), Some(name)) => format!("{run_id}/{}", printable(name)),
        (Some(run_id), None) => format!("{run_id}/"),
        (None, Some(name)) => printable(name).into_owned(),
        (None, None) => String::new(),
    }
}

fn nothing(global: &GlobalOptions, filter: &JobFilter, before: Option<i64>) -> String {
    if *filter != JobFilter::default() || before.is_some() {
        format!("no job matches; `{}` lists the newest jobs", global.hint("jobs"))
    } else {
        let run = global.hint("run FILE");
        format!("there are no jobs yet; `{run}` or `{}` adds some", global.hint("enqueue"))
    }
}
