//! `windlass queue list`: lists the queues with their rules and the number of jobs.

use clap::Args;
use windlass_engine::store::{Order, Queue};

use windlass_views::QueueView;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::runs_and_jobs::job_style;
use crate::text::style::{paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// List the queues with their limits and the number of jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {}

const EXAMPLES: &str = "\
Examples:
  windlass queue list
  windlass queue list -o json | jq '.[] | select(.paused_at)'";

pub(super) fn execute(global: &GlobalOptions) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let queues = database.ask(|store| store.queues().list())?;
    if queues.is_empty() && global.output == OutputFormat::Text {
        stderr::note("there are no queues: no jobs are unfinished and no rules are set");
        return Ok(());
    }
    let views: Vec<QueueView> = queues.iter().map(QueueView::new).collect();
    Output { format: global.output }.list(&views, |_| text(&queues))
}

fn text(queues: &[Queue]) -> String {
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Left("QUEUE"),
        Column::Right("PENDING"),
        Column::Right("RUNNING"),
        Column::Right("SCHEDULED"),
        Column::Right("WAITING"),
        Column::Shrinking("RULES"),
    ]);
    for queue in queues {
        table.row([
            printable(&queue.name).into_owned(),
            queue.pending.to_string(),
            queue.running.to_string(),
            queue.scheduled.to_string(),
            queue.waiting.to_string(),
            rules(queue, now_ms),
        ]);
    }
    table.render(table::stdout_width())
}

/// The rules of a queue in words.
pub(super) fn rules(queue: &Queue, now_ms: i64) -> String {
    let mut rules = Vec::new();
    if let Some(paused_at) = queue.paused_at {
        let since = format!("paused {}", time::relative(paused_at, now_ms));
        rules.push(paint(job_style(windlass_engine::JobStatus::Waiting), since));
    }
    if let Some(jobs) = queue.max_running {
        rules.push(format!("at most {jobs} at a time"));
    }
    if let Some(rate) = queue.rate {
        rules.push(format!("at most {} starts within {}", rate.jobs, windlass_views::rate_interval(rate)));
    }
    match queue.order {
        Order::Arrival => rules.push("one at a time, in order of arrival".to_owned()),
        Order::Priority => {}
    }
    rules.join(", ")
}
