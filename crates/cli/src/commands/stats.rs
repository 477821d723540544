//! `windlass stats`: counts jobs and runs by state, and lists the workers.

use clap::Args;
use windlass_engine::JobStatus;
use windlass_engine::store::{Count, Stats, Worker};
use windlass_views::StatsView;

use crate::arguments::GlobalOptions;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::text::runs_and_jobs::{job_style, run_style};
use crate::text::style::{DIM, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// Count jobs and runs by state, and list the workers
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// Count all finished jobs and runs, which reads every row
    #[arg(long)]
    exact: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass stats
  windlass stats -o json | jq .job_counts.pending
  windlass stats --exact

Without --exact, counts of finished jobs and runs stop at 100,000, so that the
answer comes at once. A plus sign (100000+) marks a number that may be higher.";

/// Prints the counts and the workers.
pub(crate) fn execute(global: &GlobalOptions, args: &StatsArgs) -> Result<(), Failure> {
    let database = Database::for_reading(global)?;
    let stats = database.ask(|store| match args.exact {
        true => store.upkeep().exact_stats(),
        false => store.upkeep().stats(),
    })?;
    let workers = database.ask(|store| store.workers().live())?;
    let view = StatsView::new(&stats, &workers);
    Output { format: global.output }
        .object(&view, |_| format!("{}\n\n{}", counts(&stats), workers_text(global, &workers)))
}

fn counts(stats: &Stats) -> String {
    let mut table = Table::new(&[Column::Left("STATUS"), Column::Right("JOBS"), Column::Right("RUNS")]);
    for status in JobStatus::ALL {
        let run = stats.runs.iter().find(|(run, _)| run.as_str() == status.as_str());
        let runs = run.map(|(status, count)| number(*count, run_style(*status)));
        table.row([
            paint(job_style(status), status),
            number(stats.jobs_of(status), job_style(status)),
            runs.unwrap_or_default(),
        ]);
    }
    table.render(None)
}

/// A zero is dimmed, so that the other numbers stand out.
fn number(count: Count, style: anstyle::Style) -> String {
    match count {
        Count { number: 0, is_exact: true } => paint(DIM, 0),
        count => paint(style, count),
    }
}

fn workers_text(global: &GlobalOptions, workers: &[Worker]) -> String {
    if workers.is_empty() {
        return format!("no worker is running; `{}` starts one", global.hint("worker"));
    }
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Right("WORKER"),
        Column::Left("HOST"),
        Column::Right("PID"),
        Column::Left("STATUS"),
        Column::Right("RUNNING"),
        Column::Right("THREADS"),
        Column::Left("HEARTBEAT"),
        Column::Shrinking("TAKES"),
    ]);
    for worker in workers {
        table.row([
            worker.id.to_string(),
            printable(&worker.host).into_owned(),
            worker.pid.to_string(),
            worker.status.as_str().to_owned(),
            worker.running.to_string(),
            worker.threads.to_string(),
            time::relative(worker.heartbeat_at, now_ms),
            takes(worker),
        ]);
    }
    table.render(table::stdout_width())
}

/// The jobs that the worker claims, and its capabilities.
fn takes(worker: &Worker) -> String {
    let mut takes = match (&worker.queues, &worker.run_ids) {
        (Some(queues), _) => format!("queues {}", printable(queues)),
        (None, Some(runs)) => format!("runs {}", printable(runs)),
        (None, None) => "everything".to_owned(),
    };
    if worker.capabilities != "[]" {
        takes.push_str(&format!(", has {}", printable(&worker.capabilities)));
    }
    if worker.code_version > 0 {
        takes.push_str(&format!(", code version {}", worker.code_version));
    }
    takes
}
