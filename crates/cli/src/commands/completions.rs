//! `windlass completions`: scripts for the completion of verbs and options in a shell.

use clap::Args;
use clap_complete::Shell;

use crate::arguments::GlobalOptions;
use crate::error::Failure;
use crate::output;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  source <(windlass completions bash)
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish";

/// Prints the script. `command` is the whole command line.
pub(crate) fn execute(
    global: &GlobalOptions,
    command: &mut clap::Command,
    args: &CompletionsArgs,
) -> Result<(), Failure> {
    output::refuse_json(global, "completions", "a script", "leave -o out")?;
    // The script goes into memory first, because clap_complete panics when it writes to a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "windlass", &mut script);
    output::write_text(&String::from_utf8_lossy(&script))
}
