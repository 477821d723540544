//! Registered workflows and their versions.

use windlass_engine::Store;
use windlass_engine::store::{RegisteredTrigger, Registration, Role, Schedule};
use windlass_views::{DefinitionView, RegistrationView, VersionView};

use super::lists::{self, LIMIT_PARAMETER, OFFSET_PARAMETER, id};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/workflows",
        Role::View,
        list,
        Document::of::<Vec<RegistrationView>>("List the registered workflows, by name"),
    )
    .with_query(&[OFFSET_PARAMETER, LIMIT_PARAMETER]),
    Route::read(
        "/api/v1/workflows/{workflow}",
        Role::View,
        show,
        Document::of::<DefinitionView>("Show a version of a workflow with its definition"),
    )
    .with_query(&[id("version", "an earlier version, instead of the active one")]),
    Route::read(
        "/api/v1/workflows/{workflow}/versions",
        Role::View,
        versions,
        Document::of::<Vec<VersionView>>("List the versions of a workflow and what changed, newest first"),
    )
    .with_query(&[id("before", "only versions before this one: the next page"), LIMIT_PARAMETER]),
];

pub(super) fn no_workflow(name: &str) -> Problem {
    Problem::not_found(
        format!("no workflow is registered under the name `{}`", name.escape_debug()),
        "GET /api/v1/workflows lists the names",
    )
}

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let schedules = store.schedules().list()?;
    let triggers = store.registrations().triggers()?;
    let registrations = store.registrations().list()?;
    lists::part_of(call, &registrations, |registration| view(registration, &schedules, &triggers))
}

/// A workflow with the names of its schedules and triggers, which are among all.
fn view(
    registration: &Registration,
    schedules: &[Schedule],
    triggers: &[RegisteredTrigger],
) -> RegistrationView {
    let own: Vec<&Schedule> =
        schedules.iter().filter(|schedule| schedule.workflow == registration.name).collect();
    let active = own.iter().filter(|schedule| schedule.is_active());
    let triggers = triggers.iter().filter(|trigger| trigger.workflow == registration.name);
    RegistrationView::new(
        registration,
        own.iter().map(|schedule| schedule.name.clone()).collect(),
        triggers.map(|trigger| trigger.definition.name.clone()).collect(),
        active.filter_map(|schedule| schedule.next_at).min(),
    )
}

fn show(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = call.part("workflow");
    let registration = store.registrations().get(name)?;
    let wanted = call.query.integer("version").or(registration.as_ref().map(|active| active.version));
    let Some(wanted) = wanted else { return Err(no_workflow(name)) };
    let Some(version) = store.registrations().version(name, wanted)? else {
        return Err(Problem::not_found(
            format!("workflow `{}` has no version {wanted}", name.escape_debug()),
            "GET /api/v1/workflows/{workflow}/versions lists its versions",
        ));
    };
    Answer::json(&DefinitionView::new(name, &version, registration.as_ref()))
}

fn versions(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let name = call.part("workflow");
    let limit = lists::limit(call);
    let before = call.query.integer("before");
    let versions = store.registrations().versions(name, before, limit + 1)?;
    if versions.is_empty() && before.is_none() {
        return Err(no_workflow(name));
    }
    let active = store.registrations().get(name)?.map(|registration| registration.version);
    let shown = &versions[..versions.len().min(usize::try_from(limit).unwrap_or(usize::MAX))];
    let view = |(index, version)| VersionView::new(version, versions.get(index + 1), active);
    let views: Vec<VersionView> = shown.iter().enumerate().map(view).collect();
    let last = shown.last().filter(|_| shown.len() < versions.len());
    let next = last.map(|version| lists::next_address(call, "before", version.version));
    Ok(Answer::json(&views)?.with_next(next))
}
