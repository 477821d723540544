//! The `windlass` command line: reads arguments, calls the engine, says what happened.
//!
//! One file per verb in [`commands`]; [`error`] holds every failure and its exit code.

mod address;
mod changes;
mod cli;
mod commands;
mod database;
mod describe;
mod error;
mod execution;
mod failures;
mod files;
mod logging;
mod lookup;
mod output;
mod place;
mod progress;
mod service;
mod signals;
mod status;
mod style;
mod submission;
mod table;
mod time;
mod views;
mod workflow_files;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::execute(cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.say();
            ExitCode::from(failure.exit_code())
        }
    }
}
