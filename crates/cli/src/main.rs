//! The `windlass` command line: parses the arguments and calls the verb. The exit code comes from
//! [`error::Failure`].

mod arguments;
mod cli;
mod commands;
mod complete;
mod config;
mod database;
mod engine_errors;
mod error;
mod execution;
mod executors;
mod find;
mod logging;
mod output;
mod pages;
mod progress;
mod read_file;
mod service;
mod shell_words;
mod signals;
mod stderr;
mod submission;
mod text;
mod workflow_files;

use std::process::ExitCode;

use crate::arguments::GlobalOptions;
use crate::cli::{Cli, Command};
use crate::commands::{
    apply, approve, artifacts, audit, bench, cancel, change, completions, db, delete, doctor, enqueue, fmt,
    graph, import, init, inspect, jobs, logs, man, notify, plan, queue, rerun, resume, retry, run, runs,
    schedule, schema, serve, signal, stats, submit, test, token, top, validate, variable, watch, why, worker,
    workflows,
};
#[cfg(feature = "web")]
use crate::commands::{open, web};
use crate::error::Failure;
use crate::stderr::Talk;
use crate::text::time::{self, Zone};

fn main() -> ExitCode {
    complete::answer_shell();
    let cli = cli::parse();
    let format = cli.global.output;
    match execute(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.conclude(format);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Decides how much is said, where colours are used, and in which zone times are shown.
fn present(global: &GlobalOptions) {
    stderr::set_talk(if global.quiet { Talk::ErrorsOnly } else { Talk::All });
    anstream::ColorChoice::from(global.color).write_global();
    time::set_zone(if global.utc { Zone::Utc } else { Zone::Local });
}

/// The global options with those of the configuration file, for the verbs that use a database. `serve`, `worker` and `notify` read
/// the file themselves, because it has more for them.
fn configured(global: GlobalOptions, command: &Command) -> Result<GlobalOptions, Failure> {
    #[cfg(feature = "web")]
    if matches!(command, Command::Web(_)) {
        return Ok(global);
    }
    let reads_none = matches!(
        command,
        Command::Serve(_)
            | Command::Worker(_)
            | Command::Notify(_)
            | Command::Init(_)
            | Command::Import(_)
            | Command::Test(_)
            | Command::Fmt(_)
            | Command::Schema(_)
            | Command::Completions(_)
            | Command::Man(_)
    );
    if reads_none {
        return Ok(global);
    }
    let config = config::read_here(global.config().as_deref())?;
    Ok(global.configured(config.global))
}

/// Whether a verb starts the log itself: `worker`, `serve` and `web` with the format of their own options, and `top` only if it
/// is not written over the picture.
fn starts_log(command: &Command) -> bool {
    #[cfg(feature = "web")]
    if matches!(command, Command::Web(_)) {
        return true;
    }
    matches!(command, Command::Worker(_) | Command::Serve(_) | Command::Test(_) | Command::Top(_))
}

fn execute(cli: Cli) -> Result<(), Failure> {
    present(&cli.global);
    let global = configured(cli.global, &cli.command)?;
    if !starts_log(&cli.command) {
        logging::start_for_people(global.verbose);
    }
    match cli.command {
        Command::Run(args) => run::execute(&global, &args),
        Command::Submit(args) => submit::execute(&global, &args),
        Command::Resume(args) => resume::execute(&global, &args),
        Command::Serve(args) => serve::execute(global, &args),
        Command::Worker(args) => worker::execute(global, &args),
        #[cfg(feature = "web")]
        Command::Web(args) => web::execute(global, &args),
        #[cfg(feature = "web")]
        Command::Open(args) => open::execute(&global, &args),
        Command::Schedule(args) => schedule::execute(&global, &args),
        Command::Runs(args) => runs::execute(&global, args),
        Command::Inspect(args) => inspect::execute(&global, &args),
        Command::Logs(args) => logs::execute(&global, &args),
        Command::Artifacts(args) => artifacts::execute(&global, &args),
        Command::Watch(args) => watch::execute(&global, &args),
        Command::Why(args) => why::execute(&global, &args),
        Command::Jobs(args) => jobs::execute(&global, args),
        Command::Stats(args) => stats::execute(&global, &args),
        Command::Top(args) => top::execute(&global, &args),
        Command::Cancel(args) => cancel::execute(&global, &args),
        Command::Variable(args) => variable::execute(&global, &args),
        Command::Signal(args) => signal::execute(&global, &args),
        Command::Approve(args) => approve::approve(&global, &args),
        Command::Reject(args) => approve::reject(&global, &args),
        Command::Retry(args) => retry::execute(&global, &args),
        Command::Change(args) => change::execute(&global, &args),
        Command::Delete(args) => delete::execute(&global, &args),
        Command::Rerun(args) => rerun::execute(&global, &args),
        Command::Enqueue(args) => enqueue::execute(&global, args),
        Command::Queue(args) => queue::execute(&global, &args),
        Command::Validate(args) => validate::execute(&global, &args),
        Command::Plan(args) => plan::execute(&global, &args),
        Command::Test(args) => test::execute(&global, &args),
        Command::Fmt(args) => fmt::execute(&global, &args),
        Command::Schema(args) => schema::execute(&global, &args),
        Command::Init(args) => init::execute(&global, &args),
        Command::Import(args) => import::execute(&global, &args),
        Command::Graph(args) => graph::execute(&global, &args),
        Command::Apply(args) => apply::execute(&global, &args),
        Command::Workflows(args) => workflows::execute(&global, &args),
        Command::Bench(args) => bench::execute(&global, &args),
        Command::Token(args) => token::execute(&global, &args),
        Command::Audit(args) => audit::execute(&global, args),
        Command::Notify(args) => notify::execute(&global, &args),
        Command::Doctor(args) => doctor::execute(&global, &args),
        Command::Db(args) => db::execute(&global, &args),
        Command::Completions(args) => completions::execute(&global, &args),
        Command::Man(args) => man::execute(&global, cli::command(), &args),
    }
}
