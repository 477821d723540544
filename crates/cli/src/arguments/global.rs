//! The global options, which every verb takes.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use windlass_worker::LinkLocal;

use super::{DatabaseArgument, parse_duration};
use crate::shell_words::quoted;

/// The shortest lease. A worker must be able to send a few heartbeats before it ends.
pub(crate) const MIN_LEASE: Duration = Duration::from_millis(100);
/// The longest lease.
pub(crate) const MAX_LEASE: Duration = Duration::from_secs(24 * 3600);
/// The lease when none is given.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);
/// The database when none is given.
const DEFAULT_DB: &str = "windlass.db";

/// The options that every verb takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct GlobalOptions {
    /// A file, or postgres://HOST/NAME [env: WINDLASS_DB] [default: windlass.db]
    #[arg(long, global = true, value_name = "PATH|URL", help_heading = "Global options")]
    db: Option<DatabaseArgument>,

    /// The format of standard output: text, json or jsonl
    #[arg(short, long, global = true, value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = "Global options", hide_possible_values = true)]
    pub(crate) output: OutputFormat,

    /// Say only warnings and errors, besides the data
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub(crate) quiet: bool,

    /// Say more: the log of the engine; twice, every step of it
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = "Global options")]
    #[arg(hide_short_help = true)]
    pub(crate) verbose: u8,

    /// Use colours: auto, always or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_default_value = true)]
    #[arg(help_heading = "Global options", hide_possible_values = true, hide_short_help = true)]
    pub(crate) color: ColorMode,

    /// Show times in UTC, not in local time
    #[arg(long, global = true, help_heading = "Global options", hide_short_help = true)]
    pub(crate) utc: bool,

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

    /// The configuration file [env: WINDLASS_CONFIG]
    /// [default: windlass.toml in this folder or the nearest one above]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options", hide_short_help = true)]
    config: Option<PathBuf>,

    /// The values of a configuration file. The command line and the environment override them.
    #[arg(skip)]
    configured: ConfiguredOptions,
}

/// Global options from a configuration file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfiguredOptions {
    pub(crate) database: Option<DatabaseArgument>,
    pub(crate) durability: Option<Durability>,
    pub(crate) lease: Option<Duration>,
    /// The folder for files of runs.
    pub(crate) files: Option<PathBuf>,
    /// Whether requests of jobs may go to link-local addresses.
    pub(crate) link_local: Option<LinkLocal>,
    /// The program that runs containers.
    pub(crate) container_program: Option<String>,
}

impl GlobalOptions {
    /// The configuration file that the command line or the environment names.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| path_of("WINDLASS_CONFIG"))
    }

    /// The folder for files of runs of a database on a server.
    pub(crate) fn files(&self) -> Option<PathBuf> {
        path_of("WINDLASS_FILES").or_else(|| self.configured.files.clone())
    }

    /// Whether requests of jobs may go to link-local addresses.
    pub(crate) fn link_local(&self) -> LinkLocal {
        self.configured.link_local.unwrap_or_default()
    }

    /// The program that runs the containers of jobs.
    pub(crate) fn container_program(&self) -> Option<String> {
        self.configured.container_program.clone()
    }

    /// The database: from `--db`, else from `WINDLASS_DB` unless it is empty, else from the configuration, else
    /// the default.
    pub(crate) fn database(&self) -> DatabaseArgument {
        let given = self.db.clone().or_else(from_environment).or_else(|| self.configured.database.clone());
        given.unwrap_or_else(|| DatabaseArgument::from(OsString::from(DEFAULT_DB)))
    }

    /// What a commit survives.
    pub(crate) fn durability(&self) -> Durability {
        self.durability.or(self.configured.durability).unwrap_or(Durability::Full)
    }

    /// How long a silent worker keeps its jobs.
    pub(crate) fn lease(&self) -> Duration {
        self.lease.or(self.configured.lease).unwrap_or(DEFAULT_LEASE)
    }

    /// The names of the options that have another value in `other`.
    pub(crate) fn differences(&self, other: &GlobalOptions) -> Vec<&'static str> {
        let options = [
            ("database", self.database().shown() != other.database().shown()),
            ("durability", self.durability() != other.durability()),
            ("lease", self.lease() != other.lease()),
            ("files.dir", self.files() != other.files()),
            ("container.program", self.container_program() != other.container_program()),
            ("http.allow_link_local", self.link_local() != other.link_local()),
        ];
        options.into_iter().filter(|(_name, differs)| *differs).map(|(name, _differs)| name).collect()
    }

    /// The same options with those of a configuration file.
    pub(crate) fn configured(self, configured: ConfiguredOptions) -> GlobalOptions {
        GlobalOptions { configured, ..self }
    }

    /// Whether a password is on the command line, where everybody who lists processes can read it.
    pub(crate) fn shows_password(&self) -> bool {
        self.db.as_ref().is_some_and(DatabaseArgument::has_password)
    }

    /// The same options with another database.
    pub(crate) fn with_database(&self, database: OsString) -> GlobalOptions {
        GlobalOptions { db: Some(database.into()), ..self.clone() }
    }

    /// A command for the user to type next. It names the configuration and the database if the command line did, but never
    /// a password.
    pub(crate) fn hint(&self, verb: &str) -> String {
        let mut hint = format!("windlass {verb}");
        if let Some(config) = &self.config {
            hint.push_str(&format!(" --config {}", quoted(&config.display().to_string())));
        }
        if let Some(database) = &self.db {
            hint.push_str(&format!(" --db {}", quoted(&database.shown())));
        }
        hint
    }
}

fn path_of(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn from_environment() -> Option<DatabaseArgument> {
    std::env::var_os("WINDLASS_DB").filter(|database| !database.is_empty()).map(DatabaseArgument::from)
}

/// Reads a lease; for clap.
fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = parse_duration(text)?;
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        return Ok(lease);
    }
    Err("a lease is between 100ms and 1day".to_owned())
}

/// When colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorMode {
    /// On a terminal, unless `NO_COLOR` is set; elsewhere if `CLICOLOR_FORCE` is set.
    Auto,
    /// Also in a pipe.
    Always,
    /// Nowhere.
    Never,
}

impl From<ColorMode> for clap::ColorChoice {
    fn from(mode: ColorMode) -> clap::ColorChoice {
        match mode {
            ColorMode::Auto => clap::ColorChoice::Auto,
            ColorMode::Always => clap::ColorChoice::Always,
            ColorMode::Never => clap::ColorChoice::Never,
        }
    }
}

impl From<ColorMode> for anstream::ColorChoice {
    fn from(mode: ColorMode) -> anstream::ColorChoice {
        match mode {
            ColorMode::Auto => anstream::ColorChoice::Auto,
            ColorMode::Always => anstream::ColorChoice::Always,
            ColorMode::Never => anstream::ColorChoice::Never,
        }
    }
}

/// The format of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Durability {
    /// A power cut: the commit is on the disk before the command continues.
    Full,
    /// `kill -9`. A power cut may lose the last moments.
    Normal,
}

impl From<Durability> for windlass_db::Durability {
    fn from(durability: Durability) -> windlass_db::Durability {
        match durability {
            Durability::Full => windlass_db::Durability::Full,
            Durability::Normal => windlass_db::Durability::Normal,
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Durability::Full => "full",
            Durability::Normal => "normal",
        })
    }
}
