//! What a service works with: options, else the environment, else the configuration file, else defaults.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use windlass::store::Scope;
use windlass::{Retention, WorkerOptions};

use super::config::{self, Config, GRACE_MAX};
use crate::cli::{Configured, GlobalOptions};
use crate::error::Failure;
use crate::execution::WorkOptions;
use crate::files::Origin;
use crate::logging::{LogFormat, LogOptions};
use crate::time;
use crate::workflow_files::CONFIG_FILE;

/// How long running jobs have to end when nobody says.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// The level of the log when nobody says.
pub(crate) const DEFAULT_LEVEL: &str = "info";

/// What can be said on the command line and in the environment.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceOptions {
    /// The configuration file [default: ./windlass.toml if it exists]
    #[arg(long, value_name = "FILE", env = "WINDLASS_CONFIG", hide_env_values = true)]
    config: Option<PathBuf>,

    /// A folder whose workflows are registered, now and when a file changes
    #[arg(long, value_name = "FOLDER", env = "WINDLASS_WORKFLOWS", hide_env_values = true)]
    workflows: Option<PathBuf>,

    /// Only jobs of these queues, separated by commas; without it, all queues
    #[arg(long = "queue", value_name = "QUEUES", value_delimiter = ',')]
    queues: Option<Vec<String>>,

    #[command(flatten)]
    work: WorkOptions,

    /// How long running jobs may go on after SIGTERM before others take them over [default: 30s]
    #[arg(long, value_name = "DURATION", env = "WINDLASS_GRACE", value_parser = parse_grace)]
    #[arg(hide_env_values = true)]
    grace: Option<Duration>,

    #[command(flatten)]
    log: LogOptions,
}

/// What holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// The configuration file, if one was read.
    pub(crate) config: Option<PathBuf>,
    pub(crate) workflows: Option<PathBuf>,
    pub(crate) queues: Vec<String>,
    pub(crate) capabilities: Vec<String>,
    pub(crate) version: i64,
    pub(crate) threads: i64,
    pub(crate) grace: Duration,
    pub(crate) retention: Retention,
    pub(crate) log_format: LogFormat,
    pub(crate) log_level: &'static str,
}

/// When the configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigRead {
    /// At the start.
    First,
    /// While the service works.
    Again,
}

impl Settings {
    /// Reads the configuration file and puts everything together.
    pub(crate) fn read(
        options: &ServiceOptions,
        read: ConfigRead,
    ) -> Result<(Settings, Configured), Failure> {
        let path = options.config.clone().or_else(default_config);
        let origin = match (&options.config, read) {
            (Some(_), ConfigRead::First) => Origin::Named,
            // What a pipe had was read at the start, and nobody may be there to give more.
            (Some(_), ConfigRead::Again) | (None, ConfigRead::First | ConfigRead::Again) => Origin::Found,
        };
        let config =
            path.as_deref().map_or_else(|| Ok(Config::default()), |path| config::load(path, origin))?;
        let queues = options.queues.clone().or(config.queues).unwrap_or_default();
        if queues.iter().any(String::is_empty) {
            return Err(Failure::usage(
                "the name of a queue is empty",
                "write names separated by commas, for example --queue default,mail",
            ));
        }
        let settings = Settings {
            config: path,
            workflows: options.workflows.clone().or(config.workflows),
            queues,
            capabilities: options.work.capabilities.clone().or(config.capabilities).unwrap_or_default(),
            version: options.work.version.or(config.version).unwrap_or(0),
            threads: options.work.threads.or(config.threads).unwrap_or(WorkerOptions::default().threads),
            grace: options.grace.or(config.grace).unwrap_or(DEFAULT_GRACE),
            retention: config.retention,
            log_format: options.log.format().or(config.log_format).unwrap_or(LogFormat::Text),
            log_level: config.log_level.unwrap_or(DEFAULT_LEVEL),
        };
        Ok((settings, config.global))
    }

    /// Which jobs the service executes.
    pub(crate) fn scope(&self) -> Scope {
        match self.queues.as_slice() {
            [] => Scope::Everything,
            queues => Scope::Queues(queues.to_vec()),
        }
    }

    /// What differs and takes effect only when the service is started again.
    pub(crate) fn needs_restart(&self, new: &Settings) -> Vec<&'static str> {
        let parts = [
            ("queues", self.queues != new.queues),
            ("capabilities", self.capabilities != new.capabilities),
            ("version", self.version != new.version),
            ("threads", self.threads != new.threads),
            ("log_format", self.log_format != new.log_format),
        ];
        parts.into_iter().filter(|(_name, differs)| *differs).map(|(name, _differs)| name).collect()
    }

    /// As a configuration file would say it, with everything that holds.
    pub(crate) fn text(&self, global: &GlobalOptions) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<13}{value}");
        };
        let list = |names: &[String], none: &str| match names {
            [] => none.to_owned(),
            names => names.join(", "),
        };
        let path = |path: &Option<PathBuf>| {
            path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
        };
        line("config", path(&self.config));
        line("database", global.database().shown());
        line("durability", global.durability().to_string());
        line("lease", duration_text(global.lease()));
        line("workflows", path(&self.workflows));
        line("threads", self.threads.to_string());
        line("queues", list(&self.queues, "all"));
        line("capabilities", list(&self.capabilities, "none"));
        line("version", self.version.to_string());
        line("grace", duration_text(self.grace));
        line("retention", retention_text(self.retention));
        line("log", format!("{}, {}", self.log_format, self.log_level));
        text
    }
}

/// In words.
pub(crate) fn retention_text(retention: Retention) -> String {
    let age = retention.max_age_ms.map(|ms| format!("for {}", windlass::workflow::duration::to_text(ms)));
    let runs = retention.max_runs_per_workflow.map(|runs| format!("{runs} runs of each workflow"));
    match (age, runs) {
        (None, None) => "everything is kept".to_owned(),
        (age, runs) => age.into_iter().chain(runs).collect::<Vec<_>>().join(", at most "),
    }
}

fn duration_text(duration: Duration) -> String {
    windlass::workflow::duration::to_text(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

fn default_config() -> Option<PathBuf> {
    let path = Path::new(CONFIG_FILE);
    path.exists().then(|| path.to_owned())
}

fn parse_grace(text: &str) -> Result<Duration, String> {
    let grace = time::parse_duration(text)?;
    if grace <= GRACE_MAX { Ok(grace) } else { Err("it is longer than a day".to_owned()) }
}
