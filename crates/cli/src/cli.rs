//! The command line as a whole: the global options, the list of verbs, and the help that groups
//! them. What one verb takes is in its own file under [`crate::commands`].

use std::ffi::OsString;
use std::fmt;
use std::process;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use windlass::workflow::limits;

use crate::commands::Command;
use crate::output::{self, Format};
use crate::place::Named;
use crate::time;

/// Durable workflows in one binary and one SQLite file.
///
/// Write a workflow in a file and run it. Whatever dies (a job, this program, the machine), the
/// work done so far stays done and the rest carries on.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, after_long_help = EXIT_CODES, styles = STYLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every verb understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalOptions {
    /// The database: a SQLite file, created on first use, or postgres://user@host/dbname
    /// [env: WINDLASS_DB] [default: windlass.db]
    #[arg(long, global = true, value_name = "PATH|URL", help_heading = "Global options")]
    db: Option<Named>,

    /// The format of standard output
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = "Global options")]
    pub(crate) output: Format,

    /// What a commit survives: `full`, a power cut; `normal`, a crash of this program [default: full]
    #[arg(long, global = true, value_name = "MODE", env = "WINDLASS_DURABILITY")]
    #[arg(help_heading = "Global options", hide_env_values = true)]
    #[arg(hide_short_help = true, hide_possible_values = true)]
    durability: Option<Durability>,

    /// How long other workers wait for a silent worker before they take its jobs [default: 30s]
    #[arg(long, global = true, value_name = "DURATION", env = "WINDLASS_LEASE")]
    #[arg(value_parser = parse_lease, hide_short_help = true)]
    #[arg(help_heading = "Global options", hide_env_values = true)]
    lease: Option<Duration>,

    /// What a configuration file says: it counts where neither the command line nor the environment does.
    #[arg(skip)]
    configured: Configured,
}

/// Global options from a configuration file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Configured {
    pub(crate) database: Option<Named>,
    pub(crate) durability: Option<Durability>,
    pub(crate) lease: Option<Duration>,
}

impl GlobalOptions {
    /// The database: what `--db` says, or else `WINDLASS_DB` unless it is empty, or else the configuration, or
    /// else the default.
    pub(crate) fn database(&self) -> Named {
        let named = self.db.clone().or_else(from_environment).or_else(|| self.configured.database.clone());
        named.unwrap_or_else(|| Named::from(OsString::from(DEFAULT_DB)))
    }

    /// What a commit survives.
    pub(crate) fn durability(&self) -> Durability {
        self.durability.or(self.configured.durability).unwrap_or(Durability::Full)
    }

    /// How long a worker that is silent keeps its jobs.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.or(self.configured.lease).unwrap_or(DEFAULT_LEASE)
    }

    /// What of it another configuration makes different.
    pub(crate) fn differences(&self, other: &GlobalOptions) -> Vec<&'static str> {
        let parts = [
            ("database", self.database().shown() != other.database().shown()),
            ("durability", self.durability() != other.durability()),
            ("lease", self.lease() != other.lease()),
        ];
        parts.into_iter().filter(|(_name, differs)| *differs).map(|(name, _differs)| name).collect()
    }

    /// The same with what a configuration file says.
    pub(crate) fn configured(self, configured: Configured) -> GlobalOptions {
        GlobalOptions { configured, ..self }
    }

    /// Whether a password stands on the command line, where everybody who lists processes can read it.
    pub(crate) fn shows_password(&self) -> bool {
        self.db.as_ref().is_some_and(Named::has_password)
    }

    /// The same with another database.
    pub(crate) fn with_database(&self, database: OsString) -> GlobalOptions {
        GlobalOptions { db: Some(database.into()), ..self.clone() }
    }

    /// A command that the user may type next. The database is named again when it came by `--db` or from a
    /// configuration file, but never with its password.
    pub(crate) fn hint(&self, verb: &str) -> String {
        let configured = || self.configured.database.as_ref().filter(|_| from_environment().is_none());
        match self.db.as_ref().or_else(configured) {
            Some(named) => format!("windlass {verb} --db {}", quoted(&named.shown())),
            None => format!("windlass {verb}"),
        }
    }
}

fn from_environment() -> Option<Named> {
    std::env::var_os("WINDLASS_DB").filter(|named| !named.is_empty()).map(Named::from)
}

/// A lease must leave room for a few heartbeats.
fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = time::parse_duration(text)?;
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(lease);
    }
    Err("a lease lasts from 100ms to 1day".to_owned())
}

/// Whether a queue or a capability may be called so.
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    match text.chars().count() {
        0 => Err("a name is empty; write names separated by commas".to_owned()),
        count if count > limits::NAME_CHARS => {
            Err(format!("{count} characters; the limit is {}", limits::NAME_CHARS))
        }
        _ if text.trim() != text => Err("it begins or ends with a space".to_owned()),
        _ => Ok(()),
    }
}

/// A name from the command line.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// A word as a shell takes it.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// A power cut: the commit is on the disk before the command goes on.
    Full,
    /// `kill -9`; a power cut may lose the last moments.
    Normal,
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Durability::Full => "full",
            Durability::Normal => "normal",
        })
    }
}

/// The shortest lease.
pub(crate) const MIN_LEASE: Duration = Duration::from_millis(100);
/// The longest lease.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(24 * 3600);
/// The lease when none is said.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// The database when none is named.
const DEFAULT_DB: &str = "windlass.db";

const EXIT_CODES: &str = "\
Exit codes:
    0  successful
    1  the run or the job failed
    2  wrong usage, an invalid file, a bad parameter
    3  cancelled
    4  the run timed out
    5  what was asked for does not exist
    6  the database is unavailable
  130  interrupted; `windlass resume` carries on";

/// The verbs by what people want to do, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run workflows", &["run", "submit", "resume", "serve", "worker"]),
    ("Observe", &["runs", "inspect", "logs", "watch", "why", "jobs", "stats"]),
    ("Control", &["cancel", "retry", "enqueue", "queue", "schedule"]),
    ("Write workflows", &["validate", "graph", "apply", "workflows"]),
    ("Maintain", &["doctor", "bench", "db", "completions"]),
];

const HEADING: Style = Style::new().bold();
const LITERAL: Style = AnsiColor::Cyan.on_default();
const STYLES: Styles = Styles::styled().header(HEADING).usage(HEADING).literal(LITERAL);

/// Reads the command line of this process. Ends the process on `--help`, `--version` and mistakes.
pub(crate) fn parse() -> Cli {
    let mut command = command();
    if std::env::args_os().len() <= 1 {
        let help = command.render_help();
        let code = match output::write_text(&help.ansi().to_string()) {
            Ok(()) => 0,
            Err(failure) => i32::from(failure.exit_code()),
        };
        process::exit(code);
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let mut matches = command
        .try_get_matches_from_mut(&arguments)
        .unwrap_or_else(|error| blame_variable(error, &command, &arguments).exit());
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit())
}

/// A bad value that came from the environment is blamed on its variable, not on an option that nobody wrote.
fn blame_variable(mut error: clap::Error, command: &clap::Command, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(blamed)) = error.get(ContextKind::InvalidArg) else { return error };
    let option = blamed.split_whitespace().next().unwrap_or_default().to_owned();
    let is_written = arguments.iter().any(|argument| {
        let rest = argument.to_str().and_then(|argument| argument.strip_prefix(&option));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    });
    if let (false, Some(variable)) = (is_written, variable_of(&option, command)) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The variable that sets an option, when there is one.
fn variable_of(option: &str, command: &clap::Command) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let own = command.get_arguments().find(|argument| argument.get_long() == Some(name));
    own.and_then(|argument| Some(argument.get_env()?.to_str()?.to_owned()))
        .or_else(|| command.get_subcommands().find_map(|verb| variable_of(option, verb)))
}

/// The clap command with the grouped help; also what `completions` describes.
pub(crate) fn command() -> clap::Command {
    let command = Cli::command();
    let template = help_template(&command);
    command.help_template(template)
}

fn help_template(command: &clap::Command) -> StyledStr {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, verbs) in GROUPS {
        text.push_str(&format!("\n{HEADING}{heading}:{HEADING:#}\n"));
        for verb in *verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(clap::Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            text.push_str(&format!("  {LITERAL}{verb:<12}{LITERAL:#}{about}\n"));
        }
    }
    text.push_str(&format!("\n{HEADING}Global options:{HEADING:#}\n{{options}}{{after-help}}"));
    text.push_str(&format!(
        "\n\n`{LITERAL}windlass VERB --help{LITERAL:#}` shows the options of a verb, with examples.\n"
    ));
    StyledStr::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let cases = [("a/b-c.db", "a/b-c.db"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''")];
        for (word, expected) in cases {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn clap_finds_no_fault() {
        command().debug_assert();
    }

    #[test]
    fn every_verb_is_in_one_group_of_the_help() {
        let mut verbs: Vec<String> =
            command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| *verbs).copied().collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(verbs, grouped);
    }

    #[test]
    fn the_list_of_verbs_fits_a_terminal() {
        for line in help_template(&command()).to_string().lines() {
            assert!(console::measure_text_width(line) < 80, "{line}");
        }
    }

    #[test]
    fn every_verb_shows_an_example() {
        for verb in command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("windlass "), "{} has no example", verb.get_name());
        }
    }
}
