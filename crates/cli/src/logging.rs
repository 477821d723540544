//! The log on standard error. It shows warnings, or more for `worker` and `serve` or if `RUST_LOG` says so.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt as lines, reload};

use crate::arguments::LogFormat;
use crate::progress;

/// The filter. `set_level` changes it while the program runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Starts the log with the filter of `RUST_LOG`, or else with this level.
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
    // Only a second start could fail.
    debug_assert!(started.is_ok());
    let _first = FILTER.set(handle);
    if let Some(Err(reason)) = from_environment() {
        tracing::error!(reason, "RUST_LOG is invalid and ignored");
    }
}

/// Changes the level, unless `RUST_LOG` sets a filter.
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

/// The filter of `RUST_LOG`, or why it is invalid.
fn from_environment() -> Option<Result<EnvFilter, String>> {
    let wanted = std::env::var_os(EnvFilter::DEFAULT_ENV)?.to_string_lossy().into_owned();
    (!wanted.trim().is_empty()).then(|| parse(&wanted))
}

/// Refuses an unknown word. The filter would take it for the name of a module, and hide the log of all others.
fn parse(wanted: &str) -> Result<EnvFilter, String> {
    let is_known = |word: &str| {
        word.contains(['=', '[']) || word.starts_with("windlass") || word.parse::<LevelFilter>().is_ok()
    };
    let words: Vec<&str> = wanted.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    match words.iter().find(|word| !is_known(word)) {
        Some(word) => Err(format!(
            "`{word}` is not a level: write error, warn, info, debug, trace or off, or MODULE=LEVEL"
        )),
        None => EnvFilter::try_new(words.join(",")).map_err(|error| format!("`{wanted}`: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_level_is_refused() {
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
