//! An invalid command line for a program that asked for JSON.

use std::ffi::OsString;
use std::process;

use clap::ValueEnum;

use crate::arguments::OutputFormat;
use crate::error::Failure;

/// Ends the process after `--help`, `--version` or an invalid command line. A program gets the error as JSON.
pub(super) fn end(error: &clap::Error, arguments: &[OsString]) -> ! {
    let format = requested_format(arguments);
    if !error.use_stderr() || format == OutputFormat::Text {
        error.exit();
    }
    let failure = usage(&error.render().to_string());
    failure.conclude(format);
    process::exit(i32::from(failure.exit_code()));
}

/// The format that an invalid command line asks for.
fn requested_format(arguments: &[OsString]) -> OutputFormat {
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let value_after = |index: usize| texts.get(index + 1).copied();
    let given = texts.iter().enumerate().find_map(|(index, text)| match *text {
        "-o" | "--output" => value_after(index),
        text => text.strip_prefix("--output=").or_else(|| text.strip_prefix("-o")),
    });
    given
        .and_then(|word| OutputFormat::from_str(word.trim_start_matches('='), false).ok())
        .unwrap_or(OutputFormat::Text)
}

/// The parts of an error of clap: `error: …`, lines that belong to it, `tip: …`, `Usage: …`.
fn usage(text: &str) -> Failure {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_message =
        |line: &&str| !["tip:", "Usage:", "For more information"].iter().any(|start| line.starts_with(start));
    let message: Vec<&str> = lines().take_while(is_message).collect();
    let tips = lines().filter_map(|line| line.strip_prefix("tip:")).map(str::trim);
    let usage = lines().find_map(|line| line.strip_prefix("Usage:")).map(str::trim);
    let usage = usage.map(|usage| format!("usage: {usage}"));
    let help: Vec<String> = tips.map(str::to_owned).chain(usage).collect();
    let message = message.join(" ");
    Failure::usage(message.strip_prefix("error: ").unwrap_or(&message), help.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_command_line_has_a_message_and_a_next_step() {
        let text = "error: unexpected argument '--run-ky' found\n\n  tip: a similar argument exists: '--run-key'\n\n\
                    Usage: windlass run <FILE|NAME>\n\nFor more information, try '--help'.\n";
        let help = "a similar argument exists: '--run-key'; usage: windlass run <FILE|NAME>";
        assert_eq!(usage(text), Failure::usage("unexpected argument '--run-ky' found", help));
        let missing = "error: the following required arguments were not provided:\n  <FILE>\n\nUsage: windlass x <FILE>\n";
        let message = "the following required arguments were not provided: <FILE>";
        assert_eq!(usage(missing), Failure::usage(message, "usage: windlass x <FILE>"));
    }

    #[test]
    fn the_format_is_known_although_the_command_line_is_invalid() {
        let cases = [
            (&["-o", "json"][..], OutputFormat::Json),
            (&["-ojsonl"], OutputFormat::Jsonl),
            (&["--output=json", "runs"], OutputFormat::Json),
            (&["--output", "jsonl"], OutputFormat::Jsonl),
            (&["-o", "xml"], OutputFormat::Text),
            (&["-o"], OutputFormat::Text),
            (&["runs"], OutputFormat::Text),
        ];
        for (arguments, expected) in cases {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(requested_format(&arguments), expected, "{arguments:?}");
        }
    }
}
