//! `windlass notify`: lists the targets of notifications and what they were told, and tries them.

use clap::Args;
use serde_json::json;
use windlass_engine::store::{Notification, NotificationFilter, NotificationStatus, TargetSummary};
use windlass_views::{NotificationView, NotifyView, TargetView, TriedTarget, rfc3339};
use windlass_worker::{Message, MessageOutput, NotSent, Recipient, Stop, send};

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::complete;
use crate::config::{self, Means, NotifyTarget};
use crate::database::Database;
use crate::error::Failure;
use crate::output::{self, Output};
use crate::service::notification_variables;
#[cfg(feature = "otlp")]
use crate::service::try_collector;
use crate::text::style::{GREEN, RED, YELLOW, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// List the targets of notifications, or try them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyArgs {
    /// Only this target
    #[arg(value_name = "TARGET", add = complete::notify_target())]
    target: Option<String>,

    /// Send a test message to each target, or to TARGET, and show what came back
    #[arg(long, conflicts_with_all = ["limit", "before"])]
    test: bool,

    /// How many notifications are listed
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=1_000))]
    limit: i64,

    /// Only notifications with a number below this one
    #[arg(long, value_name = "NUMBER")]
    before: Option<i64>,
}

const EXAMPLES: &str = "\
Examples:
  windlass notify                # the targets, and the newest notifications
  windlass notify --test         # sends a test message to each target
  windlass notify ops --test

Targets are in [notify.NAME] of windlass.toml. `windlass serve` delivers; a
test is sent from here, and is not listed.";

/// Lists or tries.
pub(crate) fn execute(global: &GlobalOptions, args: &NotifyArgs) -> Result<(), Failure> {
    let config = config::read_here(global.config().as_deref())?;
    let global = &global.clone().configured(config.global);
    if args.test { test(global, args, &config.notify) } else { list(global, args, &config.notify) }
}

fn target_view(name: &str, configured: Option<&NotifyTarget>, summary: Option<&TargetSummary>) -> TargetView {
    TargetView {
        target: name.to_owned(),
        means: configured.map(NotifyTarget::means),
        on: configured.iter().flat_map(|target| target.on.iter().map(|event| event.as_str())).collect(),
        workflows: configured.map(|target| target.workflows.clone()).unwrap_or_default(),
        tags: configured.map(|target| target.tags.clone()).unwrap_or_default(),
        active: summary.is_some_and(|summary| summary.is_wanted),
        pending: summary.map_or(0, |summary| summary.pending),
    }
}

fn list(global: &GlobalOptions, args: &NotifyArgs, configured: &[NotifyTarget]) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let summaries = database.ask(|store| store.notifications().targets())?;
    let filter = NotificationFilter { target: args.target.clone(), before: args.before, limit: args.limit };
    let notes = database.ask(|store| store.notifications().list(&filter))?;
    let mut names: Vec<&str> = configured.iter().map(|target| target.name.as_str()).collect();
    names.extend(summaries.iter().map(|summary| summary.name.as_str()));
    names.sort_unstable();
    names.dedup();
    if let Some(wanted) = &args.target {
        if !names.contains(&wanted.as_str()) && notes.is_empty() {
            return Err(unknown(wanted, &names));
        }
        names.retain(|name| name == wanted);
    }
    let targets = names.iter().map(|name| {
        let configured = configured.iter().find(|target| target.name == *name);
        target_view(name, configured, summaries.iter().find(|summary| summary.name == *name))
    });
    let listed = NotifyView {
        targets: targets.collect(),
        notifications: notes.iter().map(NotificationView::new).collect(),
    };
    Output { format: global.output }.object(&listed, |listed| text(listed, &notes))
}

fn unknown(wanted: &str, names: &[&str]) -> Failure {
    let help = match names {
        [] => "windlass.toml has no [notify.NAME]; docs/guide/notifications.md has an example".to_owned(),
        names => format!("the targets are {}", names.join(", ")),
    };
    Failure::not_found(format!("there is no target `{wanted}`"), help)
}

fn text(listed: &NotifyView, notes: &[Notification]) -> String {
    if listed.targets.is_empty() && notes.is_empty() {
        return "no targets: add [notify.NAME] with `url` or `command` to windlass.toml".to_owned();
    }
    let width = table::stdout_width();
    let mut table = Table::new(&[
        Column::Left("TARGET"),
        Column::Left("BY"),
        Column::Left("STATE"),
        Column::Right("PENDING"),
        Column::Shrinking("ON"),
    ]);
    for target in &listed.targets {
        let state = match (target.active, target.means) {
            (true, _) => paint(GREEN, "active"),
            (false, Some(_)) => paint(YELLOW, "no service has it yet"),
            (false, None) => paint(YELLOW, "no service has it"),
        };
        table.row([
            printable(&target.target).into_owned(),
            target.means.unwrap_or("?").to_owned(),
            state,
            target.pending.to_string(),
            target.on.join(", "),
        ]);
    }
    let targets = table.render(width);
    if notes.is_empty() {
        return format!("{targets}\n\nno notifications");
    }
    format!("{targets}\n\n{}", notes_text(notes, width))
}

fn notes_text(notes: &[Notification], width: Option<usize>) -> String {
    let mut table = Table::new(&[
        Column::Right("NUMBER"),
        Column::Left("TARGET"),
        Column::Left("EVENT"),
        Column::Left("ABOUT"),
        Column::Left("STATUS"),
        Column::Right("TRIES"),
        Column::Optional("HAPPENED"),
        Column::Shrinking("LAST ERROR"),
    ]);
    let now_ms = time::now_ms();
    for note in notes {
        let style = match note.status {
            NotificationStatus::Pending => YELLOW,
            NotificationStatus::Delivered => GREEN,
            NotificationStatus::Failed => RED,
        };
        table.row([
            note.id.to_string(),
            printable(&note.target).into_owned(),
            note.event.to_string(),
            format!("{} {}", note.subject_id, printable(&note.subject)),
            paint(style, note.status),
            note.attempt.to_string(),
            time::relative(note.happened_at, now_ms),
            note.last_error.as_deref().map(|error| printable(error).into_owned()).unwrap_or_default(),
        ]);
    }
    table.render(width)
}

fn test(global: &GlobalOptions, args: &NotifyArgs, configured: &[NotifyTarget]) -> Result<(), Failure> {
    let names: Vec<&str> = configured.iter().map(|target| target.name.as_str()).collect();
    let wanted: Vec<&NotifyTarget> = match &args.target {
        None => configured.iter().collect(),
        Some(name) => configured.iter().filter(|target| target.name == *name).collect(),
    };
    if wanted.is_empty() {
        return Err(match &args.target {
            Some(name) => unknown(name, &names),
            None => Failure::usage(
                "there is no target to try: the configuration has no [notify.NAME]",
                "add one with `url` or `command` to windlass.toml, or name the file with --config",
            ),
        });
    }
    let mut tried = Vec::new();
    for target in wanted {
        let result = try_target(global, &target.resolve()?);
        if global.output == OutputFormat::Text {
            output::write_text(&tried_text(&result))?;
        }
        tried.push(result);
    }
    if global.output != OutputFormat::Text {
        Output { format: global.output }.list(&tried, |_| String::new())?;
    }
    if tried.iter().all(|tried| tried.delivered) { Ok(()) } else { Err(Failure::ProblemsFound) }
}

fn try_target(global: &GlobalOptions, target: &NotifyTarget) -> TriedTarget {
    let now_ms = time::now_ms();
    let sent = match &target.means {
        Means::Messages { recipient, .. } => send_test(global, target, recipient, now_ms),
        #[cfg(feature = "otlp")]
        Means::Traces(collector) => try_collector(target, collector, global.link_local()),
    };
    let duration_ms = time::now_ms() - now_ms;
    let (delivered, answer) = match sent {
        Ok(answer) => (true, answer),
        Err(NotSent::Failed(reason) | NotSent::Answered { reason, .. }) => (false, reason),
        Err(NotSent::Interrupted) => (false, "interrupted".to_owned()),
    };
    TriedTarget { target: target.name.clone(), delivered, answer, duration_ms }
}

fn send_test(
    global: &GlobalOptions,
    target: &NotifyTarget,
    recipient: &Recipient,
    now_ms: i64,
) -> Result<String, NotSent> {
    let id = format!("msg_test_{now_ms}");
    let text = "a test of notifications by windlass";
    let json = json!({
        "type": "test", "timestamp": rfc3339(now_ms), "id": id, "text": text, "data": { "target": target.name },
    });
    let message = Message {
        variables: notification_variables(&id, "test", text, &target.name),
        id,
        sent_at_s: now_ms / 1_000,
        json: json.to_string(),
    };
    let (timeout_ms, link_local) = (target.timeout_ms, global.link_local());
    send(&message, recipient, timeout_ms, link_local, MessageOutput::Shown, &Stop::default())
}

fn tried_text(tried: &TriedTarget) -> String {
    let state = if tried.delivered { paint(GREEN, "delivered") } else { paint(RED, "failed") };
    let took = time::duration(tried.duration_ms);
    format!("{}: {state} in {took}: {}", printable(&tried.target), printable(&tried.answer))
}
