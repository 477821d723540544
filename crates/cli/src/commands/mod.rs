//! The verbs: one file each, with its arguments and what it does.

mod cancel;
mod completions;
mod db;
mod enqueue;
mod graph;
pub(crate) mod inspect;
mod jobs;
mod logs;
mod resume;
mod retry;
mod run;
mod runs;
mod stats;
mod submit;
mod validate;
mod watch;
mod why;
mod worker;

use clap::Subcommand;

use crate::cli::Cli;
use crate::error::Failure;
use crate::logging;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Submit(submit::SubmitArgs),
    Resume(resume::ResumeArgs),
    Worker(worker::WorkerArgs),
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
    Validate(validate::ValidateArgs),
    Graph(graph::GraphArgs),
    Db(db::DbArgs),
    Completions(completions::CompletionsArgs),
}

impl Command {
    /// What is logged when `RUST_LOG` does not say. The log of a worker is all that it shows.
    fn log_level(&self) -> &'static str {
        if matches!(self, Command::Worker(_)) { "info" } else { "warn" }
    }
}

/// Does what the command line asks for.
pub(crate) fn execute(cli: Cli) -> Result<(), Failure> {
    let global = cli.global;
    logging::start(cli.command.log_level());
    match cli.command {
        Command::Run(args) => run::execute(&global, &args),
        Command::Submit(args) => submit::execute(&global, &args),
        Command::Resume(args) => resume::execute(&global, &args),
        Command::Worker(args) => worker::execute(&global, &args),
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
        Command::Validate(args) => validate::execute(&global, &args),
        Command::Graph(args) => graph::execute(&global, &args),
        Command::Db(args) => db::execute(&global, &args),
        Command::Completions(args) => completions::execute(&args),
    }
}
