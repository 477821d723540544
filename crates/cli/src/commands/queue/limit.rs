//! `windlass queue limit`: limits how many jobs of a queue run, how fast they start, and in which order.

use clap::Args;
use windlass_engine::store::{Order, Queue, QueueLimits, Rate, Setting, Subject};

use super::list;
use windlass_views::{ChangedQueue, QueueView};

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::shell_words::quoted;
use crate::stderr;
use crate::text::time;

/// Limit how many jobs of a queue run and how fast they start, or show its limits
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct LimitArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = complete::queue(), value_parser = super::parse_name)]
    queue: String,

    /// How many jobs of the queue may run at a time, in all processes together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..=1_000_000))]
    max_running: Option<i64>,

    /// Remove the limit of --max-running
    #[arg(long, conflicts_with = "max_running")]
    no_max_running: bool,

    /// How many jobs may start within any interval of this length, for example 100/1m
    #[arg(long, value_name = "JOBS/TIME", value_parser = windlass_views::parse_rate)]
    rate: Option<Rate>,

    /// Remove the rate limit
    #[arg(long, conflicts_with = "rate")]
    no_rate: bool,

    /// Run one job at a time in the order of arrival, without priorities. The next job starts when the one before has
    /// ended, including its retries
    #[arg(long, conflicts_with = "max_running")]
    fifo: bool,

    /// Order jobs by priority and age again
    #[arg(long, conflicts_with = "fifo")]
    no_fifo: bool,
}

const EXAMPLES: &str = "\
Examples:
  windlass queue limit mail --max-running 4
  windlass queue limit api --rate 100/1m
  windlass queue limit deploy --fifo
  windlass queue limit mail --no-max-running
  windlass queue limit mail                     # show its limits

Limits apply to all processes that use the database together. A crash leaves
no slot taken.";

pub(super) fn execute(global: &GlobalOptions, args: &LimitArgs) -> Result<(), Failure> {
    let limits = QueueLimits {
        max_running: setting(args.max_running, args.no_max_running),
        rate: setting(args.rate, args.no_rate),
        order: setting(args.fifo.then_some(Order::Arrival), args.no_fifo),
    };
    let is_asked = limits == QueueLimits::default();
    let mut before = None;
    let database = if is_asked {
        Database::existing(global)?
    } else {
        let database = Database::existing_or_new(global)?;
        super::note_a_new_name(&database, &args.queue)?;
        before = super::read(&database, &args.queue)?.map(|queue| rules_of(&queue));
        database
            .change(Subject::Queue(args.queue.clone()), |store| store.queues().limit(&args.queue, limits))?;
        database
    };
    let Some(queue) = super::read(&database, &args.queue)? else {
        return Err(Failure::not_found(
            format!("the queue `{}` has no jobs and no rules", args.queue),
            "a queue exists when it has a job or a rule; `windlass queue list` lists all queues",
        ));
    };
    if let (Order::Arrival, Some(jobs @ 1..)) = (queue.order, queue.max_running) {
        let clear = global.hint(&format!("queue limit {} --no-max-running", quoted(&args.queue)));
        stderr::note(&format!(
            "--max-running {jobs} has no effect: with --fifo, one job runs at a time; `{clear}` removes the limit"
        ));
    }
    if queue.max_running == Some(0) {
        let clear = global.hint(&format!("queue limit {} --no-max-running", quoted(&args.queue)));
        stderr::note(&format!(
            "no job of the queue `{}` starts while --max-running is 0; `{clear}` ends that",
            args.queue
        ));
    }
    let changed = !is_asked && before != Some(rules_of(&queue));
    let view = ChangedQueue { queue: QueueView::new(&queue), changed };
    Output { format: global.output }.object(&view, |_| {
        let rules = list::rules(&queue, time::now_ms());
        format!("{}: {}", queue.name, if rules.is_empty() { "no limits" } else { &rules })
    })
}

/// What `limit` changes.
fn rules_of(queue: &Queue) -> (Option<i64>, Option<Rate>, Order) {
    (queue.max_running, queue.rate, queue.order)
}

fn setting<T>(value: Option<T>, is_cleared: bool) -> Setting<T> {
    match (value, is_cleared) {
        (Some(value), _) => Setting::Set(value),
        (None, true) => Setting::Clear,
        (None, false) => Setting::Keep,
    }
}
