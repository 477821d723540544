//! `windlass workflows list`: lists the registered workflows.

use windlass_engine::store::{RegisteredTrigger, Registration, Schedule};
use windlass_views::RegistrationView;

use crate::arguments::{GlobalOptions, OutputFormat};
use crate::database::Database;
use crate::error::Failure;
use crate::output::Output;
use crate::stderr;
use crate::text::schedules::{self, next_occurrence};
use crate::text::style::{YELLOW, paint, printable};
use crate::text::table::{self, Column, Table};
use crate::text::time;

/// A workflow with the names of its schedules and triggers, which are among all.
pub(super) fn view(
    registration: &Registration,
    schedules: &[Schedule],
    triggers: &[RegisteredTrigger],
) -> RegistrationView {
    let own: Vec<&Schedule> =
        schedules.iter().filter(|schedule| schedule.workflow == registration.name).collect();
    let triggers = triggers.iter().filter(|trigger| trigger.workflow == registration.name);
    RegistrationView::new(
        registration,
        own.iter().map(|schedule| schedule.name.clone()).collect(),
        triggers.map(|trigger| trigger.definition.name.clone()).collect(),
        next_at(&own),
    )
}

/// The earliest occurrence of the schedules.
fn next_at(schedules: &[&Schedule]) -> Option<i64> {
    next_occurrence(schedules.iter().copied()).map(|(_schedule, at_ms)| at_ms)
}

/// Prints the workflows in the order of their names.
pub(super) fn execute(global: &GlobalOptions) -> Result<(), Failure> {
    let database = Database::existing(global)?;
    let registrations = database.ask(|store| store.registrations().list())?;
    if registrations.is_empty() && global.output == OutputFormat::Text {
        stderr::note(&format!(
            "no workflow is registered yet; `{}` registers a file",
            database.hint("apply FILE")
        ));
        return Ok(());
    }
    let schedules = database.ask(|store| store.schedules().list())?;
    let all_triggers = database.ask(|store| store.registrations().triggers())?;
    let mut views = Vec::with_capacity(registrations.len());
    let now_ms = time::now_ms();
    let mut table = Table::new(&[
        Column::Left("WORKFLOW"),
        Column::Right("VERSION"),
        Column::Left("STATE"),
        Column::Shrinking("STARTED BY"),
        Column::Left("NEXT RUN"),
        Column::Left("CHANGED"),
        Column::Optional("FILE"),
    ]);
    for registration in registrations {
        let own: Vec<&Schedule> =
            schedules.iter().filter(|schedule| schedule.workflow == registration.name).collect();
        let triggers: Vec<_> =
            all_triggers.iter().filter(|trigger| trigger.workflow == registration.name).collect();
        let started_by: Vec<String> = own
            .iter()
            .map(|own| schedules::summary(&own.definition))
            .chain(triggers.iter().map(|trigger| trigger.definition.text()))
            .collect();
        let view = view(&registration, &schedules, &all_triggers);
        let next_at = next_at(&own);
        let state = match registration.paused_at {
            Some(paused_at) => paint(YELLOW, format!("paused {}", time::relative(paused_at, now_ms))),
            None => String::new(),
        };
        table.row([
            printable(&registration.name).into_owned(),
            registration.version.to_string(),
            state,
            printable(&started_by.join("; ")).into_owned(),
            next_at.map(|at_ms| time::relative(at_ms, now_ms)).unwrap_or_default(),
            time::relative(registration.updated_at, now_ms),
            printable(registration.file.as_deref().unwrap_or_default()).into_owned(),
        ]);
        views.push(view);
    }
    Output { format: global.output }.list(&views, |_| table.render(table::stdout_width()))
}
