//! The log on standard error. It shows warnings, or more for `worker` and `serve`, for `--verbose`, or if `RUST_LOG`
//! says so.

use std::fmt;
use std::io;
use std::sync::OnceLock;

use anstyle::AnsiColor;
use tracing::{Event, Level, Subscriber};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt as lines, reload};

use crate::arguments::{GlobalOptions, LogFormat};
use crate::progress;
use crate::text::time;

/// The filter. `set_level` changes it while the program runs.
static FILTER: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// What a verb shows that is no service: warnings, but not the failures of jobs, which it shows itself.
const FOR_PEOPLE: &str = "warn,windlass_worker::dispatcher::operator_log=off";

/// The form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A message without a time, like the other messages of a verb.
    Message,
    /// A line with its time and level.
    Line,
    /// An object in JSON.
    Json,
}

/// Starts the log of a verb that is no service: its warnings are messages. With `--verbose`, or a filter in `RUST_LOG`, it is a
/// log with times.
pub(crate) fn start_for_people(verbose: u8) {
    let is_asked_for = verbose > 0 || from_environment().is_some();
    let form = if is_asked_for { Form::Line } else { Form::Message };
    start_with(level(FOR_PEOPLE, verbose), form);
}

/// Starts the log of a service with the filter of `RUST_LOG`, or else with this level.
pub(crate) fn start(level: &str, format: LogFormat) {
    start_with(
        level,
        match format {
            LogFormat::Text => Form::Line,
            LogFormat::Json => Form::Json,
        },
    );
}

/// The level for a number of `--verbose`.
fn level(usual: &str, verbose: u8) -> &str {
    match verbose {
        0 => usual,
        1 => "info",
        2.. => "debug",
    }
}

/// The level of a service. `--quiet` and `--verbose` override its own.
pub(crate) fn service_level<'l>(usual: &'l str, global: &GlobalOptions) -> &'l str {
    match (global.quiet, global.verbose) {
        (true, _) => "warn",
        (false, 0) => usual,
        (false, 1..) => "debug",
    }
}

fn start_with(level: &str, form: Form) {
    let (filter, handle) = reload::Layer::new(filter(level));
    let has_colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    let layer = lines::layer()
        .with_writer(progress::stderr_beside_view)
        .with_ansi(has_colour)
        .with_target(false)
        .log_internal_errors(false);
    let layer = match form {
        Form::Message => layer.event_format(Message).boxed(),
        Form::Line => layer.with_timer(LogTime).boxed(),
        Form::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let started = tracing_subscriber::registry().with(filter).with(layer).try_init();
    // Only a second start could fail.
    debug_assert!(started.is_ok());
    let _first = FILTER.set(handle);
    if let Some(Err(reason)) = from_environment() {
        tracing::error!(reason, "RUST_LOG is invalid and ignored");
    }
}

/// Writes the time of a line.
struct LogTime;

impl FormatTime for LogTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        writer.write_str(&time::log_time(time::now_ms()))
    }
}

/// Writes an event as a message: `warning: the database can be used again`.
struct Message;

impl<S, N> FormatEvent<S, N> for Message
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (label, colour) = match *event.metadata().level() {
            Level::ERROR => ("error", AnsiColor::Red),
            Level::WARN => ("warning", AnsiColor::Yellow),
            Level::INFO | Level::DEBUG | Level::TRACE => ("note", AnsiColor::Cyan),
        };
        let style = colour.on_default().bold();
        match writer.has_ansi_escapes() {
            true => write!(writer, "{style}{label}:{style:#} ")?,
            false => write!(writer, "{label}: ")?,
        }
        context.field_format().format_fields(writer.by_ref(), event)?;
        writeln!(writer)
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
