//! The option of verbs that show a log.

use std::fmt;

use clap::{Args, ValueEnum};

/// The format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

/// The options of `worker` and `serve`, which show only a log.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogOptions {
    /// The format of the log on standard error: text or json [default: text]
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", hide_env_values = true)]
    #[arg(hide_possible_values = true)]
    log_format: Option<LogFormat>,
}

impl LogOptions {
    /// The format, if the command line or the environment gives one.
    pub(crate) fn format(&self) -> Option<LogFormat> {
        self.log_format
    }
}
