//! `windlass runs`: lists the runs, newest first.

use clap::Args;
use windlass_engine::RunStatus;
use windlass_engine::store::{ParamFilter, Run, RunFilter, TimeRange};
use windlass_views::RunView;

use crate::arguments::{GlobalOptions, OutputFormat, filters, parse_run_id, parse_since};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::text::style::printable;
use crate::text::table::{self, Column, Table};
use crate::text::{runs_and_jobs, time, values};
use crate::{pages, stderr};

/// List runs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunsArgs {
    /// Only runs in these states; may be given many times, or with commas
    #[arg(long, value_name = "STATUS", add = complete::run_status(), value_delimiter = ',', value_parser = filters::parse_run_status)]
    status: Vec<RunStatus>,

    /// Only runs of this workflow
    #[arg(long, value_name = "WORKFLOW", add = complete::workflow())]
    workflow: Option<String>,

    /// Only runs accepted since then: 10m, 2h, today, 2026-11-20, "2026-11-20 09:00"
    #[arg(long, value_name = "AGO|TIME", value_parser = parse_since)]
    since: Option<i64>,

    /// Only runs with this value of a parameter; may be given many times
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = filters::parse_param)]
    params: Vec<ParamFilter>,

    /// Only runs whose workflow has this tag
    #[arg(long, value_name = "TAG", add = complete::tag(), conflicts_with = "children")]
    tag: Option<String>,

    /// Only runs that jobs of other runs have started; without it, only the others
    #[arg(long)]
    children: bool,

    /// The largest number of runs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20, value_parser = filters::list_limit())]
    limit: u32,

    /// Only runs with lower numbers than this: the next page of a list
    #[arg(long, value_name = "ID", value_parser = parse_run_id)]
    before: Option<i64>,
}

const EXAMPLES: &str = "\
Examples:
  windlass runs
  windlass runs --status failed,cancelled --since 2h
  windlass runs --workflow nightly -p day=2026-11-20
  windlass runs --tag etl
  windlass runs --before 81             # the page after run 81
  windlass runs --workflow nightly -o json";

/// Prints the runs.
pub(crate) fn execute(global: &GlobalOptions, args: RunsArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let filter = RunFilter {
        statuses: args.status,
        created: TimeRange { from_ms: args.since, until_ms: None },
        params: args.params,
        workflow: args.workflow,
        tag: args.tag,
        children: args.children,
        ..RunFilter::default()
    };
    let runs = pages::read(args.before, args.limit, |cursor| {
        database.ask(|store| store.runs().list_full(&RunFilter { cursor, ..filter.clone() }))
    })?;
    if global.output == OutputFormat::Text {
        if runs.is_empty() {
            stderr::note(&nothing(global, &filter, args.before));
            return Ok(());
        }
        return output::write_text(&text(&database, &runs)?);
    }
    let views = database.ask(|store| RunView::read_all(store, &runs))?;
    Output { format: global.output }.list(&views, |_| String::new())
}

fn text(database: &Database, runs: &[Run]) -> Result<String, Failure> {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("RUN"),
        Column::Left("WORKFLOW"),
        Column::Left("STATUS"),
        Column::Right("JOBS"),
        Column::Optional("CREATED"),
        Column::Right("TIME"),
        Column::Shrinking("PARAMS"),
    ]);
    for run in runs {
        let interrupted = database.ask(|store| store.runs().is_interrupted(run.id))?;
        table.row([
            run.id.to_string(),
            printable(&run.workflow).into_owned(),
            runs_and_jobs::run_state(run, interrupted),
            jobs(run),
            time::relative(run.created_at, now_ms),
            runs_and_jobs::run_span(run, now_ms),
            values::params(&run.params),
        ]);
    }
    Ok(table.render(table::stdout_width()))
}

/// Of an unfinished run how many jobs have ended, of a failed one how many failed.
fn jobs(run: &Run) -> String {
    let total = run.total_jobs;
    match run.status {
        RunStatus::Pending | RunStatus::Running => {
            format!("{}/{total}", (total - run.unfinished_jobs).max(0))
        }
        RunStatus::Failed if run.failed_jobs > 0 => format!("{}/{total} failed", run.failed_jobs),
        RunStatus::Successful | RunStatus::Failed | RunStatus::Cancelled => total.to_string(),
    }
}

fn nothing(global: &GlobalOptions, filter: &RunFilter, before: Option<i64>) -> String {
    if *filter != RunFilter::default() || before.is_some() {
        format!("no run matches; `{}` lists the newest runs", global.hint("runs"))
    } else {
        format!("there are no runs yet; `{}` starts one", global.hint("run FILE"))
    }
}
