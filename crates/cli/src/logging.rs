//! What the engine tells about its work, on standard error: warnings only, unless `RUST_LOG` asks for
//! more or the verb is `worker` or `serve`, whose log is all that they show.

use std::fmt;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt as lines, reload};

use crate::progress;

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    Text,
    /// One JSON object a line.
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

/// What a verb whose log is all that it shows takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogOptions {
    /// How the log is written to standard error [default: text]
    #[arg(long, value_name = "FORMAT", env = "WINDLASS_LOG_FORMAT", hide_env_values = true)]
    #[arg(hide_possible_values = true)]
    log_format: Option<LogFormat>,
}

impl LogOptions {
    /// What was said.
    pub(crate) fn format(&self) -> Option<LogFormat> {
        self.log_format
    }
}

/// The filter, which can be changed while the program runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts to show what is logged at this level and above, or what `RUST_LOG` asks for.
pub(crate) fn start(level: &str, format: LogFormat) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let has_colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let layer = lines::layer()
        .with_writer(progress::stderr_beside_view)
        .with_ansi(has_colour)
        .with_target(false)
        .log_internal_errors(false);
    let layer = match format {
        LogFormat::Text => layer.boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let started = tracing_subscriber::registry().with(filter).with(layer).try_init();
    // Only a second start could fail, and there is none.
    debug_assert!(started.is_ok());
    let _first = FILTER.set(handle);
    if let Some(Err(reason)) = from_environment() {
        tracing::error!(reason, "RUST_LOG is not used");
    }
}

/// Shows another level from now on, unless `RUST_LOG` asks for something.
pub(crate) fn set_level(level: &str) {
    let changed = FILTER.get().map(|handle| handle.reload(filter(level)));
    debug_assert!(matches!(changed, None | Some(Ok(()))), "the subscriber lives as long as the program");
}

fn filter(level: &str) -> EnvFilter {
    match from_environment() {
        Some(Ok(wanted)) => wanted,
        Some(Err(_)) | None => EnvFilter::new(level),
    }
}

/// What `RUST_LOG` asks for, or why that can't be.
fn from_environment() -> Option<Result<EnvFilter, String>> {
    let wanted = std::env::var_os(EnvFilter::DEFAULT_ENV)?.to_string_lossy().into_owned();
    (!wanted.trim().is_empty()).then(|| parse(&wanted))
}

/// A word alone that is no level would be taken for the part of a program of which all is shown, and nothing else: the
/// log would be silent.
fn parse(wanted: &str) -> Result<EnvFilter, String> {
    let is_known = |word: &str| {
        word.contains(['=', '[']) || word.starts_with("windlass") || word.parse::<LevelFilter>().is_ok()
    };
    let words: Vec<&str> = wanted.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    match words.iter().find(|word| !is_known(word)) {
        Some(word) => {
            Err(format!("`{word}` is no level: write error, warn, info, debug, trace or off, or PART=LEVEL"))
        }
        None => EnvFilter::try_new(words.join(",")).map_err(|error| format!("`{wanted}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_level_is_refused() {
        for wanted in
            ["warn", "DEBUG", "off", "3", "windlass_engine", "info,rustls=trace", " info , ", "[a{b=1}]"]
        {
            assert!(parse(wanted).is_ok(), "{wanted}");
        }
        for wanted in ["verbose", "info,verbose", "windlass=loud", "rustls"] {
            assert!(parse(wanted).is_err(), "{wanted}");
        }
    }
}
