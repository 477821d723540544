//! `windlass completions`: scripts for completion in a shell. The script calls this program: see [`crate::complete`].

use clap::Args;
use clap_complete::Shell;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::error::Failure;
use crate::output;

/// Print the script for completion in a shell: verbs, runs, names
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(windlass completions bash)            # in ~/.bashrc
  source <(windlass completions zsh)             # in ~/.zshrc, after compinit
  windlass completions fish > ~/.config/fish/completions/windlass.fish

The script asks windlass at each completion: for runs (latest, 3, etl), jobs,
states, workflows and their files, queues, schedules, tags. It reads the
database that --db, WINDLASS_DB or windlass.toml names, and changes nothing.";

/// Prints the script.
pub(crate) fn execute(global: &GlobalOptions, args: &CompletionsArgs) -> Result<(), Failure> {
    output::refuse_json(global, "completions", "a script", "leave -o out")?;
    let script = complete::script(&args.shell.to_string());
    match script {
        Some(Ok(script)) => output::write_text(&String::from_utf8_lossy(&script)),
        Some(Err(error)) => Err(Failure::from_output(&error)),
        None => Err(Failure::usage(
            format!("there is no completion for {}", args.shell),
            "the shells are bash, elvish, fish, powershell and zsh",
        )),
    }
}
