//! Schedules.

use axum::http::StatusCode;
use windlass_engine::Store;
use windlass_engine::store::{Role, Schedule, Subject};
use windlass_views::{ChangedSchedule, OccurrenceView, ScheduleView, SubmittedView};
use windlass_workflow::schedule::Timetable;

use super::lists::{self, LIMIT_PARAMETER, OFFSET_PARAMETER};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Idempotency, Method, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/schedules",
        Role::View,
        list,
        Document::of::<Vec<ScheduleView>>("List the schedules, by workflow and name"),
    )
    .with_query(&[OFFSET_PARAMETER, LIMIT_PARAMETER]),
    Route::read(
        "/api/v1/schedules/{schedule_id}",
        Role::View,
        show,
        Document::of::<ScheduleView>("Show a schedule"),
    ),
    Route::read(
        "/api/v1/schedules/{schedule_id}/next",
        Role::View,
        next,
        Document::of::<Vec<OccurrenceView>>("List the next times of a schedule"),
    )
    .with_query(&[LIMIT_PARAMETER]),
    Route::change(
        Method::Post,
        "/api/v1/schedules/{schedule_id}/pause",
        Role::Edit,
        pause,
        Document::of::<ChangedSchedule>("Pause a schedule: it starts no runs"),
    ),
    Route::change(
        Method::Post,
        "/api/v1/schedules/{schedule_id}/resume",
        Role::Edit,
        resume,
        Document::of::<ChangedSchedule>("Resume a schedule; times of the pause are not caught up"),
    ),
    Route::change(
        Method::Post,
        "/api/v1/schedules/{schedule_id}/trigger",
        Role::Run,
        trigger,
        Document::of::<SubmittedView>("Start a run of a schedule now"),
    )
    .with_key(Idempotency::Kept),
];

pub(super) fn schedule_of(store: &Store, call: &Call) -> Result<Schedule, Problem> {
    Ok(store.schedules().get(call.id("schedule_id")?)?)
}

fn list(store: &Store, call: &Call) -> Result<Answer, Problem> {
    lists::part_of(call, &store.schedules().list()?, ScheduleView::new)
}

fn show(store: &Store, call: &Call) -> Result<Answer, Problem> {
    Answer::json(&ScheduleView::new(&schedule_of(store, call)?))
}

fn next(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let schedule = schedule_of(store, call)?;
    let timetable = Timetable::of(&schedule.definition).map_err(|error| {
        Problem::conflict(format!("the rule of the schedule is invalid: {}", error.reason), error.help)
    })?;
    let from_ms = store.clock().now_ms().max(schedule.decided_until);
    let count = usize::try_from(lists::limit(call)).unwrap_or(usize::MAX);
    let views: Vec<OccurrenceView> = timetable
        .after(from_ms)
        .take(count)
        .map(|occurrence| OccurrenceView::new(&occurrence, &schedule))
        .collect();
    Answer::json(&views)
}

fn pause(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let schedule = schedule_of(store, call)?;
    let recorded = call.recorded(store, Subject::Schedule { id: schedule.id, key: schedule.key() });
    let changed = recorded.schedules().pause(schedule.id)?;
    Answer::json(&ChangedSchedule { schedule: ScheduleView::new(&schedule_of(store, call)?), changed })
}

fn resume(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let schedule = schedule_of(store, call)?;
    let recorded = call.recorded(store, Subject::Schedule { id: schedule.id, key: schedule.key() });
    let changed = recorded.schedules().resume(schedule.id)?;
    Answer::json(&ChangedSchedule { schedule: ScheduleView::new(&schedule_of(store, call)?), changed })
}

fn trigger(store: &Store, call: &Call) -> Result<Answer, Problem> {
    let schedule = schedule_of(store, call)?;
    let recorded = call.recorded(store, Subject::Schedule { id: schedule.id, key: schedule.key() });
    let submitted = recorded.schedules().fire(schedule.id)?;
    let run = store.runs().get(submitted.run_id)?;
    Answer::json_with(StatusCode::CREATED, &SubmittedView::new(submitted, &run.workflow, run.status))
}
