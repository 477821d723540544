//! Completion in a shell: of verbs and options, and of what is in the database and in files. A script that the shell reads
//! calls this program at each completion, with the words that are typed.
//!
//! Nothing here may disturb the prompt: it writes nothing to standard error, gives up after [`WAIT`], and neither creates
//! a database nor changes one.

mod bash;
mod jobs;
mod names;
mod reading;
mod runs;
mod words;
mod workflow_files;

use std::env;
use std::io;
use std::process;
use std::time::Duration;

use clap_complete::CompleteEnv;
use clap_complete::env::{Elvish, Fish, Powershell, Shells, Zsh};

use crate::cli::{self, NAME};
use crate::stderr::{self, Talk};
use bash::Bash;
pub(crate) use jobs::{job_of_run, run_or_job, single_job};
pub(crate) use names::{
    dead_status, job_status, kind, notify_target, queue, run_status, schedule, tag, workflow,
};
pub(crate) use runs::run;
pub(crate) use workflow_files::{
    job_of_file, param_of_file, workflow_file, workflow_file_or_name, workflow_file_or_run,
};

/// The variable that asks for a completion, and names the shell.
const VARIABLE: &str = "WINDLASS_COMPLETE";
/// The variable that says how long a completion waits for the database, in milliseconds.
const WAIT_VARIABLE: &str = "WINDLASS_COMPLETE_WAIT_MS";
/// How long it waits without the variable.
const WAIT: Duration = Duration::from_millis(200);
/// How long it waits at most.
const WAIT_MAX_MS: u64 = 60_000;
/// How many values are offered at most.
const OFFERED_MAX: usize = 50;
const SHELLS: Shells<'static> = Shells(&[&Bash, &Elvish, &Fish, &Powershell, &Zsh]);

/// Answers the script of a shell and ends the process, if a script has called.
pub(crate) fn answer_shell() {
    let Some(shell) = env::var_os(VARIABLE).filter(|shell| !shell.is_empty()) else { return };
    stderr::set_talk(Talk::Nothing);
    std::panic::set_hook(Box::new(|_panic| {}));
    words::remember(&shell);
    let completion = CompleteEnv::with_factory(command).var(VARIABLE).bin(NAME).shells(SHELLS);
    let answered = completion.try_complete(env::args_os(), env::current_dir().ok().as_deref());
    process::exit(i32::from(answered.is_err()));
}

/// How long a completion waits for the database.
fn wait() -> Duration {
    let written = env::var(WAIT_VARIABLE).ok().and_then(|text| text.parse::<u64>().ok());
    written.map_or(WAIT, |wait_ms| Duration::from_millis(wait_ms.min(WAIT_MAX_MS)))
}

/// The script that makes a shell call this program, which it finds in `PATH`.
pub(crate) fn script(shell: &str) -> Option<io::Result<Vec<u8>>> {
    let mut script = Vec::new();
    let written = SHELLS.completer(shell)?.write_registration(VARIABLE, NAME, NAME, NAME, &mut script);
    if shell == "zsh" {
        script.extend_from_slice(AS_A_FILE_OF_ZSH.as_bytes());
    }
    Some(written.map(|()| script))
}

/// Zsh executes a file in `fpath` as the function `_windlass` when the first word is completed, and expects its answer.
const AS_A_FILE_OF_ZSH: &str = "\
if [[ ${funcstack[1]} == _windlass ]]; then
    _clap_dynamic_completer_windlass \"$@\"
fi
";

/// The command line, without the options unless one is typed: in a list of runs they would only be in the way.
fn command() -> clap::Command {
    let command = cli::command();
    match words::current().starts_with('-') {
        true => command,
        false => without_options(command),
    }
}

fn without_options(command: clap::Command) -> clap::Command {
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_args(|argument| if argument.is_positional() { argument } else { argument.hide(true) })
        .mut_subcommands(without_options)
}

#[cfg(test)]
mod tests {
    use clap_complete::engine::ArgValueCompleter;

    use super::*;

    /// What is in the database or in a workflow file, by the names of values.
    const KNOWN: [&str; 14] = [
        "RUN",
        "RUN|JOB",
        "JOB",
        "STATUS",
        "QUEUE",
        "QUEUES",
        "SCHEDULE",
        "WORKFLOW",
        "TAG",
        "KIND",
        "TARGET",
        "FILE|NAME",
        "FILE|FOLDER",
        "FILE|NAME|RUN",
    ];

    fn incomplete(path: &str, command: &clap::Command) -> Vec<String> {
        let mut found = Vec::new();
        for argument in command.get_arguments() {
            let name = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
            let is_known = name.is_some_and(|name| KNOWN.contains(&name.as_str()));
            let is_listed = !argument.get_possible_values().is_empty();
            if is_known && !is_listed && argument.get::<ArgValueCompleter>().is_none() {
                found.push(format!("{path}: {}", argument.get_id()));
            }
        }
        for verb in command.get_subcommands() {
            let path = format!("{path} {}", verb.get_name());
            found.extend(incomplete(path.trim_start(), verb));
        }
        found
    }

    #[test]
    fn what_the_database_knows_is_completed() {
        assert_eq!(incomplete("", &cli::command()), Vec::<String>::new());
    }
}
