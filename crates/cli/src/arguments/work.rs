//! The options of verbs that execute jobs.

use clap::Args;

use super::GlobalOptions;
use super::names::parse_name;
use crate::shell_words::quoted;

/// How many jobs this process executes, and which.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct WorkOptions {
    /// How many jobs run at once [default: one per processor, at least 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..=1024))]
    pub(crate) threads: Option<i64>,

    /// Capabilities that this worker has, separated by commas, for example gpu
    #[arg(long = "capability", value_name = "NAMES", value_delimiter = ',', value_parser = parse_name)]
    pub(crate) capabilities: Option<Vec<String>>,

    /// The version of your code on this worker. It leaves jobs that need a later one to other workers
    /// [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) code_version: Option<i64>,
}

impl WorkOptions {
    /// A command for the user to type next, with the capabilities and the code version of this process.
    pub(crate) fn hint(&self, global: &GlobalOptions, verb: &str) -> String {
        let mut verb = verb.to_owned();
        self.push_what_is_executed(&mut verb);
        global.hint(&verb)
    }

    /// Adds these options to a command for the user to type next.
    pub(crate) fn push_options(&self, command: &mut String) {
        push_option(command, "threads", self.threads);
        self.push_what_is_executed(command);
    }

    fn push_what_is_executed(&self, command: &mut String) {
        push_option(command, "capability", self.capabilities.as_ref().map(|names| names.join(",")));
        push_option(command, "code-version", self.code_version);
    }
}

/// Adds an option that has a value to a command for the user to type next.
pub(crate) fn push_option(command: &mut String, name: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        command.push_str(&format!(" --{name} {}", quoted(&value.to_string())));
    }
}
