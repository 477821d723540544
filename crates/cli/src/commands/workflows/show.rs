//! `windlass workflows show`: shows one version of a workflow.

use clap::Args;
use windlass_engine::store::{RegisteredTrigger, RegisteredVersion, Registration};
use windlass_views::{DefinitionView, rfc3339};
use windlass_workflow::Workflow;

use crate::arguments::GlobalOptions;
use crate::complete;
use crate::database::Database;
use crate::error::Failure;
use crate::find;
use crate::output::Output;
use crate::text::schedules::failed_trigger;
use crate::text::style::{BOLD, YELLOW, headline, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::{schedules, time};

/// How many columns of a script or a command a pipe gets.
const ACTION_COLUMNS: usize = 200;

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The name of the workflow
    #[arg(value_name = "WORKFLOW", add = complete::workflow())]
    name: String,

    /// An earlier version, instead of the active one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    version: Option<i64>,
}

/// Prints the active version, or the version of --version.
pub(super) fn execute(global: &GlobalOptions, args: &ShowArgs) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let registration = match args.version {
        None => Some(find::workflow(&database, &args.name)?),
        Some(_) => database.ask(|store| store.registrations().get(&args.name))?,
    };
    let wanted = args.version.or(registration.as_ref().map(|registration| registration.version)).unwrap_or(1);
    let Some(version) = database.ask(|store| store.registrations().version(&args.name, wanted))? else {
        return Err(no_version(&database, &args.name, wanted)?);
    };
    let triggers = database.ask(|store| store.registrations().triggers())?;
    let view = DefinitionView::new(&args.name, &version, registration.as_ref());
    Output { format: global.output }
        .object(&view, |_| text(&args.name, &version, registration.as_ref(), &triggers))
}

fn no_version(database: &Database, name: &str, wanted: i64) -> Result<Failure, Failure> {
    let newest = database.ask(|store| store.registrations().newest_versions(name, 1))?;
    match newest.first() {
        Some(newest) => Ok(Failure::not_found(
            format!("workflow `{name}` has no version {wanted}; the newest is {}", newest.version),
            format!("`{}` lists its versions", database.hint(&format!("workflows history {name}"))),
        )),
        None => find::no_workflow(database, name, "no workflow was ever registered under the name"),
    }
}

fn text(
    name: &str,
    version: &RegisteredVersion,
    registration: Option<&Registration>,
    triggers: &[RegisteredTrigger],
) -> String {
    let workflow = &version.workflow;
    let now_ms = time::now_ms();
    let state = match registration {
        None => paint(YELLOW, "  (removed)"),
        Some(registration) if registration.version != version.version => {
            paint(YELLOW, format!("  (version {} is active)", registration.version))
        }
        Some(registration) if registration.paused_at.is_some() => paint(YELLOW, "  (paused)"),
        Some(_) => String::new(),
    };
    let mut text = format!("{}  version {}{state}\n", paint(BOLD, printable(name)), version.version);
    let mut field = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            text.push_str(&format!("  {label:<12}{}\n", printable(&value)));
        }
    };
    field("about", workflow.description.as_deref().map(|text| headline(text, ACTION_COLUMNS)));
    field("tags", Some(workflow.tags.join(", ")).filter(|tags| !tags.is_empty()));
    field("file", version.file.clone());
    field(
        "applied",
        Some(format!("{} ({})", rfc3339(version.applied_at), time::relative(version.applied_at, now_ms))),
    );
    field("timeout", workflow.timeout_ms.map(windlass_workflow::duration::to_text));
    for param in &workflow.params {
        field("param", Some(crate::submission::describe_param(param)));
    }
    for schedule in &workflow.schedules {
        field("schedule", Some(schedules::summary(schedule)));
    }
    for trigger in &workflow.triggers {
        field("trigger", Some(format!("{}: {}", trigger.name, trigger.text())));
        let registered = triggers.iter().find(|known| known.workflow == name && known.definition == *trigger);
        if let Some(failure) = registered.and_then(|registered| registered.failure.as_ref()) {
            field("", Some(failed_trigger(failure, now_ms)));
        }
    }
    text.push('\n');
    text.push_str(&jobs(workflow));
    text
}

fn jobs(workflow: &Workflow) -> String {
    let mut table = Table::new(&[
        Column::Left("JOB"),
        Column::Left("NEEDS"),
        Column::Left("QUEUE"),
        Column::Shrinking("COMMAND"),
    ]);
    for job in &workflow.jobs {
        let needs: Vec<&str> = job.needs.iter().map(|index| workflow.jobs[*index].name.as_str()).collect();
        table.row([
            printable(&job.name).into_owned(),
            headline(&needs.join(", "), ACTION_COLUMNS),
            printable(&job.queue).into_owned(),
            headline(&job.action.summary().text.to_string(), ACTION_COLUMNS),
        ]);
    }
    table.render(table::stdout_width())
}
