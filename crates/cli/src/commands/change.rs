//! `windlass change`: changes a job that waits.

use std::time::Duration;

use clap::Args;
use windlass_engine::store::{Job, JobChange, StartTime, Subject};
use windlass_views::JobView;

use super::enqueue::{milliseconds, parse_priority};
use crate::arguments::{GlobalOptions, OutputFormat, RunOrJob, parse_duration, parse_instant};
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::text::style::printable;
use crate::text::time;
use crate::{find, stderr};

/// Change a job that waits: when it starts, its priority, its queue
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("changes").required(true).multiple(true))]
pub(crate) struct ChangeArgs {
    /// A job by its id (j42), or a job of a run (3/build)
    #[arg(value_name = "JOB", add = complete::single_job())]
    address: RunOrJob,

    /// Start it at this time
    #[arg(long, value_name = "TIME", value_parser = parse_instant, conflicts_with = "in_", group = "changes")]
    at: Option<i64>,

    /// Start it after this time, for example 10m; 0s starts it now
    #[arg(long = "in", id = "in_", value_name = "DURATION", value_parser = parse_duration, group = "changes")]
    in_: Option<Duration>,

    /// The priority: low, normal, high, critical, or an integer; higher runs first
    #[arg(long, value_name = "P", allow_hyphen_values = true, value_parser = parse_priority, group = "changes")]
    priority: Option<i64>,

    /// The queue
    #[arg(long, value_name = "QUEUE", group = "changes", add = complete::queue())]
    queue: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  windlass change j42 --in 0s              # now, also before a retry
  windlass change j42 --at '2026-11-21 06:00'
  windlass change 3/load --priority high
  windlass change j42 --queue slow

Only jobs that are PENDING or SCHEDULED can be changed, and jobs that wait for
a slot of their concurrency key.";

/// Changes the job.
pub(crate) fn execute(global: &GlobalOptions, args: &ChangeArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let job = find::job(&database, &args.address, None)?;
    let after = args.in_.map(|delay| StartTime::After(milliseconds(delay)));
    let change = JobChange {
        start: args.at.map(StartTime::At).or(after),
        priority: args.priority,
        queue: args.queue.clone(),
    };
    let changed =
        match database.change(Subject::Job(job.id), |store| store.jobs().change(job.id, change.clone())) {
            Err(Failure::Conflict { message, .. }) => {
                let why = global.hint(&format!("why j{}", job.id));
                return Err(Failure::Conflict { message, help: format!("`{why}` explains its state") });
            }
            answer => answer?,
        };
    stderr::note(&message(&changed, &change));
    if global.output == OutputFormat::Text {
        return Ok(());
    }
    let view = database.ask(|store| JobView::read(store, &changed))?;
    Output { format: global.output }.object(&view, |_| String::new())
}

fn message(job: &Job, change: &JobChange) -> String {
    let mut parts = Vec::new();
    if change.start.is_some() {
        parts.push(format!("starts at {}", time::instant(job.execute_after, time::now_ms())));
    }
    if let Some(priority) = change.priority {
        let of_queue = "has no priority, because its queue keeps the order of arrival".to_owned();
        parts.push(if job.priority == priority { format!("has priority {priority}") } else { of_queue });
    }
    if change.queue.is_some() {
        parts.push(format!("waits in the queue `{}`", printable(&job.queue)));
    }
    format!("job {} {}", printable(&job.label()), parts.join(", "))
}
