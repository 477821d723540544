//! The command line: the list of verbs, and the help that groups them. The arguments of a verb are in its file
//! under [`crate::commands`].

mod json_error;
mod other_names;

use std::ffi::OsString;
use std::process;

use anstyle::{AnsiColor, Style};
use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::error::{ContextKind, ContextValue};
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::arguments::{ColorMode, GlobalOptions};
use crate::commands::{
    apply, approve, artifacts, audit, bench, cancel, change, completions, db, delete, doctor, enqueue, fmt,
    graph, import, init, inspect, jobs, logs, man, notify, plan, queue, rerun, resume, retry, run, runs,
    schedule, schema, serve, signal, stats, submit, test, token, top, validate, variable, watch, why, worker,
    workflows,
};
#[cfg(feature = "web")]
use crate::commands::{open, web};
use crate::output;
use crate::text::{table, wrap};

/// The name of the program.
pub(crate) const NAME: &str = "windlass";

/// Durable workflows in one binary and one SQLite file.
///
/// Write a workflow in a file and run it. If a job, this program or the machine dies, finished jobs stay
/// finished, and `windlass resume` continues with the others.
#[derive(Debug, Parser)]
#[command(name = NAME, version, disable_version_flag = true, after_long_help = EXIT_CODES, styles = STYLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    /// Print version
    #[arg(short = 'V', long, action = ArgAction::Version, hide_short_help = true)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(run::RunArgs),
    Submit(submit::SubmitArgs),
    Resume(resume::ResumeArgs),
    Serve(serve::ServeArgs),
    Worker(worker::WorkerArgs),
    #[cfg(feature = "web")]
    Web(web::WebArgs),
    #[cfg(feature = "web")]
    Open(open::OpenArgs),
    Schedule(schedule::ScheduleArgs),
    Runs(runs::RunsArgs),
    Inspect(inspect::InspectArgs),
    Logs(logs::LogsArgs),
    Artifacts(artifacts::ArtifactsArgs),
    Watch(watch::WatchArgs),
    Why(why::WhyArgs),
    Jobs(jobs::JobsArgs),
    Stats(stats::StatsArgs),
    Top(top::TopArgs),
    Cancel(cancel::CancelArgs),
    Signal(signal::SignalArgs),
    Approve(approve::ApproveArgs),
    Reject(approve::RejectArgs),
    Retry(retry::RetryArgs),
    Change(change::ChangeArgs),
    Delete(delete::DeleteArgs),
    Rerun(rerun::RerunArgs),
    Enqueue(enqueue::EnqueueArgs),
    Queue(queue::QueueArgs),
    Variable(variable::VariableArgs),
    Init(init::InitArgs),
    Import(import::ImportArgs),
    Validate(validate::ValidateArgs),
    Test(test::TestArgs),
    Plan(plan::PlanArgs),
    Fmt(fmt::FmtArgs),
    Schema(schema::SchemaArgs),
    Graph(graph::GraphArgs),
    Apply(apply::ApplyArgs),
    Workflows(workflows::WorkflowsArgs),
    Bench(bench::BenchArgs),
    Token(token::TokenArgs),
    Audit(audit::AuditArgs),
    Notify(notify::NotifyArgs),
    Doctor(doctor::DoctorArgs),
    Db(db::DbArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

const EXIT_CODES: &str = "\
Exit codes:
    0  successful
    1  the run or the job failed
    2  wrong usage, an invalid file, a bad parameter
    3  cancelled
    4  the run timed out
    5  no such run, job, workflow or schedule
    6  the database is unavailable
  130  interrupted; `windlass resume` continues";

/// The verbs by task, in the order of the help.
const GROUPS: &[(&str, &[&str])] = &[
    #[cfg(feature = "web")]
    ("Run workflows", &["run", "submit", "resume", "serve", "worker", "web"]),
    #[cfg(not(feature = "web"))]
    ("Run workflows", &["run", "submit", "resume", "serve", "worker"]),
    ("Observe", &["runs", "inspect", "logs", "artifacts", "watch", "top", "why", "jobs", "stats"]),
    (
        "Control",
        &[
            "cancel", "retry", "rerun", "signal", "approve", "reject", "enqueue", "change", "delete",
            "queue", "schedule", "variable",
        ],
    ),
    (
        "Write workflows",
        &["init", "validate", "plan", "test", "fmt", "schema", "graph", "import", "apply", "workflows"],
    ),
    #[cfg(feature = "web")]
    ("Maintain", &["doctor", "open", "token", "audit", "notify", "bench", "db", "completions", "man"]),
    #[cfg(not(feature = "web"))]
    ("Maintain", &["doctor", "token", "audit", "notify", "bench", "db", "completions", "man"]),
];

const HEADING: Style = Style::new().bold();
/// Where the texts about verbs begin.
const VERB_COLUMN: usize = 14;
/// The width for which the ends of help texts are written.
const TEXT_COLUMNS: usize = 80;
const LITERAL: Style = AnsiColor::Cyan.on_default();
const STYLES: Styles = Styles::styled().header(HEADING).usage(HEADING).literal(LITERAL);

/// Parses the command line. `--help`, `--version` and an invalid command line end the process.
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
    // Help and errors about the command line have colours too.
    let mut command = command.color(color_of(&arguments).into());
    let mut matches = command.try_get_matches_from_mut(&arguments).unwrap_or_else(|error| {
        let words: Vec<String> =
            arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
        let error = name_variable(other_names::add(error, &command, &words), &command, &arguments);
        json_error::end(&error, &arguments)
    });
    Cli::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| json_error::end(&error, &arguments))
}

/// The value of `--color`, before the command line is parsed.
fn color_of(arguments: &[OsString]) -> ColorMode {
    let words = arguments.iter().map(|argument| argument.to_str().unwrap_or_default());
    let followed = words.clone().zip(words.clone().skip(1));
    let apart = followed.filter(|(option, _)| *option == "--color").map(|(_, value)| value);
    let joined = words.filter_map(|word| word.strip_prefix("--color="));
    let value = joined.chain(apart).last();
    value.and_then(|value| ColorMode::from_str(value, false).ok()).unwrap_or(ColorMode::Auto)
}

/// Names the variable instead of the option in an error about a value from the environment.
fn name_variable(mut error: clap::Error, command: &clap::Command, arguments: &[OsString]) -> clap::Error {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return error };
    let option = argument.split_whitespace().next().unwrap_or_default().to_owned();
    let is_written = arguments.iter().any(|argument| {
        let rest = argument.to_str().and_then(|argument| argument.strip_prefix(&option));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    });
    if let (false, Some(variable)) = (is_written, variable_of(&option, command)) {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The environment variable of an option, if it has one.
fn variable_of(option: &str, command: &clap::Command) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let own = command.get_arguments().find(|argument| argument.get_long() == Some(name));
    own.and_then(|argument| Some(argument.get_env()?.to_str()?.to_owned()))
        .or_else(|| command.get_subcommands().find_map(|verb| variable_of(option, verb)))
}

/// The clap command, with the verbs in groups.
pub(crate) fn command() -> clap::Command {
    let width = table::stdout_width();
    let command = Cli::command();
    let template = help_template(&command, width);
    // The texts are written for 80 columns.
    match width.filter(|width| *width < TEXT_COLUMNS) {
        Some(width) => refitted(command, width).help_template(template),
        None => command.help_template(template),
    }
}

/// The command with the ends of its help texts, and those of its parts, in this width.
fn refitted(command: clap::Command, width: usize) -> clap::Command {
    let fit = |text: &StyledStr| StyledStr::from(wrap::refit(&text.to_string(), Some(width)));
    let (short, long) = (command.get_after_help().map(fit), command.get_after_long_help().map(fit));
    let command = match short {
        Some(short) => command.after_help(short),
        None => command,
    };
    let command = match long {
        Some(long) => command.after_long_help(long),
        None => command,
    };
    command.mut_subcommands(|verb| refitted(verb, width))
}

/// What a verb does, broken between words so that it fits beside the verb.
fn wrapped(about: &str, width: Option<usize>) -> String {
    let most = width.map_or(usize::MAX, |width| width.saturating_sub(VERB_COLUMN).max(20));
    let (mut text, mut length) = (String::new(), 0);
    for word in about.split_whitespace() {
        let word_length = console::measure_text_width(word);
        if length > 0 && length + 1 + word_length > most {
            text.push_str(&format!("\n{:VERB_COLUMN$}", ""));
            length = 0;
        } else if length > 0 {
            text.push(' ');
            length += 1;
        }
        text.push_str(word);
        length += word_length;
    }
    text
}

fn help_template(command: &clap::Command, width: Option<usize>) -> StyledStr {
    let mut text = String::from("{about-with-newline}{usage-heading} {usage}\n");
    for (heading, verbs) in GROUPS {
        text.push_str(&format!("\n{HEADING}{heading}:{HEADING:#}\n"));
        for verb in *verbs {
            let about = command
                .find_subcommand(verb)
                .and_then(clap::Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            let about = wrapped(&about, width);
            text.push_str(&format!("  {LITERAL}{verb:<12}{LITERAL:#}{about}\n"));
        }
    }
    text.push_str(&format!("\n{HEADING}Global options:{HEADING:#}\n{{options}}{{after-help}}"));
    let closing =
        format!("`{LITERAL}windlass VERB --help{LITERAL:#}` shows the options of a verb, with examples.");
    text.push_str(&format!("\n{}\n", wrap::refit(&closing, width)));
    StyledStr::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_declarations() {
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
        for line in help_template(&command(), None).to_string().lines() {
            assert!(console::measure_text_width(line) < 80, "{line}");
        }
        let narrow = help_template(&command(), Some(60)).to_string();
        for line in narrow.lines().filter(|line| line.starts_with("  ") || line.contains("VERB")) {
            assert!(console::measure_text_width(line) <= 60, "{line}");
        }
    }

    #[test]
    fn the_texts_at_the_end_of_a_help_fit_a_narrow_terminal() {
        let mut checked = 0;
        for verb in refitted(command(), 60).get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            // A command stays whole, so that it can be copied.
            for line in help.lines().filter(|line| !line.starts_with(' ')) {
                assert!(console::measure_text_width(line) <= 60, "{}: {line}", verb.get_name());
                checked += 1;
            }
        }
        assert!(checked > 100, "{checked}");
    }

    #[test]
    fn every_verb_shows_an_example() {
        for verb in command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("windlass "), "{} has no example", verb.get_name());
        }
    }
}
