//! Workers, the health of the system, and the document about REST itself.

use windlass_engine::Store;
use windlass_engine::store::Role;
use windlass_views::{DoctorView, WorkerView};

use super::document;
use super::lists::{self, LIMIT_PARAMETER, OFFSET_PARAMETER};
use crate::answer::Answer;
use crate::call::Call;
use crate::problem::Problem;
use crate::route::{Document, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route::read(
        "/api/v1/workers",
        Role::View,
        workers,
        Document::of::<Vec<WorkerView>>("List the live workers"),
    )
    .with_query(&[OFFSET_PARAMETER, LIMIT_PARAMETER]),
    Route::read(
        "/api/v1/health",
        Role::View,
        health,
        Document::of::<DoctorView>("Check for problems, as `windlass doctor` does, without its trial write"),
    ),
    Route::read(
        "/api/v1/openapi.json",
        Role::View,
        openapi,
        Document::of::<serde_json::Value>("This document"),
    ),
];

fn workers(store: &Store, call: &Call) -> Result<Answer, Problem> {
    lists::part_of(call, &store.workers().live()?, WorkerView::new)
}

fn health(_store: &Store, call: &Call) -> Result<Answer, Problem> {
    Answer::json(&call.sentences.health()?)
}

fn openapi(_store: &Store, _call: &Call) -> Result<Answer, Problem> {
    Answer::json(&*document::DOCUMENT)
}
