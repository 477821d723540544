//! The verbs: one file each, with its arguments and what it does.

mod apply;
mod bench;
mod cancel;
mod completions;
mod db;
mod doctor;
mod enqueue;
mod graph;
pub(crate) mod inspect;
mod jobs;
mod logs;
mod queue;
mod resume;
mod retry;
mod run;
mod runs;
pub(crate) mod schedule;
mod serve;
mod stats;
mod submit;
mod validate;
mod watch;
pub(crate) mod why;
mod worker;
mod workflows;

use clap::Subcommand;

use crate::cli::Cli;
use crate::error::Failure;
use crate::logging::{self, LogFormat};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Submit(submit::SubmitArgs),
    Resume(resume::ResumeArgs),
    Serve(serve::ServeArgs),
    Worker(worker::WorkerArgs),
    Schedule(schedule::ScheduleArgs),
    Runs(runs::RunsArgs),
    Inspect(inspect::InspectArgs),
    Logs(logs::LogsArgs),
    Watch(watch::WatchArgs),
    Why(why::WhyArgs),
    Jobs(jobs::JobsArgs),
    Stats(stats::StatsArgs),
    Cancel(cancel::CancelArgs),
    Retry(retry::RetryArgs),
    Enqueue(enqueue::EnqueueArgs),
    Queue(queue::QueueArgs),
    Validate(validate::ValidateArgs),
    Graph(graph::GraphArgs),
    Apply(apply::ApplyArgs),
    Workflows(workflows::WorkflowsArgs),
    Bench(bench::BenchArgs),
    Doctor(doctor::DoctorArgs),
    Db(db::DbArgs),
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// The log is all that a worker or a service shows: they start it themselves, as they are told.
    fn starts_log_itself(&self) -> bool {
        matches!(self, Command::Worker(_) | Command::Serve(_))
    }
}

/// Does what the command line asks for.
pub(crate) fn execute(cli: Cli) -> Result<(), Failure> {
    let global = cli.global;
    if !cli.command.starts_log_itself() {
        logging::start("warn", LogFormat::Text);
    }
    match cli.command {
        Command::Run(args) => run::execute(&global, &args),
        Command::Submit(args) => submit::execute(&global, &args),
        Command::Resume(args) => resume::execute(&global, &args),
        Command::Serve(args) => serve::execute(global, &args),
        Command::Worker(args) => worker::execute(&global, &args),
        Command::Schedule(args) => schedule::execute(&global, &args),
        Command::Runs(args) => runs::execute(&global, args),
        Command::Inspect(args) => inspect::execute(&global, &args),
        Command::Logs(args) => logs::execute(&global, &args),
        Command::Watch(args) => watch::execute(&global, &args),
        Command::Why(args) => why::execute(&global, &args),
        Command::Jobs(args) => jobs::execute(&global, args),
        Command::Stats(args) => stats::execute(&global, &args),
        Command::Cancel(args) => cancel::execute(&global, &args),
        Command::Retry(args) => retry::execute(&global, &args),
        Command::Enqueue(args) => enqueue::execute(&global, args),
        Command::Queue(args) => queue::execute(&global, &args),
        Command::Validate(args) => validate::execute(&global, &args),
        Command::Graph(args) => graph::execute(&global, &args),
        Command::Apply(args) => apply::execute(&global, &args),
        Command::Workflows(args) => workflows::execute(&global, &args),
        Command::Bench(args) => bench::execute(&global, &args),
        Command::Doctor(args) => doctor::execute(&global, &args),
        Command::Db(args) => db::execute(&global, &args),
        Command::Completions(args) => completions::execute(&args),
    }
}
